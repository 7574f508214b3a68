#!/bin/bash
# case_118: two processes, 10 updates at once against a run that is killed after its checkpoint of update 6 and goes on in new processes:
# the same weights and moments, bit for bit; rates count this launch's tokens alone. Then a run that is killed at random moments, again and
# again, until it ends: no checkpoint that a kill left is ever wrong.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
head -c 513 /usr/share/common-licenses/GPL-3 >text # 64 samples of 8 tokens
# shellcheck disable=SC2206 # lists of words
{
  training=(bench --layers 2 --hidden 32 --heads 4 --seq 8 --data text:text --held-out 0 --batch 16 --dropout 0.1
    --lr-schedule cosine --deterministic --warmup 0 --no-verify)
  two=($SHARDMARK_MPIRUN -n 2 "$ddp")
}

same() { # FOLDER FOLDER UPDATE
  local file
  for file in model.safetensors optimizer.safetensors state.json; do
    cmp "$1/update-$3/$file" "$2/update-$3/$file" || failed "$file differs"
  done
}

ends_with 0 "${two[@]}" "${training[@]}" --steps 10 --save whole --out whole-run --json whole.json
code=0
"${two[@]}" "${training[@]}" --steps 10 --save part --save-every 6 --inject kill:rank=1,step=8 --out killed-run >out 2>err || code=$?
[[ $code != 0 && $(ls -A part) == update-6 ]] || failed "not killed behind update 6"
ends_with 0 "${two[@]}" "${training[@]}" --steps 10 --save part --resume part --out resumed-run --json resumed.json
same whole part 10
python3 - <<'PY' || failed "the records"
import json
whole, resumed = (json.loads(open(name).read()) for name in ("whole.json", "resumed.json"))
for run, updates in ((whole, 10), (resumed, 4)):
    result = run["result"]
    tokens = result["tokens_per_second"]["value"] * result["loop_seconds"]["value"]
    assert abs(tokens - updates * 16 * 8) < 1e-6 * tokens, (tokens, updates)
    assert result["step_seconds"]["n"] == updates, result
assert resumed["run"]["resumed_from_update"] == 6, resumed["run"]
for key in ("last", "update"):
    assert whole["result"]["loss"][key] == resumed["result"]["loss"][key], key
PY

# One process, saving after each update, so that most kills hit a checkpoint in the making.
updates=400 kills=0
ends_with 0 "$serial" "${training[@]}" --steps $updates --save quiet --out quiet-run
RANDOM=118
resume=()
for ((launch = 0; launch < 200; ++launch)); do
  "$serial" "${training[@]}" --steps $updates --save noisy --save-every 1 "${resume[@]}" --out "noisy-run-$launch" >out 2>err &
  job=$!
  sleep "0.$(printf %03d $((RANDOM % 300)))"
  if kill -KILL $job 2>/dev/null; then kills=$((kills + 1)); fi
  code=0
  wait $job 2>/dev/null || code=$?
  [[ $code == 0 || -e noisy/update-$updates ]] && break # ended, or killed behind its last checkpoint
  [[ $code == 137 ]] || failed "exit code $code after $kills kills"
  for update in noisy/update-*; do
    [[ ! -e $update ]] || (cd "$update" && sha256sum --quiet -c SHA256SUMS) || failed "$update is complete by name alone"
  done
  if compgen -G "noisy/update-*" >/dev/null; then resume=(--resume noisy); else rm -rf noisy; fi
done
((kills >= 10)) || failed "only $kills kills"
same quiet noisy $updates
echo "the same bits after $kills kills"
