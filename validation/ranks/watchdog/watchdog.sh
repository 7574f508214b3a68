#!/bin/bash
# Case 125: a silent rank ends the job within the time-out and is named; waiting ranks aren't blamed; work with a heartbeat raises no alarm.
# usage: watchdog.sh PROGRAM RANKS
set -u
program=$1 ranks=$2
fails=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() {  # run TIMEOUT STEPS MISDEED RANK STEP: sets code, seconds; output in $log
  local start end
  start=$(date +%s%N)
  timeout -k 1 60 $SHARDMARK_MPIRUN -n "$ranks" "$program" "$@" >"$log" 2>&1
  code=$?
  end=$(date +%s%N)
  seconds=$(((end - start) / 1000000000))
}
check() {  # check MESSAGE CONDITION...
  local message=$1
  shift
  if ! "$@"; then
    echo "FAILED: $message (exit code $code after $seconds s)"
    cat "$log"
    fails=$((fails + 1))
  fi
}
says() { grep -Eq -- "$1" "$log"; }
says_not() { ! grep -Eq -- "$1" "$log"; }
victim=$((ranks - 1))

for misdeed in stop vanish; do
  run 2 1000 $misdeed $victim 3
  check "$misdeed: exit code 3" [ "$code" -eq 3 ]
  check "$misdeed: ends soon after the time-out" [ "$seconds" -le 12 ]
  check "$misdeed: names rank, host, state, step and action" says "rank $victim on $(hostname) is silent for [0-9.]+ s .*: working, step 3, last action: forward 3"
  check "$misdeed: blames nobody else" says_not "rank [^$victim] on .* is silent"
  check "$misdeed: shows the others as waiting" says "^ +0 .* waiting +3 .*all_reduce 3"
  check "$misdeed: one board" [ "$(grep -c 'last action$' "$log")" -eq 1 ]
  check "$misdeed: last words" says "last words of rank 0: failed"
done

run 2 1000 forget $victim 3
check "forget: exit code 3" [ "$code" -eq 3 ]
check "forget: nobody is silent" says_not "is silent"
check "forget: all wait" says "no rank on .* has worked for"
check "forget: shows the wait" says "^ +$victim .* waiting +3 .*a message that nobody sends"

run 2 20 slow $victim 3
check "slow: long work with a heartbeat is no alarm" [ "$code" -eq 0 ]
check "slow: no word of the watchdog" says_not "watchdog:"

run 20 30 none 0 0
check "none: a good end" [ "$code" -eq 0 ]

[ "$fails" -eq 0 ] && echo "all checks passed"
exit $((fails > 0))
