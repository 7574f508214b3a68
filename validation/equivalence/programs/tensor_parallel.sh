#!/bin/bash
# usage: tensor_parallel.sh RANKS; `tensor_parallel verify` as thread ranks and under mpirun: models, types, optimizers, sizes that don't
# divide anything but the ranks; and what is refused before a rank starts (cases 10 and 22).
set -euo pipefail
ranks=$1
heads=$((ranks == 3 ? 3 : 8))
blocks="--model gpt --layers 2 --hidden $((8 * heads)) --heads $heads"
gpt="$blocks --seq 7 --vocab 31"
rows="$blocks --seq 24 --sequence-parallel"
mlp="--model mlp --hidden $((5 * ranks))"
program="$SHARDMARK_BIN/tensor_parallel"

verified() {
  local last
  last=$("$@" | tail -n 1)
  [[ $last == "SHARDMARK "*" VERIFIED "* ]] || { echo "not VERIFIED: $*"; echo "$last"; exit 1; }
}
threads() { verified "$program" verify --ranks-as-threads "$ranks" "$@"; }
mpi() { verified $SHARDMARK_MPIRUN -n "$ranks" "$program" verify "$@"; }
refused() {
  local expected=$1 code=0 said
  shift
  said=$("$program" verify "$@" 2>&1) || code=$?
  [[ $code == 2 && $said == *"$expected"* ]] || { echo "not refused as expected: $*: $code $said"; exit 1; }
}

# shellcheck disable=SC2086 # lists of words
{
  for layers in 1 2 3; do threads $mlp --layers $layers --batch 7 --steps 8; done
  threads $mlp --layers 3 --batch 9 --microbatches 2 --dtype fp64 --momentum 0.9 --nesterov --clip-norm 0.1
  threads $mlp --layers 2 --batch 9 --microbatches 2 --optimizer adamw --clip-norm 0.1 --backend reference
  for alone in "column" "column --gather-output" "row" "row --scatter-input"; do
    threads $mlp --layers 2 --layer $alone --batch 7 --steps 4 --dtype fp64 --clip-norm 0.1 --tp-chunks 3
  done
  threads $gpt --batch 5 --steps 8 --dropout 0.1
  threads $gpt --batch 5 --steps 5 --dtype fp64 --microbatches 3 --tied-embeddings --clip-norm 0.5 --optimizer adamw --weight-decay 0.1
  threads $gpt --batch 4 --steps 5 --dtype bf16 --dropout 0.1 --optimizer adamw
  threads $blocks --seq 7 --vocab 2 --batch 5 --steps 5 --tp-chunks 4
  threads $blocks --seq 1 --vocab 31 --batch 5 --steps 5
  threads $rows --vocab 31 --batch 5 --steps 8 --dropout 0.1
  threads $rows --vocab 31 --batch 5 --steps 5 --dtype fp64 --microbatches 3 --tied-embeddings --clip-norm 0.5 --optimizer adamw --tp-chunks 3
  threads $rows --vocab 64 --batch 4 --steps 5 --dtype bf16 --dropout 0.1
  for rule in all every:2 sqrt selective; do
    threads $rows --vocab 31 --batch 5 --steps 4 --microbatches 2 --dropout 0.1 --recompute $rule
    threads $gpt --batch 5 --steps 4 --microbatches 2 --recompute $rule --tp-chunks 2
  done
  threads $mlp --layers 4 --batch 7 --steps 4 --microbatches 3 --recompute every:2
  threads $mlp --layers 3 --layer column --gather-output --batch 7 --steps 4 --recompute all
  mpi $rows --vocab 31 --batch 3 --steps 5 --tp-chunks 2
  mpi $gpt --batch 3 --steps 5 --clip-norm 0.5
  mpi $mlp --layers 4 --batch 7 --steps 5
  mpi $gpt --batch 3 --steps 5 --comm peer
  if [[ $ranks == 4 ]]; then
    wide=$("$program" plan --ranks 4 --layers 24 --sequence-parallel --tp-chunks 3 | grep -E '^ tensor .{93}' || true)
    [[ -z $wide ]] || { echo "wider than 100 columns: $wide"; exit 1; }
    refused "start 1, 2, 3, 6 ranks" --ranks-as-threads 4 --model gpt --heads 6 --hidden 48
    refused "start 1, 3 ranks" --ranks-as-threads 2 --model mlp --hidden 3
    refused "start 1, 2, 3, 6 ranks" --ranks-as-threads 4 --model gpt --seq 6 --sequence-parallel
    refused "cuts the second" --ranks-as-threads 4 --model mlp --layer row --layers 1
    refused "nothing else is gathered" --ranks-as-threads 4 --model mlp --layer row --gather-output
    refused "nothing else is scattered" --ranks-as-threads 4 --model mlp --scatter-input
    refused "use --model mlp" --ranks-as-threads 4 --model gpt --layer row
    refused "holds nothing" --ranks-as-threads 4 --model gpt --vocab 2 --inject bitflip:rank=3,tensor=wte.weight
    refused "no gradient is reduced" --ranks-as-threads 4 --model gpt --inject drop-reduction
    refused "no sequence" --ranks-as-threads 4 --model mlp --sequence-parallel
    refused "has no formula" --ranks-as-threads 4 --model gpt --recompute except-last-micro
    refused "convolutions" --ranks-as-threads 4 --model convnet
  fi
}
