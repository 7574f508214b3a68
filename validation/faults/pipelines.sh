#!/bin/bash
# Pipelines that can't be run, and schedules that a user wrote wrongly: exit code 2 and one message, before any work.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
gpipe=$SHARDMARK_BIN/gpipe
pipedream=$SHARDMARK_BIN/pipedream
model_parallel=$SHARDMARK_BIN/model_parallel
gpt="--layers 4 --hidden 16 --heads 2 --seq 8"

# shellcheck disable=SC2086 # lists of words
{
  refused "7 pieces for 6 blocks" "$gpipe" plan $gpt --ranks 7
  refused "8 pieces for 6 blocks" "$pipedream" verify $gpt --ranks-as-threads 4 --virtual-stages 2
  refused "7 pieces for 6 blocks" "$model_parallel" bench $gpt --ranks-as-threads 7
  refused "balance 2,2 " "$gpipe" plan $gpt --ranks 2 --balance 2,2
  refused "balance 2,2,2" "$gpipe" plan $gpt --ranks 2 --balance 2,2,2
  refused "blocks of each chunk are expected" "$gpipe" plan $gpt --ranks 2 --balance 2,x
  refused "h.9" "$gpipe" plan $gpt --ranks 2 --split-points h.9
  refused "split" "$gpipe" plan $gpt --ranks 3 --split-points h.1
  refused "2bw with 3 micro-batches for 4 stages" "$pipedream" plan $gpt --ranks 4 --mode 2bw --microbatches 3
  for mode in stash vertical 2bw; do
    refused "these fill the bubble of a flush" "$pipedream" plan $gpt --ranks 2 --mode $mode --split-backward h1
  done
  refused "mode stash with --clip-norm" "$pipedream" verify $gpt --ranks-as-threads 2 --mode stash --clip-norm 1
  refused "mode stash with --tied-embeddings" "$pipedream" verify $gpt --ranks-as-threads 2 --mode stash --tied-embeddings
  refused "split-backward h1 with --virtual-stages 2" "$pipedream" plan $gpt --ranks 2 --split-backward h1 --virtual-stages 2
  refused "with several chunks on a rank" "$pipedream" plan $gpt --ranks 2 --virtual-stages 2 --recompute budget:least
  refused "with --split-backward" "$pipedream" plan $gpt --ranks 2 --split-backward h1 --recompute budget:50%
  refused "take at least" "$gpipe" plan $gpt --ranks 2 --recompute budget:0.01
  refused "this model has none" "$gpipe" plan --model mlp --ranks 2 --recompute selective
  refused "means nothing in gpipe" "$gpipe" plan $gpt --ranks 2 --mode stash

  "$gpipe" plan $gpt --ranks 2 --microbatches 3 --out good.schedule >/dev/null
  "$pipedream" plan $gpt --ranks 2 --mode stash --out stash.schedule >/dev/null
  refused "good.schedule\" exists" "$gpipe" plan $gpt --ranks 2 --out good.schedule
  refused "good.schedule\" exists" "$gpipe" plan $gpt --ranks 2 --svg good.schedule
  refused "good.schedule\" exists" "$gpipe" bench $gpt --ranks-as-threads 2 --svg good.schedule
  refused "are both given" "$gpipe" plan $gpt --ranks 2 --compare --svg x.svg
  refused "are both given" "$pipedream" plan $gpt --ranks 2 --virtual-stages 2 --schedule good.schedule
  refused "means nothing in ddp" "$ddp" verify $gpt --schedule good.schedule
  refused "none.schedule\" can't be read" "$gpipe" verify $gpt --schedule none.schedule
  refused "it is a folder" "$gpipe" verify $gpt --schedule .
  refused "/dev/zero\" is too long" "$gpipe" verify $gpt --schedule /dev/zero
  refused "has 2 lanes, for 3 ranks" "$gpipe" verify $gpt --ranks-as-threads 3 --schedule good.schedule
  refused "has micros 3, expected 4" "$gpipe" plan $gpt --microbatches 4 --schedule good.schedule
  refused "3 micro-batches of 2 samples" "$gpipe" plan $gpt --batch 2 --schedule good.schedule
  refused "has micros 3, expected 1" "$pipedream" plan $gpt --mode stash --schedule good.schedule
  refused "has a prologue or an epilogue" "$gpipe" plan $gpt --microbatches 1 --schedule stash.schedule
  "$pipedream" plan $gpt --ranks 2 --mode vertical --out vertical.schedule >/dev/null
  "$pipedream" plan $gpt --ranks 2 --mode vertical --clip-norm 1 --out joint.schedule >/dev/null
  refused "write the line 'decisions joint'" "$pipedream" plan $gpt --mode vertical --clip-norm 1 --schedule vertical.schedule
  refused "write the line 'decisions per-lane'" "$pipedream" plan $gpt --mode vertical --schedule joint.schedule
  refused "has weights latest" "$pipedream" plan $gpt --mode vertical --schedule stash.schedule
}

# One change each, and what is said of it.
broken() { # PATTERN FILE SED-SCRIPT [OPTION...]
  sed "$3" "$2" >broken.schedule
  cmp -s "$2" broken.schedule && failed "the change $3 changes nothing"
  # shellcheck disable=SC2086
  for command in plan "verify --ranks-as-threads 2" "bench --ranks-as-threads 2"; do
    refused "$1" "$pipedream" $command $gpt --schedule broken.schedule "${@:4}"
  done
}
broken "line 11, column 3: 'forwards' is no action" good.schedule '11s/forward/forwards/'
broken "line 11, column 17: 'x' is no number" good.schedule '11s/chunk 0/chunk x/'
broken "lane 1, body action .*backward chunk 1 micro 1.*backward before" good.schedule 's/backward chunk 1 micro 0/backward chunk 1 micro 1/'
broken "not all gradients of chunk 0 are complete" good.schedule '/backward chunk 0 micro 1/d'
broken "lane 0" good.schedule '/forward chunk 0 micro 2/d'
broken "lane 1" good.schedule 's/backward chunk 1 micro 0 version 0/backward chunk 1 micro 0 version 1/'
broken "gives lane 1 no chunk" good.schedule 's/^chunks 0 1/chunks 0 0/'
broken "recomputation is inserted by the program" good.schedule 's/forward chunk 0 micro 0.*/& keeps input/;s/^\( *\)backward chunk 0 micro 0\(.*\)/\1recompute chunk 0 micro 0\2\n&/'
broken "its stash is not there" good.schedule 's/forward chunk 0 micro 0.*/& keeps input/'
broken "'kept' where stash or selective or input or nothing should stand" good.schedule 's/forward chunk 0 micro 0.*/& keeps kept/'
broken "has updates 3, expected 1" good.schedule 's/^updates 1/updates 3/;s/^leaves 1 3/leaves 1 1/'
broken "not all gradients of chunk 0 are complete" joint.schedule '/^body/,/^lane 1/{/backward chunk 0/d}' --mode vertical --clip-norm 1
broken "the gradients of this update have not been reduced" joint.schedule '/^lane 1/,/^body/{/reduce/d}' --mode vertical --clip-norm 1
broken "has other chunks than one a lane in order\|has weights\|lane" stash.schedule 's/^chunks 0 1/chunks 1 0/' --mode stash
echo "all requests were refused"
