#!/bin/bash
# SIGTERM sets a flag that a rank sees between its steps; a rank that doesn't end within the grace period is ended with the board.
# usage: signals.sh PROGRAM
set -u
program=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
fail() {
  echo "FAILED: $1"
  cat "$log"
  exit 1
}

# One rank, started without a launcher, so that the signal reaches it and nobody else.
"$program" 30 1000000 none 0 0 >"$log" 2>&1 &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
code=$?
[ $code -eq 0 ] || fail "a signal between steps: exit code $code, expected a good end"
grep -q "watchdog:" "$log" && fail "a signal between steps: the watchdog spoke"

"$program" 30 1000000 vanish 0 2 >"$log" 2>&1 &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
code=$?
[ $code -eq 3 ] || fail "a signal to a lost rank: exit code $code, expected 3"
grep -q "signal 15 asked for a stop" "$log" || fail "a signal to a lost rank: no reason"
grep -q "forward 2" "$log" || fail "a signal to a lost rank: no board"
grep -q "last words of rank 0: stopped" "$log" || fail "a signal to a lost rank: no last words"
echo "all checks passed"
