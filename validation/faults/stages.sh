#!/bin/bash
# Pipelines when something is wrong: a value that isn't finite where nothing can be skipped any more, signals, a lost stage. Each ends in
# bounded time on all ranks, with one message and the documented exit code.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
pipedream=$SHARDMARK_BIN/pipedream
gpt="--layers 3 --hidden 16 --heads 2 --seq 8 --batch 8 --microbatches 4 --no-verify --warmup 0"

# A NaN on the first, a middle and the last stage. Flush skips the update on all ranks and goes on; the others stop.
# shellcheck disable=SC2086 # lists of words
for rank in 0 1 2; do
  for mode in stash vertical 2bw; do
    ends_with 3 "$pipedream" bench $gpt --mode $mode --ranks-as-threads 3 --steps 20 --inject nan:rank=$rank,step=3 --out "nan-$mode-$rank"
    says "a gradient is not finite"
    has_state "nan-$mode-$rank" failed
  done
  ends_with 3 $SHARDMARK_MPIRUN -n 3 "$pipedream" bench $gpt --mode stash --steps 20 --inject nan:rank=$rank,step=3 --out "nan-mpi-$rank"
  says "a gradient is not finite"
  ends_with 0 "$pipedream" bench $gpt --ranks-as-threads 3 --steps 20 --inject nan:rank=$rank,step=3 --out "nan-flush-$rank"
  has_state "nan-flush-$rank" completed
done

# shellcheck disable=SC2086
ends_with 2 "$pipedream" bench $gpt --ranks-as-threads 3 --inject nan:rank=2,tensor=wte.weight
says "--inject names wte.weight on rank 2 (another stage has it"

# SIGTERM in the middle: all stages stop behind the same batch, and the record says what was measured.
# shellcheck disable=SC2086
{
  for mode in stash vertical 2bw flush; do
    stopped TERM 0 "term-$mode" "$pipedream" bench $gpt --mode $mode --ranks-as-threads 3 --steps 1000000
    grep -q "stopped by a signal after [1-9][0-9]* of 1000000 timed steps" out || failed "the table doesn't say so"
  done
  # The launcher's own exit code.
  stopped TERM 1 term-mpi $SHARDMARK_MPIRUN -n 3 "$pipedream" bench $gpt --mode stash --steps 1000000
}

# A stage that is killed, or stands still.
begin=$SECONDS
# shellcheck disable=SC2086
for rank in 0 2; do
  code=0
  timeout -s KILL 60 $SHARDMARK_MPIRUN -n 3 "$pipedream" bench $gpt --mode stash --steps 1000000 --inject kill:rank=$rank,step=5 >out 2>err || code=$?
  [[ $code != 0 ]] || failed "a lost stage went unseen"
  ends_with 3 $SHARDMARK_MPIRUN -n 3 "$pipedream" bench $gpt --mode stash --steps 1000000 --timeout 2 --inject stop:rank=$rank,step=5
  grep -qE "^watchdog: rank $rank on [^ ]+ is silent" err || failed "rank $rank isn't named"
done
((SECONDS - begin < 60)) || failed "it took $((SECONDS - begin)) s"
echo "all pipelines ended"
