#!/bin/bash
# case_116: NaN never appears in JSON or CSV; what has no value is null with a reason.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

check_json() { # FILE EXPRESSION-ON-r
  python3 - "$1" "$2" <<'PY' || failed "$1: $2"
import json, sys
def refuse(word):
    raise ValueError(word + " in JSON")
(r,) = [json.loads(line, parse_constant=refuse) for line in open(sys.argv[1])]
assert eval(sys.argv[2]), r
PY
}

# One step: no interval, no correlation.
# shellcheck disable=SC2086
ends_with 0 "$serial" bench $small --steps 1 --warmup 0 --no-verify --json one.json --csv one.csv
check_json one.json 'r["result"]["step_seconds"]["ci95"] is None and "6 samples" in r["null_reasons"]["result.step_seconds.ci95"]'
if grep -iE '(^|,)-?(nan|inf)(,|$)' one.csv; then failed "NaN in CSV"; fi

# shellcheck disable=SC2086
ends_with 0 $SHARDMARK_MPIRUN -n 2 "$ddp" bench $small --steps 3 --warmup 0 --no-verify --inject nan:rank=1,step=2 --json nan.json --csv nan.csv
check_json nan.json 'r["result"]["loss"]["nonfinite_steps"] == 1'
if grep -iE '(^|,)-?(nan|inf)(,|$)' nan.csv; then failed "NaN in CSV"; fi

# shellcheck disable=SC2086
ends_with 1 "$ddp" verify $small --vocab 16 --steps 2 --ranks-as-threads 2 --inject nan:rank=1,tensor=ln_f.bias,step=1 --json verify.json
check_json verify.json 'r["verdict"] == "FAILED" and any("ln_f.bias" in c["tensor"] and c["verdict"] == "FAILED" for c in r["checks"])'
echo "all JSON is JSON"
