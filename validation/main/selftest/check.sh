#!/bin/bash
# A test of the test mains: known outcomes must give the known exit codes and show the failing rank's message.
#   check.sh plain|ranked PROGRAM
set -u
kind=$1
program=$2
failures=0

# expect CODE TEXTS COMMAND...: the exit code (nonzero: any but 0), and what the output must contain: one extended regular expression a line.
# The rank-aware main gives others a few seconds to come out of a failed test, so nothing here may take long.
expect() {
  local code=$1 texts=$2 text output actual missing=""
  shift 2
  output=$(timeout 30 "$@" 2>&1)
  actual=$?
  while IFS= read -r text; do
    grep -Eq -- "$text" <<<"$output" || missing+="'$text' "
  done <<<"$texts"
  if [[ $actual == 124 ]]; then
    echo "FAILED (hangs): $*"
    failures=$((failures + 1))
  elif [[ $code == nonzero && $actual == 0 ]] || [[ $code != nonzero && $actual != "$code" ]]; then
    echo "FAILED (exit code $actual, expected $code): $*"
    echo "$output"
    failures=$((failures + 1))
  elif [[ -n $missing ]]; then
    echo "FAILED (output lacks $missing): $*"
    echo "$output"
    failures=$((failures + 1))
  else
    echo "ok: ${*: -1} exits $actual"
  fi
}

if [[ $kind == plain ]]; then
  expect 0 'PASSED' "$program" --gtest_filter=Plain.Passes
  expect nonzero 'on purpose' "$program" --gtest_filter=Plain.Passes:Plain.Fails
  expect 77 'SKIPPED: all 1' "$program" --gtest_filter=Plain.Skips
  expect 0 'SKIPPED' "$program" --gtest_filter=Plain.Passes:Plain.Skips
  expect nonzero 'no test ran' "$program" --gtest_filter=Plain.Absent
else
  run() {
    local ranks=$1 code=$2 texts=$3
    shift 3
    # shellcheck disable=SC2086 # the launcher is several words
    SHARDMARK_TEST_RANKS=$ranks expect "$code" "$texts" $SHARDMARK_MPIRUN -n "$ranks" "$program" "--gtest_filter=Ranked.$1"
  }
  run 3 0 'PASSED' Passes
  run 3 nonzero $'\\[rank 1\\].*Failure\nexpected on rank one\nRanked.FailsOnRankOne failed on ranks 1 of 3' FailsOnRankOne
  run 3 nonzero $'left before the barrier\n\\[rank 1\\].*ending the job' LeavesRankOneBeforeABarrier
  run 2 nonzero 'thrown on rank one' ThrowsOnRankOne
  run 2 0 'PASSED' SkipsOnRankOne
  run 2 77 'SKIPPED: all 1' Skips
  run 2 nonzero 'no test ran' Absent
  # A launcher that starts another number of ranks than the test was registered with: case_108.
  # shellcheck disable=SC2086
  SHARDMARK_TEST_RANKS=4 expect nonzero 'started 4 .* sees 2' $SHARDMARK_MPIRUN -n 2 "$program" --gtest_filter=Ranked.Passes
fi
exit $((failures > 0))
