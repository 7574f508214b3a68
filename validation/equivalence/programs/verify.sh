#!/bin/bash
# usage: verify.sh RANKS; `ddp verify` as users start it: mpirun and thread ranks, all models, every type, sizes that don't divide.
set -euo pipefail
ranks=$1
convnet="--model convnet --layers 2 --hidden 6 --steps 5"
gpt="--layers 2 --hidden 48 --heads 3 --seq 17 --vocab 61"
mpi="$SHARDMARK_MPIRUN -n $ranks $SHARDMARK_BIN/ddp"
threads="$SHARDMARK_BIN/ddp"

verified() {
  local last
  last=$("$@" | tail -n 1)
  echo "$last"
  [[ $last == "SHARDMARK "*" VERIFIED "* ]] || { echo "not VERIFIED: $*"; exit 1; }
}

# shellcheck disable=SC2086 # lists of words
{
  verified $mpi verify $gpt --batch 10 --steps 20
  verified $mpi verify $gpt --batch 11 --accumulate 1 --dtype fp64 --tied-embeddings --steps 5 --clip-norm 0.5
  verified $mpi verify --model mlp --batch 7 --steps 20 --optimizer adamw --bucket-mb 0.01
  verified $threads verify --ranks-as-threads "$ranks" $gpt --batch 9 --dropout 0.1 --optimizer adamw --steps 20 --bucket-mb 0.01
  verified $threads verify --ranks-as-threads "$ranks" --model mlp --batch 15 --accumulate 2 --dtype fp64 --momentum 0.9 --nesterov
  verified $mpi verify $gpt --batch 11 --accumulate 2 --dtype bf16 --tied-embeddings --dropout 0.1 --steps 10
  verified $threads verify --ranks-as-threads "$ranks" --model mlp --batch 13 --dtype bf16 --optimizer adamw --steps 10
  verified $mpi verify $gpt --batch 17 --accumulate 3 --reduce-order ranks-first --tied-embeddings --clip-norm 0.5 --steps 5
  verified $threads verify --ranks-as-threads "$ranks" --model mlp --batch 29 --accumulate 4 --reduce-order ranks-first --optimizer adamw
  verified $mpi verify $convnet --batch 10
  verified $mpi verify $convnet --batch 9 --accumulate 2 --batch-norm sync --dtype fp64
  verified $threads verify --ranks-as-threads "$ranks" $convnet --batch 9 --accumulate 2 --dtype fp64
  verified $threads verify --ranks-as-threads "$ranks" $convnet --batch 5 --batch-norm sync --optimizer adamw
  if [[ $ranks == 1 ]]; then
    verified "$SHARDMARK_BIN/serial" verify $convnet --batch 5 --microbatches 2
    verified "$SHARDMARK_BIN/checkpointing" verify --model gpt --layers 6 --hidden 24 --heads 3 --seq 9 --vocab 31 --dropout 0.1 --batch 5
    verified "$SHARDMARK_BIN/checkpointing" verify --model mlp --layers 8 --recompute sqrt --batch 7 --microbatches 3 --optimizer adamw
    verified "$SHARDMARK_BIN/checkpointing" verify $convnet --recompute every:2 --batch 5 --microbatches 2
    verified "$SHARDMARK_BIN/checkpointing" verify --model gpt --layers 6 --hidden 24 --heads 3 --seq 9 --vocab 31 --dropout 0.1 --batch 5 --microbatches 2 --recompute budget:least --dtype bf16
    verified "$SHARDMARK_BIN/serial" verify $gpt --batch 5 --microbatches 3
    verified "$SHARDMARK_BIN/serial" verify --model mlp --backend reference --batch 5 --dtype fp64
    verified "$SHARDMARK_BIN/serial" verify $gpt --batch 5 --microbatches 3 --dtype bf16
  fi
}
