#!/bin/bash
# Every micro-benchmark and the step's table, each for a moment: they run, their JSON is JSON, every share of a limit is above 0. No time
# is held to anything.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() { # FILE WHAT LEAST-COUNT: every result of a program has a share
  python3 - "$@" <<'PY'
import json, math, sys

def refuse(word):
    raise ValueError(word + " in JSON")

file, what, least = sys.argv[1:]
results = json.load(open(file), parse_constant=refuse)[what]
bad = [r for r in results if not (r["share_of_limit"] > 0 and math.isfinite(r["share_of_limit"]))]
print(f"{len(results)} results")
sys.exit(f"{file}: no share of a limit: {bad}" if bad or len(results) < int(least) else 0)
PY
}

for program in $SHARDMARK_MICRO; do
  case $program in
    *micro_matmul) arguments=(--benchmark_filter='/(64x64x64|17x48x61)/') least=12 ;;
    *micro_passes) arguments=() least=19 ;;
    *micro_collectives) arguments=(--benchmark_filter='/(1024|1048576)B') least=6 ;;
  esac
  "$program" --benchmark_min_time=0.001 --benchmark_out="$folder/out.json" --benchmark_out_format=json "${arguments[@]}" >"$folder/text" ||
    { cat "$folder/text"; exit 1; }
  check "$folder/out.json" benchmarks "$least"
done

# The table of a step: shares add up, with what lies between the operations.
"$SHARDMARK_BIN/step_operations" --layers 1 --hidden 16 --heads 2 --seq 8 --batch 4 --data synthetic --steps 3 --warmup 1 --json "$folder/step.json" >"$folder/text"
grep -q "not matmul" "$folder/text"
python3 - "$folder/step.json" <<'PY'
import json, sys
step = json.load(open(sys.argv[1]))
shares = {o["operation"]: o["share_of_step"] for o in step["operations"]}
assert {"matmul", "attention", "attention_input", "cross_entropy", "adamw_update"} <= set(shares), shares
assert all(share > 0 for share in shares.values()), shares
assert abs(sum(shares.values()) + step["outside_operations_share"] - 1) < 1e-9, step
PY

# The check can fail.
echo '{"benchmarks": [{"share_of_limit": 0}]}' >"$folder/zero.json"
if check "$folder/zero.json" benchmarks 1 2>/dev/null; then echo "a share of 0 passed"; exit 1; fi
