#!/bin/bash
# Checkpoints as users meet them: a folder that exists, other options, damage, a disk that becomes full, a signal. Nothing measured is lost,
# and what was complete stays so.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck disable=SC2206 # lists of words
training=("$ddp" bench $small --ranks-as-threads 2 --warmup 0 --steps 6 --no-verify)

refused() { # PATTERN COMMAND...
  local expected=$1
  shift
  ends_with 2 "$@" --out refused
  says "$expected"
  [[ ! -e refused ]] || failed "a run folder was left: $*"
}

refused "save-every without --save" "${training[@]}" --save-every 2
refused "No such file or directory); check the path in --resume" "${training[@]}" --resume none
mkdir empty
refused "it holds no complete checkpoint" "${training[@]}" --resume empty
refused "empty exists (nothing is ever written over)" "${training[@]}" --save empty
refused "means nothing in verify" "$ddp" verify --save x
ends_with 2 "${training[@]}" --save /proc/none/x --out nowhere
says "can't make the folder /proc/none/x"

ends_with 0 "${training[@]}" --save run --save-every 4 --out first
has_state first completed
[[ $(ls -A run) == update-6 ]] || failed "not one checkpoint: $(ls -A run)"
(cd run/update-6 && sha256sum --quiet -c SHA256SUMS) || failed "the sums are wrong"
grep -qE "^  checkpoints +2 +[0-9.]+ s beside the steps, [0-9.]+ MiB each, in run$" out || failed "the table doesn't say what was saved"
python3 - <<'PY' || failed "the record"
import json
run = json.load(open("first/record.json"))
assert run["run"]["resumed_from_update"] is None and run["result"]["checkpoints"]["saved"] == 2, run
PY
refused "run exists (it holds a checkpoint, update-6); add --resume run to go on from it" "${training[@]}" --save run
refused "it is one checkpoint, not the folder that holds them); give its parent to --resume" "${training[@]}" --resume run/update-6/
refused "it has made 6 updates" "${training[@]}" --resume run
refused "its seed is 1, this run's is 2" "${training[@]}" --resume run --seed 2

# Without --save a resumed run leaves the folder as it was.
# shellcheck disable=SC2206
longer=("$ddp" bench $small --ranks-as-threads 3 --warmup 0 --steps 9 --no-verify)
ends_with 0 "${longer[@]}" --resume run --out second
grep -q "^  resumed from update 6 of run$" out || failed "the table doesn't say that it was resumed"
[[ $(ls -A run) == update-6 ]] || failed "the folder has changed"
python3 - <<'PY' || failed "the record"
import json
run = json.load(open("second/record.json"))
assert run["run"]["resumed_from_update"] == 6 and run["method"]["timed_steps"] == 3 and run["result"]["loss"]["update"] == 9, run
PY

# The disk becomes full at the second checkpoint: the first stays, what was measured is printed and recorded, exit code 3.
cp -r run kept
ends_with 3 bash -c 'trap "" XFSZ; ulimit -f 20; exec "$@"' - "${longer[@]}" --save run --resume run --save-every 2 --out full
says "no checkpoint of update 8: can't write .* (File too large); run/update-6 is intact"
grep -q "^SHARDMARK ddp" out || failed "the measurements were not printed"
grep -q "stopped by a checkpoint that couldn't be written after 2 of 3 timed steps" out || failed "the table doesn't say why it ended"
has_state full failed
diff -r run kept || failed "the older checkpoint has changed"

# Damage is found before any work.
for file in model.safetensors optimizer.safetensors state.json SHA256SUMS; do
  rm -rf damaged
  cp -r run damaged
  truncate -s -1 "damaged/update-6/$file"
  refused "$file (found" "${longer[@]}" --resume damaged
  rm -rf damaged
  cp -r run damaged
  printf '\x07' | dd of="damaged/update-6/$file" bs=1 seek=60 conv=notrunc status=none
  refused "damaged/update-6/.*(found .*; expected " "${longer[@]}" --resume damaged
done

# A signal: what was trained so far is saved.
# shellcheck disable=SC2206
endless=("$ddp" bench $small --ranks-as-threads 2 --warmup 0 --steps 1000000 --no-verify)
"${endless[@]}" --save stopped --out signal >out 2>err &
job=$!
for ((tries = 0; tries < 200; ++tries)); do [[ -e stopped ]] && break; sleep 0.05; done
sleep 0.5
kill -TERM $job
wait $job || failed "the run failed"
has_state signal cancelled
[[ $(ls -A stopped) == update-[1-9]* ]] || failed "nothing was saved"
echo "all checkpoints are as expected"
