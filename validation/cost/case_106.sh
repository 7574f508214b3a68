#!/bin/bash
# case_106: the memory of a job is that of its fullest rank, named: with a large vocabulary the last of three stages, not the first.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model="--model gpt --layers 3 --hidden 64 --heads 4 --seq 64 --vocab 50000 --batch 8 --microbatches 4 --data synthetic"

# shellcheck disable=SC2086 # lists of words
{
  $SHARDMARK_MPIRUN -n 3 "$SHARDMARK_BIN/gpipe" bench $model --no-verify --warmup 1 --steps 3 --json run.jsonl
  "$SHARDMARK_BIN/gpipe" plan $model --ranks 3 --json plan.jsonl
} >/dev/null
python3 - <<'PY'
import json

memory = json.loads(open("run.jsonl").read())["result"]["memory_bytes"]
planned = [rank["memory_bytes"]["ledger_peak"] for rank in json.loads(open("plan.jsonl").read())["per_rank"]]
assert planned[2] == max(planned) > 1.02 * planned[0], planned  # the first rank's would be seen to be wrong
assert memory["rank"] == 2, memory
assert abs(memory["ledger_peak"] / planned[2] - 1) <= 0.02, (memory["ledger_peak"], planned)
print("rank 2 of", planned, "measured", memory["ledger_peak"])
PY
