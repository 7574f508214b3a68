#!/bin/bash
# usage: dp.sh RANKS; `dp verify` as users start it: mpirun and thread ranks, all models, every type, sizes that don't divide; bench's
# table of the ranks' shares.
set -euo pipefail
ranks=$1
convnet="--model convnet --layers 2 --hidden 6 --steps 5"
gpt="--layers 2 --hidden 48 --heads 3 --seq 17 --vocab 61"
program="$SHARDMARK_BIN/dp"
mpi="$SHARDMARK_MPIRUN -n $ranks $program"

verified() {
  local last
  last=$("$@" | tail -n 1)
  [[ $last == "SHARDMARK dp VERIFIED "* ]] || { echo "not VERIFIED: $*"; echo "$last"; exit 1; }
}

# shellcheck disable=SC2086 # lists of words
{
  verified $mpi verify $gpt --batch 10 --steps 8 --clip-norm 0.5
  verified $mpi verify $gpt --batch 11 --accumulate 2 --dtype bf16 --tied-embeddings --dropout 0.1 --steps 6
  verified $program verify --ranks-as-threads "$ranks" $gpt --batch 9 --optimizer adamw --weight-decay 0.1 --steps 8 --bucket-mb 0.01
  verified $program verify --ranks-as-threads "$ranks" --model mlp --batch 13 --accumulate 2 --dtype fp64 --momentum 0.9 --nesterov --steps 6
  verified $program verify --ranks-as-threads "$ranks" --model mlp --batch 5 --dtype bf16 --optimizer adamw --steps 6
  verified $program verify --ranks-as-threads "$ranks" $convnet --batch 10 --dtype fp64
  verified $program verify --ranks-as-threads "$ranks" $convnet --batch 9 --accumulate 2 --batch-norm sync --dtype fp64
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  out=$(cd "$folder" && $mpi bench --model mlp --layers 2 --hidden 16 --batch 9 --steps 3 --warmup 1)
  [[ $(tail -n 1 <<<"$out") == "SHARDMARK dp VERIFIED "* ]]
  if ((ranks > 1)); then
    grep -q "received MB (formula)" <<<"$out"
    [[ $(grep -cE '^ +ddp ' <<<"$out") == 2 ]]
    # What rank 0 saved, ddp goes on from on another number of ranks, to the same loss.
    mlp="--model mlp --layers 2 --hidden 16 --batch 9 --optimizer adamw --deterministic --warmup 0 --no-verify"
    cd "$folder"
    $program bench --ranks-as-threads "$ranks" $mlp --steps 3 --save run >/dev/null
    loss() { grep '^  loss ' | awk '{print $2}'; }
    resumed=$("$SHARDMARK_BIN/ddp" bench --ranks-as-threads 2 $mlp --steps 6 --resume run | loss)
    whole=$($program bench --ranks-as-threads "$ranks" $mlp --steps 6 | loss)
    [[ -n $whole && $resumed == "$whole" ]] || { echo "resumed: $resumed, uninterrupted: $whole"; exit 1; }
    code=0
    out=$($program verify --ranks-as-threads "$ranks" $gpt --batch 9 --steps 3 --inject bitflip:rank=1) || code=$?
    [[ $code == 1 ]] && grep -q FAILED <<<"$out"
  fi
}
