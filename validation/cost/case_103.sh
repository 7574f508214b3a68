#!/bin/bash
# case_103: slow steps of the warm-up are no part of the result, and a slow timed step is kept: in the mean, the maximum and the rate.
# Bounds are on delays that the test makes; nothing depends on the machine's speed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model="--layers 1 --hidden 16 --heads 2 --seq 8 --batch 4 --data synthetic --steps 10 --no-verify --json runs.jsonl"

# shellcheck disable=SC2086 # lists of words
for ranks in 2 3; do
  ddp="$SHARDMARK_MPIRUN -n $ranks $SHARDMARK_BIN/ddp bench $model"
  $ddp --warmup 3 --inject delay:rank=1,step=2,seconds=2
  $ddp --warmup 3 --inject delay:rank=1,step=9,seconds=2
  $ddp --warmup 0
done >/dev/null
python3 - <<'PY'
import json

runs = [json.loads(line) for line in open("runs.jsonl")]
assert len(runs) == 6, len(runs)
for i, run in enumerate(runs):
    method, steps, loop = run["method"], run["result"]["step_seconds"], run["result"]["loop_seconds"]["value"]
    reasons = {u["code"] for u in run["unofficial"]}
    assert steps["n"] == len(steps["samples"]) == method["timed_steps"] == 10 and method["outliers_removed"] == 0, (i, steps)
    assert abs(sum(steps["samples"]) / 10 - steps["mean"]) < 1e-9, (i, steps)
    if i % 3 == 0:  # two seconds in the warm-up: were a step of it in the loop, it would be the longest
        assert method["warmup_steps"] == 3 and steps["max"] < 2, (i, steps)
    elif i % 3 == 1:  # two seconds in timed step 6
        assert steps["samples"][5] == steps["max"] >= 2 and steps["mean"] >= 0.2 and loop >= 2, (i, steps)
        assert steps["median"] < 2 and sorted(steps["samples"])[8] < 2, (i, steps)
        assert run["result"]["tokens_per_second"]["value"] <= 10 * 4 * 8 / 2, run["result"]["tokens_per_second"]
        assert "injected_fault" in reasons, reasons
    else:
        assert method["warmup_steps"] == 0 and "no_warmup" in reasons, (i, method, reasons)
print("declared warm-up is out, timed steps are in, in", len(runs), "runs")
PY
