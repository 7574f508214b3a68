#!/bin/bash
# What a run costs against what was said before: memory within 2 % of plan, bytes and reductions by formula, no allocation of ours
# after warm-up, throughput from the loop's wall time.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model="--layers 3 --hidden 64 --heads 4 --seq 32 --vocab 300 --data synthetic"

# shellcheck disable=SC2086
{
  $SHARDMARK_MPIRUN -n 2 "$SHARDMARK_BIN/ddp" bench --no-verify $model --batch 8 --accumulate 2 --bucket-mb 0.2 --warmup 2 --steps 8 --json ddp.jsonl
  $SHARDMARK_MPIRUN -n 3 "$SHARDMARK_BIN/ddp" bench --no-verify $model --batch 8 --deterministic --warmup 2 --steps 8 --json ddp.jsonl
  $SHARDMARK_MPIRUN -n 2 "$SHARDMARK_BIN/ddp" bench --no-verify $model --batch 8 --comm peer --warmup 2 --steps 8 --json ddp.jsonl
  "$SHARDMARK_BIN/serial" bench --no-verify $model --batch 8 --microbatches 3 --warmup 2 --steps 8 --json ddp.jsonl
  $SHARDMARK_MPIRUN -n 2 "$SHARDMARK_BIN/tensor_parallel" bench --no-verify $model --batch 8 --microbatches 2 --warmup 2 --steps 8 --json ddp.jsonl | tee table.txt
  "$SHARDMARK_BIN/ddp" bench --no-verify $model --batch 8 --ranks-as-threads 3 --warmup 2 --steps 8 --json ddp.jsonl
  # 15 units a window of 11 micro-batches: calls a micro-batch are no whole number.
  deep="--layers 13 --hidden 16 --heads 2 --seq 8 --vocab 50 --data synthetic --warmup 1 --steps 2"
  $SHARDMARK_MPIRUN -n 2 "$SHARDMARK_BIN/zero" bench --no-verify --stage 1 $deep --batch 22 --microbatches 11 --json shared.jsonl
  $SHARDMARK_MPIRUN -n 3 "$SHARDMARK_BIN/zero" bench --no-verify --stage 3 $deep --batch 7 --microbatches 2 --json shared.jsonl
  $SHARDMARK_MPIRUN -n 3 "$SHARDMARK_BIN/dp" bench --no-verify $deep --batch 7 --json shared.jsonl
  "$SHARDMARK_BIN/dp" plan $model --batch 7 --ranks 3 | tee dp.txt
  "$SHARDMARK_BIN/tensor_parallel" plan $model --batch 8 --ranks 4 | tee -a table.txt
  "$SHARDMARK_BIN/ddp" plan $model --batch 8 --accumulate 2 --bucket-mb 0.2 --ranks 2 --json plan.jsonl >/dev/null
}
python3 - <<'PY'
import json

def no_nan(text):
    raise SystemExit(f"{text} in JSON")

records = [json.loads(line, parse_constant=no_nan) for line in open("ddp.jsonl")]
plan = json.loads(open("plan.jsonl").read())
assert len(records) == 6, len(records)
for r in records:
    i, result = r["input"], r["result"]
    what = f'{i["strategy"]} on {i["ranks"]} ranks, comm {i["comm"]}'
    memory = result["memory_bytes"]
    assert memory["allocations_after_warmup"] == 0, (what, memory["allocations_after_warmup"])
    assert abs(memory["ratio"] - 1) <= 0.02, (what, memory["ratio"])
    tokens = 8 * 32 * 8  # batch x seq x steps
    assert abs(result["tokens_per_second"]["value"] * result["loop_seconds"]["value"] - tokens) < 1e-6 * tokens, what
    assert abs(result["tps"]["value"] * i["ranks"] - result["tokens_per_second"]["value"]) < 1e-6 * result["tokens_per_second"]["value"], what
    for c in result["comm"]:
        assert c["calls_per_step"] == c["calls_predicted"], (what, c)
        assert c["axis"] == "tp" or c["size_bytes"] == 4 * i["parameters"], (what, c)
        assert abs(c["bus_bytes_per_rank"] - c["bus_bytes_predicted"]) <= 64 * c["calls_per_step"], (what, c)
    print(what, "ledger/plan", memory["ratio"], "reductions", [c["calls_per_step"] for c in result["comm"]])
# The centralised way: every purpose beside its formula.
rows = {line.split()[1]: line.split() for line in open("dp.txt") if line.startswith(" data ")}
assert {"gradients", "weights", "samples"} <= rows.keys(), rows
assert all(rows[p][4] == rows[p][5] != "-" for p in ("gradients", "weights", "samples")), rows
assert float(rows["weights"][4]) > 0 and float(rows["samples"][4]) > 0 and float(rows["gradients"][4]) == 0, rows
shared = [json.loads(line, parse_constant=no_nan) for line in open("shared.jsonl")]
assert [r["input"]["strategy"] for r in shared] == ["zero", "zero", "dp"]
assert [len(r["result"]["comm"]) for r in shared] == [2, 2, 1]
for r in shared:
    for c in r["result"]["comm"]:
        what = (r["input"]["strategy"], r["input"]["ranks"], c)
        assert c["calls_per_step"] == c["calls_predicted"] > 0, what
        assert abs(c["bus_bytes_per_rank"] - c["bus_bytes_predicted"]) <= 64 * c["calls_per_step"], what
assert records[0]["result"]["comm"][0]["calls_per_step"] == plan["predicted"]["reductions"] > 1
assert "tp" in {c["axis"] for c in records[4]["result"]["comm"]}
# The ledger by axis and purpose: what is counted is what the formula says, to the digits printed.
rows = [line.split() for line in open("table.txt") if line.startswith(" tensor ") and " row output " in line]
assert len(rows) == 2 and all(row[-1] == "h" and row[5] == row[6] for row in rows), rows
assert records[0]["result"]["memory_bytes"]["ledger_peak"] == max(p["memory_bytes"]["ledger_peak"] for p in plan["per_rank"])
PY
