#!/bin/bash
# SIGTERM and SIGINT end a run after the update at hand: the record says cancelled and holds what was measured. Several times: a handler
# that ran on the stack of oneDNN's matmul once overwrote the heap, and some runs crashed.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# shellcheck disable=SC2206 # lists of words
training=(bench --layers 2 --hidden 64 --heads 2 --seq 32 --steps 1000000 --warmup 0 --no-verify)
for i in 1 2 3; do
  stopped TERM 0 "alone-$i" "$serial" "${training[@]}"
  grep -q "stopped by a signal after [1-9][0-9]* of 1000000 timed steps" out || failed "the table doesn't say so"
  stopped INT 0 "threads-$i" "$ddp" "${training[@]}" --ranks-as-threads 2
  # The launcher's own exit code.
  # shellcheck disable=SC2086
  stopped TERM 1 "processes-$i" $SHARDMARK_MPIRUN -n 2 "$ddp" "${training[@]}"
done
# While it proves.
stopped TERM 3 proof "$serial" bench --layers 4 --hidden 512 --heads 4
says "stopped by signal 15"
echo "all runs were stopped"
