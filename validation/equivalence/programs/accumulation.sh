#!/bin/bash
# usage: accumulation.sh; `accumulation` as users start it: one rank with micro-batches, R ranks as threads and under mpirun, and what it refuses.
set -euo pipefail
gpt="--layers 1 --hidden 24 --heads 3 --seq 9 --vocab 31"
program="$SHARDMARK_BIN/accumulation"

# verified WORD COMMAND: the last line, and a line of the table.
verified() {
  local word=$1 out
  out=$("${@:2}")
  [[ $(tail -n 1 <<<"$out") == "SHARDMARK accumulation VERIFIED "* ]] || { echo "not VERIFIED: ${*:2}"; tail -n 5 <<<"$out"; exit 1; }
  [[ -z $word ]] || grep -qE "$word" <<<"$out" || { echo "no '$word': ${*:2}"; echo "$out"; exit 1; }
}
refused() {
  local code=0 out
  out=$("${@:2}" 2>&1) || code=$?
  [[ $code == 2 && $out == *"$1"* ]] || { echo "exit $code, expected 2 and '$1': $out"; exit 1; }
}

# shellcheck disable=SC2086 # lists of words
{
  verified "" $program verify $gpt --batch 7 --accumulate 3
  verified "" $program verify --model convnet --layers 2 --hidden 6 --batch 7 --accumulate 2 --dtype fp64
  for ranks in 2 3 5 8; do
    verified "data parallelism, in the tree +0 of" $program verify --ranks-as-threads $ranks $gpt --batch 13 --clip-norm 0.5 --steps 8
  done
  verified "the library's all-reduce +[0-9]+ of" $SHARDMARK_MPIRUN -n 3 $program verify $gpt --batch 11 --optimizer adamw --steps 8
  refused "leave --accumulate out" $program verify --ranks-as-threads 2 $gpt --accumulate 2
  refused "use --batch 4 or more" $program verify --ranks-as-threads 4 $gpt --batch 3
  refused "accumulation trains on one rank" $program bench --ranks-as-threads 2 --model mlp
  refused "leave it out; a row of the table" $program verify --ranks-as-threads 2 --model convnet --batch-norm sync
  wide=$($program verify --ranks-as-threads 3 $gpt --batch 7 --steps 3 | grep -E '.{101}' || true)
  [[ -z $wide ]] || { echo "wider than 100 columns: $wide"; exit 1; }
  code=0
  out=$($program verify --ranks-as-threads 3 $gpt --batch 7 --inject bitflip:rank=1) || code=$?
  [[ $code == 1 ]] && grep -q "both ways *gradient of each update .*FAILED" <<<"$out"
}
