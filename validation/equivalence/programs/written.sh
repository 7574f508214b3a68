#!/bin/bash
# Schedules as text, through the programs: what plan writes is read back unchanged and runs as before; what a user wrote is verified.
# Plans fit into 100 columns, and say of one pipeline exactly what is expected. Pictures and traces are written.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpt="--layers 4 --hidden 12 --heads 3 --seq 5 --vocab 31 --data synthetic"
say() { echo "FAILED: $1"; exit 1; }

pipelines=("model_parallel" "gpipe" "gpipe --backward-order oldest" "pipedream" "pipedream --virtual-stages 2" "pipedream --split-backward h1"
  "pipedream --split-backward h2" "pipedream --split-backward v" "pipedream --mode stash" "pipedream --mode vertical" "pipedream --mode 2bw"
  "pipedream --mode vertical --clip-norm 0.05" "pipedream --mode 2bw --tied-embeddings")
own=0
# shellcheck disable=SC2086 # lists of words
for pipeline in "${pipelines[@]}"; do
  program=${pipeline%% *}
  options=${pipeline#"$program"}
  mode=""
  if [[ $options == *--mode* ]]; then mode=$options; fi
  file=$work/$((own += 1))
  "$SHARDMARK_BIN/$program" plan $options $gpt --microbatches 5 --ranks 3 --out "$file.schedule" >"$file.plan"
  awk 'length > 100 { print "too wide: " $0; exit 1 }' "$file.plan"
  "$SHARDMARK_BIN/$program" plan $mode $gpt --microbatches 5 --schedule "$file.schedule" --out "$file.again" >/dev/null
  cmp "$file.schedule" "$file.again"
  last=$("$SHARDMARK_BIN/$program" verify $mode $gpt --ranks-as-threads 3 --batch 11 --steps 4 --microbatches 5 --schedule "$file.schedule" | tail -n 1)
  [[ $last == *" VERIFIED "* ]] || say "$pipeline as text: $last"
done

# By hand: three micro-batches, of which the last goes backward first, and the chunks of two ranks in another order.
cat >"$work/hand.schedule" <<'TEXT'
schedule by-hand
chunks 1 0 1      # rank 1 begins and ends
micros 3
lane 0
  forward chunk 1 micro 0 version 0
  forward chunk 1 micro 1 version 0
  forward chunk 1 micro 2 version 0
  backward chunk 1 micro 2 version 0
  backward chunk 1 micro 0 version 0
  backward chunk 1 micro 1 version 0
  reduce
  update version 1
lane 1
  forward chunk 0 micro 0 version 0
  forward chunk 0 micro 1 version 0
  forward chunk 0 micro 2 version 0
  forward chunk 2 micro 0 version 0
  forward chunk 2 micro 1 version 0
  forward chunk 2 micro 2 version 0
  backward chunk 2 micro 2 version 0
  backward chunk 2 micro 0 version 0
  backward chunk 2 micro 1 version 0
  backward chunk 0 micro 2 version 0
  backward chunk 0 micro 0 version 0
  backward chunk 0 micro 1 version 0
  reduce
  update version 1
TEXT
# shellcheck disable=SC2086
for options in "" "--tied-embeddings --clip-norm 0.5" "--recompute all"; do
  last=$("$SHARDMARK_BIN/pipedream" verify $gpt $options --ranks-as-threads 2 --batch 7 --steps 5 --schedule "$work/hand.schedule" | tail -n 1)
  [[ $last == *" VERIFIED "* ]] || say "by hand $options: $last"
done

# shellcheck disable=SC2086
"$SHARDMARK_BIN/pipedream" plan $gpt --ranks 3 --microbatches 5 | sed '/^per rank and update/,$d' | diff "$here/plan_pipedream.txt" -

cd "$work"
# shellcheck disable=SC2086
"$SHARDMARK_BIN/pipedream" plan $gpt --ranks 3 --svg plan.svg --trace plan.json >/dev/null
# shellcheck disable=SC2086
"$SHARDMARK_BIN/pipedream" plan $gpt --ranks 4 --microbatches 3 --compare >compare.txt
grep -q "^gpipe .* 50.0% " compare.txt || say "no bubble of gpipe"
grep -q "2bw with 3 micro-batches for 4 stages" compare.txt || say "2bw isn't refused"
for mode in flush stash; do
  # shellcheck disable=SC2086
  "$SHARDMARK_BIN/pipedream" bench $gpt --ranks-as-threads 3 --mode $mode --steps 2 --warmup 2 --balance 1,2,3 \
    --svg $mode.svg --trace $mode.json >$mode.txt
  grep -q "SHARDMARK pipedream VERIFIED" $mode.txt || say "bench --mode $mode: $(tail -n 1 $mode.txt)"
  # Three batches of four micro-batches, as planned and as measured (a backward that waits for folds is drawn in parts).
  for action in "stage 0: forward" "stage 0: backward" "stage 2: forward" "stage 2: backward"; do
    for micro in 0 11; do
      found=$(grep -o "<title>$action micro-batch $micro," $mode.svg | wc -l)
      ((found >= 2)) || say "$mode.svg shows $action $micro $found times"
    done
    ! grep -q "$action micro-batch 12," $mode.svg || say "$mode.svg shows a thirteenth micro-batch"
  done
done
grep -q "<title>stage 0: forward micro-batch 0," plan.svg || say "plan.svg shows no forward"
python3 -c 'import json; [json.load(open(f)) for f in ("plan.json", "flush.json", "stash.json")]'

# What one of the strategies can't do leaves it out, with the reason.
# shellcheck disable=SC2086
"$SHARDMARK_BIN/shardmark" compare $gpt --ranks-as-threads 3 --steps 2 --warmup 2 --rounds 1 >all.txt
for program in serial ddp model_parallel gpipe pipedream tensor_parallel; do
  grep -Eq "^[ *]$program .* VERIFIED$" all.txt || { cat all.txt; say "compare lacks $program"; }
done
# shellcheck disable=SC2086
"$SHARDMARK_BIN/shardmark" compare ${gpt/layers 4/layers 1} --ranks-as-threads 4 --steps 2 --warmup 2 --rounds 1 >few.txt
grep -q "^ gpipe .*4 pieces for 3 blocks" few.txt || { cat few.txt; say "gpipe isn't left out"; }
grep -Eq "^[ *]ddp .* VERIFIED$" few.txt || say "ddp is missing"
