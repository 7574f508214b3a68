#!/bin/bash
# usage: case_18.sh RENDEZVOUS-LIBRARY; case_18: pipelines end and come to the same numbers when no send is complete before its receiver
# has asked for it: messages of 64 bytes and of 4 MiB.
set -euo pipefail
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# rendezvous RANKS COMMAND...: output in out
rendezvous() {
  local ranks=$1
  shift
  # shellcheck disable=SC2086 # a list of words
  timeout -s KILL 100 $SHARDMARK_MPIRUN -n "$ranks" env LD_PRELOAD="$library" "$@" >out 2>err || { echo "exit code $?: $*"; cat out err; exit 1; }
  [[ $(grep -cE "^rendezvous: [1-9][0-9]* sends" err) == "$ranks" ]] || { echo "not every rank's sends wait: $*"; cat err; exit 1; }
}

# One row of 16 numbers is 64 bytes.
mlp="--model mlp --layers 7 --hidden 16 --batch 5 --microbatches 5 --steps 2"
# shellcheck disable=SC2086 # lists of words
proved() { # RANKS PROGRAM [OPTION ...]
  rendezvous "$1" "$SHARDMARK_BIN/$2" verify $mlp "${@:3}"
  [[ $(tail -n 1 out) == *" VERIFIED "* ]] || { echo "not VERIFIED: $*"; cat out; exit 1; }
}
proved 3 gpipe
proved 3 model_parallel
proved 3 pipedream
proved 3 pipedream --mode stash
proved 3 pipedream --mode 2bw
# Two stages: the next one is the previous one.
proved 2 pipedream --virtual-stages 2
proved 2 pipedream --split-backward v

# 1024 rows of 1024 numbers are 4 MiB; serial's loss is the right one.
mlp="--model mlp --layers 3 --hidden 1024 --batch 3072 --microbatches 3 --data synthetic --deterministic --no-verify --warmup 0 --steps 2"
# shellcheck disable=SC2086
{
  "$SHARDMARK_BIN/serial" bench $mlp --json runs.jsonl >/dev/null
  rendezvous 3 "$SHARDMARK_BIN/gpipe" bench $mlp --json runs.jsonl
  rendezvous 2 "$SHARDMARK_BIN/pipedream" bench $mlp --virtual-stages 2 --json runs.jsonl
}
python3 - <<'PY'
import json

losses = [json.loads(line)["result"]["loss"]["last"] for line in open("runs.jsonl")]
assert len(losses) == 3 and len(set(map(str, losses))) == 1, losses
print("losses", losses)
PY
