#!/bin/bash
# case_101: tokens per second are those of the whole update over the loop's wall time, for every number of micro-batches; none of them is
# counted alone, or divided by.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model="--model gpt --layers 2 --hidden 64 --heads 4 --seq 32 --vocab 257 --data synthetic --warmup 2 --steps 10 --no-verify --json runs.jsonl"

# shellcheck disable=SC2086 # lists of words
for k in 1 2 4; do
  $SHARDMARK_MPIRUN -n 2 "$SHARDMARK_BIN/ddp" bench $model --batch 16 --accumulate $k
  $SHARDMARK_MPIRUN -n 2 "$SHARDMARK_BIN/ddp" bench $model --batch-per-replica 8 --accumulate $k
  "$SHARDMARK_BIN/serial" bench $model --batch 16 --accumulate $k
  "$SHARDMARK_BIN/ddp" bench $model --batch 16 --accumulate $k --ranks-as-threads 2
done >/dev/null
python3 - <<'PY'
import json

runs = [json.loads(line) for line in open("runs.jsonl")]
assert len(runs) == 12, len(runs)
for run, k in zip(runs, [1] * 4 + [2] * 4 + [4] * 4):
    given, result = run["input"], run["result"]
    rate, ranks = result["tokens_per_second"]["value"], given["ranks"]
    tokens = rate * result["loop_seconds"]["value"]
    assert abs(tokens - 16 * 32 * 10) < 1e-6 * tokens, (given["strategy"], ranks, k, tokens)
    assert abs(result["tps"]["value"] * ranks - rate) < 1e-6 * rate, (given["strategy"], ranks, k)
    assert given["num_microbatches"] == k and given["micro_batch_size"] == 16 // ranks // k, given
    assert given["global_batch_size"] == 16, given
    assert result["step_seconds"]["n"] == 10, result
print("5120 tokens in each of", len(runs), "runs")
PY
