#!/bin/bash
# Requests that can't be served end with exit code 2 and one message before any work; nothing waits, nothing is left behind.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

printf '{"layers": 2' >torn.json
printf '{"layers": "2"}' >text.json
printf '{"layer": 2}' >unknown.json
printf '{"batch": 2, "batch": 3}' >twice.json
printf '{"data": "text:a\\u0000b"}' >zero.json
printf '[%.0s' {1..20000} >deep.json
printf 'abc' >short.txt
: >empty.txt
mkdir nothing
mkfifo pipe
ln -s loop loop

refused "no command" "$serial"
refused "did you mean --hidden?" "$serial" plan --hiden 3
refused "unknown option \"-x\" (no option has this name); see" "$serial" plan -x
refused "--hidden needs a value" "$serial" plan --hidden
refused "a whole number is expected" "$serial" plan --layers 99999999999999999999
refused "a number is expected" "$serial" plan --lr nan
refused "too large (at most" "$serial" plan --batch 9223372036854775807
refused "too small (at least" "$ddp" plan --bucket-mb 1e-12
refused "means nothing in verify" "$ddp" verify --out x
refused "means nothing in plan" "$ddp" plan --ranks-as-threads 2
refused "contradict each other" "$ddp" bench --no-verify --verify
refused "are both given" "$ddp" verify --batch 2 --batch-per-replica 2
refused "batch 5 over 7 replicas" "$ddp" bench --batch 5 --accumulate 2 --ranks-as-threads 7

refused "--config is empty" "$ddp" verify --config ""
refused "is too long" "$ddp" verify --config /dev/zero
refused "torn.json is not JSON (\"parse error at line 1" "$ddp" verify --config torn.json
refused "deep.json is not JSON" "$ddp" verify --config deep.json
refused "found string" "$ddp" verify --config text.json
refused "did you mean layers?" "$ddp" verify --config unknown.json
refused "given twice" "$ddp" verify --config twice.json
refused "zero byte" "$ddp" verify --config zero.json

for bad in none "empty.txt" nothing pipe loop /dev/zero; do refused "$bad" "$serial" bench --data "text:$bad"; done
refused "at least 9 tokens" "$serial" bench --seq 8 --data text:short.txt
refused "held-out" "$serial" bench --eval --data synthetic
refused "no held-out" "$serial" bench --eval --seq 1 --data text:short.txt

refused "rank 5 of 1" "$ddp" verify --inject nan:rank=5
refused "step 21 of 20" "$ddp" verify --inject nan:step=21
refused "zero but for rounding" "$ddp" verify --inject bitflip:tensor=h.0.attn.k.bias
refused "zero but for rounding" "$ddp" verify --seq 1 --ranks-as-threads 2 --inject drop-reduction:tensor=h.0.attn.q.weight
refused "proves step 1 alone" "$ddp" verify --no-deterministic --inject nan:step=2
refused "at most" "$ddp" verify --inject delay:seconds=1e300
refused "which this model doesn't have" "$ddp" verify --inject nan:tensor=foo
refused "MiB are needed .*MiB are available" "$serial" bench --hidden 8192 --heads 8 --layers 1000
refused "MiB are needed (3 ranks of .*MiB are available" "$ddp" bench --hidden 8192 --heads 8 --layers 1000 --ranks-as-threads 3
echo "all requests were refused"
