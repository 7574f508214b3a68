#!/bin/bash
# usage: zero.sh RANKS; `zero verify` as users start it: every stage, mpirun and thread ranks, all models, sizes that don't divide, ranks
# without samples.
set -euo pipefail
ranks=$1
gpt="--layers 2 --hidden 48 --heads 3 --seq 17 --vocab 61"
mpi="$SHARDMARK_MPIRUN -n $ranks $SHARDMARK_BIN/zero verify"
threads="$SHARDMARK_BIN/zero verify --ranks-as-threads $ranks"

verified() {
  local last
  last=$("$@" | tail -n 1)
  echo "$last"
  [[ $last == "SHARDMARK zero VERIFIED "* ]] || { echo "not VERIFIED: $*"; exit 1; }
}

# shellcheck disable=SC2086 # lists of words
for stage in 1 2 3; do
  verified $mpi --stage $stage $gpt --tied-embeddings --clip-norm 0.5 --batch 13 --microbatches 3 --optimizer adamw --weight-decay 0.1 --steps 8
  verified $mpi --stage $stage --model mlp --hidden 57 --batch 3 --momentum 0.9 --dtype bf16
  verified $threads --stage $stage $gpt --dropout 0.1 --batch 9 --microbatches 2 --dtype bf16 --optimizer adamw --clip-norm 0.5 --steps 8
  verified $threads --stage $stage --model convnet --layers 2 --hidden 6 --batch 9 --microbatches 2 --steps 5
  verified $threads --stage $stage --model mlp --hidden 57 --batch 11 --dtype fp64 --optimizer adamw --no-overlap
done
verified $mpi --stage 3 --model convnet --layers 2 --hidden 6 --batch 7 --batch-norm sync --steps 5

# A fault in one rank's piece is found, and one that can't be is refused.
# shellcheck disable=SC2086
if [[ $ranks == 3 ]]; then
  code=0
  $threads --stage 3 $gpt --batch 7 --inject bitflip:rank=2 > /dev/null || code=$?
  [[ $code == 1 ]] || { echo "a flipped bit ended in $code"; exit 1; }
  code=0
  refused=$($threads --stage 2 $gpt --batch 7 --inject drop-reduction:rank=1 2>&1) || code=$?
  [[ $code == 2 && $refused == *"drop-reduction with shared gradients"* ]] || { echo "$code: $refused"; exit 1; }
fi
