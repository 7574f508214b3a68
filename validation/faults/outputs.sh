#!/bin/bash
# Where results go: what can't be written is found before the work where that is possible, and costs no measurement otherwise.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck disable=SC2206 # lists of words
bench=("$serial" bench $small --steps 2 --no-verify)

ends_with 2 "${bench[@]}" --json none/file
says "none/file can't be written"
ends_with 2 "$serial" plan --json none/file
says "none/file can't be written"
ends_with 2 "${bench[@]}" --out /proc/none/run
says "can't make the run folder"

ends_with 0 "${bench[@]}" --out run --json both.json --csv both.csv
has_state run completed
ends_with 2 "${bench[@]}" --out run
says "runs are never written over"

# A full disk at the end: exit code 3, but the record and the table are there.
ends_with 3 "${bench[@]}" --out full --json /dev/full
says "can't append to /dev/full"
grep -q "^SHARDMARK serial" out || failed "the measurements were not printed"
has_state full completed
ends_with 3 bash -c 'exec "$@" >/dev/full' - "${bench[@]}" --out mute
says "No space left on device"
has_state mute completed
ends_with 3 bash -c 'exec "$@" >/dev/full' - "$serial" plan
says "No space left on device"
ends_with 0 bash -c 'exec "$@" <&-' - "${bench[@]}" --out unread

# Two runs that write into the same files: whole lines, one header.
"${bench[@]}" --out one --json both.json --csv both.csv >/dev/null &
"${bench[@]}" --out two --json both.json --csv both.csv >/dev/null
wait $!
python3 -c "import json; assert len([json.loads(line) for line in open('both.json')]) == 3"
[[ $(wc -l <both.csv) == 4 && $(grep -c record_id both.csv) == 1 ]] || failed "torn CSV"
echo "all outputs are as expected"
