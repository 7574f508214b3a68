#!/bin/bash
# case_125: of a job that hangs the absent rank is named, with host, step and action, and those that wait for it are shown as waiting; no
# alarm while work goes on, however slow.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
timeout_seconds=3
training="bench $small --steps 6 --warmup 0 --no-verify"

named() { # RANK: as silent at step 3, with its host and last action
  grep -qE "^watchdog: rank $1 on [^ ]+ is silent for .*step 3, last action: [a-z]+" err || failed "rank $1 isn't named"
  [[ $(grep -c "^watchdog: " err) == 1 ]] || failed "several alarms"
}

begin=$SECONDS
# shellcheck disable=SC2086
ends_with 3 $SHARDMARK_MPIRUN -n 4 "$ddp" $training --timeout $timeout_seconds --inject stop:rank=2,step=3 --out stopped
((SECONDS - begin <= timeout_seconds + 10)) || failed "it took $((SECONDS - begin)) s"
named 2
for rank in 0 1 3; do grep -qE "^ +$rank +[^ ]+ +waiting +3 " err || failed "rank $rank isn't shown as waiting"; done
has_state stopped failed

# Where ranks are threads, and where there is one.
# shellcheck disable=SC2086
{
  ends_with 3 "$ddp" $training --ranks-as-threads 2 --timeout 1 --inject stop:rank=1,step=3 --out thread
  named 1
  has_state thread failed
  ends_with 3 "$serial" $training --timeout 1 --inject stop:rank=0,step=3 --out alone
  named 0
  has_state alone failed
}

# A rank that is late, but not silent for as long as the time-out.
# shellcheck disable=SC2086
ends_with 0 $SHARDMARK_MPIRUN -n 4 "$ddp" $training --timeout 6 --inject delay:rank=2,step=3,seconds=3 --out late
has_state late completed
python3 -c "
import json
steps = json.load(open('late/record.json'))['result']['step_seconds']
assert steps['max'] >= 3 > steps['median'], steps"
echo "the absent rank was named"
