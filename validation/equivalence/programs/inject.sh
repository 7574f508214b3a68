#!/bin/bash
# A user's own check that `verify` can fail: --inject in the release build ends in FAILED, exit code 1, with the tensor named.
set -euo pipefail
gpt="--layers 2 --hidden 48 --heads 3 --seq 17 --vocab 61 --batch 5 --steps 3"

must_fail() { # FAULT NAMED
  local out code=0
  # shellcheck disable=SC2086
  out=$("$SHARDMARK_BIN/ddp" verify --ranks-as-threads 3 $gpt --inject "$1") || code=$?
  [[ $code == 1 ]] || { echo "$1: exit code $code instead of 1"; exit 1; }
  grep -q "^first divergence:.*$2" <<<"$out" || { echo "$1: $2 isn't named:"; tail -5 <<<"$out"; exit 1; }
  tail -n 1 <<<"$out"
}

must_fail bitflip:rank=2,tensor=h.1.mlp.fc.weight,step=1 "gradient of h.1.mlp.fc.weight"
must_fail bitflip:rank=2 "gradient of "  # as in the README: no tensor named, the first one has rows of unused tokens
must_fail nan:rank=1,tensor=ln_f.bias,step=1 "gradient of ln_f.bias"
must_fail drop-reduction:rank=0,tensor=h.0.attn.q.weight,step=1 "gradient of h.0.attn.q.weight"

# bench's proofs don't reach every timed step: they don't speak for a run with a fault behind them.
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
# shellcheck disable=SC2086
out=$("$SHARDMARK_BIN/ddp" bench --ranks-as-threads 2 $gpt --data synthetic --warmup 3 --inject bitflip:rank=1,step=5 --out "$run/bench")
tail -n 1 <<<"$out"
grep -q "^SHARDMARK ddp UNVERIFIED" <<<"$out" || { echo "a spoiled run passes for a proven one"; exit 1; }
