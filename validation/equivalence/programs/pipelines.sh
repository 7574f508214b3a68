#!/bin/bash
# usage: pipelines.sh RANKS; every pipeline as thread ranks, from one micro-batch to more than twice the stages, models and rules of
# recomputation in turn, sizes that don't divide; each main mode once more under mpirun.
set -euo pipefail
ranks=$1
gpt="--model gpt --layers 7 --hidden 12 --heads 3 --seq 5 --vocab 31 --dropout 0.1"
mlp="--model mlp --layers 8 --hidden 11"
convnet="--model convnet --layers 7 --hidden 3 --dtype fp64" # in fp32, inputs of ReLU near 0 can leave too little power
synchronous=("model_parallel" "gpipe" "gpipe --backward-order oldest" "pipedream" "pipedream --virtual-stages 2"
  "pipedream --split-backward h1" "pipedream --split-backward h2" "pipedream --split-backward v")
asynchronous=("pipedream --mode stash" "pipedream --mode vertical" "pipedream --mode 2bw")
rules=(none all every:2 except-last-micro last-stage-off)
runs=0

verified() {
  local last
  last=$("$@" | tail -n 1)
  [[ $last == "SHARDMARK "*" VERIFIED "* ]] || { echo "not VERIFIED: $*"; echo "$last"; exit 1; }
  runs=$((runs + 1))
}

# threads PROGRAM [OPTION ...]: its first word is the program.
threads() { verified "$SHARDMARK_BIN/$1" verify --ranks-as-threads "$ranks" --batch 11 --steps 8 "${@:2}"; }

# shellcheck disable=SC2086 # lists of words
for micros in 1 2 3 4 5 6 8; do
  for pipeline in "${synchronous[@]}" "${asynchronous[@]}"; do
    # Two buffers are enough only when the pipeline fills within one batch.
    if [[ $pipeline == *2bw ]] && ((micros < ranks)); then continue; fi
    rule=${rules[runs % ${#rules[@]}]}
    if ((runs % 2)); then model=$gpt; else model="$mlp --momentum 0.9"; fi
    threads $pipeline --microbatches $micros --recompute $rule $model
  done
done

# shellcheck disable=SC2086
for pipeline in "${synchronous[@]}" "${asynchronous[@]}"; do threads $pipeline --microbatches 4 --recompute selective $gpt; done
# Within a budget, of one chain of blocks a stage.
# shellcheck disable=SC2086
for pipeline in gpipe pipedream "${asynchronous[@]}"; do
  for budget in least 70%; do threads $pipeline --microbatches 4 --recompute budget:$budget $gpt; done
done

# shellcheck disable=SC2086
for pipeline in "${synchronous[@]}"; do
  threads $pipeline --microbatches 3 $gpt --tied-embeddings --clip-norm 0.5 --optimizer adamw
done

# Without a flush all stages decide on each update together, a few of them later than their gradients.
# shellcheck disable=SC2086
for micros in 1 2 3 4 5 6 7 8; do
  for mode in vertical 2bw; do
    if ((micros < ranks)) && [[ $mode == 2bw || $micros == 1 ]]; then continue; fi
    rule=${rules[runs % ${#rules[@]}]}
    threads pipedream --mode $mode --microbatches $micros --recompute $rule $gpt --tied-embeddings
    threads pipedream --mode $mode --microbatches $micros $gpt --tied-embeddings --clip-norm 0.05 --optimizer adamw
    threads pipedream --mode $mode --microbatches $micros $mlp --momentum 0.9 --clip-norm 0.05
  done
done

# Running statistics by each policy; `sync` has nothing to merge in one replica. Enough micro-batches for 2bw.
# shellcheck disable=SC2086
for policy in per-micro deferred; do
  for pipeline in "${synchronous[@]}" "${asynchronous[@]}"; do
    threads $pipeline --microbatches $((4 + runs % 3)) --recompute ${rules[runs % ${#rules[@]}]} $convnet --batch-norm $policy
  done
done
# shellcheck disable=SC2086
for mode in vertical 2bw; do
  threads pipedream --mode $mode --microbatches 5 $convnet --batch-norm deferred --clip-norm 0.05 --optimizer adamw
done
# shellcheck disable=SC2086
for pipeline in gpipe "pipedream --mode 2bw"; do threads $pipeline --microbatches 5 $convnet --batch-norm sync; done

# shellcheck disable=SC2086
for pipeline in gpipe "pipedream --virtual-stages 2" "pipedream --split-backward h2" "pipedream --mode stash" "pipedream --mode 2bw"; do
  verified $SHARDMARK_MPIRUN -n "$ranks" "$SHARDMARK_BIN"/${pipeline/ / verify } $(if [[ $pipeline != *" "* ]]; then echo verify; fi) \
    --batch 11 --microbatches 5 --steps 8 $gpt
done
# shellcheck disable=SC2086
for mode in vertical 2bw; do
  verified $SHARDMARK_MPIRUN -n "$ranks" "$SHARDMARK_BIN/pipedream" verify --mode $mode --batch 11 --microbatches 5 --steps 20 \
    $gpt --tied-embeddings --clip-norm 0.05
done
echo "$runs runs VERIFIED"
((runs > 100))
