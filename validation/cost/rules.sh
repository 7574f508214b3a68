#!/bin/bash
# checkpointing's table of all rules: planned, and measured with the planned memory; and its picture.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
model="--model gpt --layers 5 --hidden 24 --heads 3 --seq 17 --vocab 61 --data synthetic --batch 6 --microbatches 2"

# rows FILE COLUMNS: every rule has a row with as many columns.
rows() {
  for rule in none selective every:2 sqrt all budget:75% budget:50% budget:least; do
    awk -v rule="$rule" -v columns="$2" '$1 == rule && NF == columns { found = 1 } END { exit !found }' "$1" ||
      { echo "no row of $2 columns for $rule"; cat "$1"; exit 1; }
  done
}

# shellcheck disable=SC2086 # a list of words
"$SHARDMARK_BIN/checkpointing" plan $model --recompute budget:60% --svg planned.svg >plan.txt
rows plan.txt 4
grep -q '^ budget:60% ' plan.txt || { echo "the rule that was asked for is missing"; exit 1; }
# shellcheck disable=SC2086
"$SHARDMARK_BIN/checkpointing" bench $model --steps 3 --warmup 1 --rounds 2 --svg measured.svg >bench.txt 2>/dev/null
rows bench.txt 8
tail -n 1 bench.txt | grep -q '^SHARDMARK checkpointing VERIFIED ' || { echo "the last line is another"; tail -n 1 bench.txt; exit 1; }
# Column 6: measured against planned memory, in per cent.
awk '/^ rule/ { table = 1; next } table && NF == 8 { rows++; if ($6 < -2 || $6 > 2) bad = 1 } END { exit bad || rows != 8 }' bench.txt ||
  { echo "memory isn't what was planned"; cat bench.txt; exit 1; }
for picture in planned.svg measured.svg; do
  if ! grep -q '</svg>' $picture || ! grep -q 'budget:least' $picture; then
    echo "$picture is no picture of the rules"
    exit 1
  fi
done
