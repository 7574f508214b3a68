#!/bin/bash
# Data files on four ranks, as users start them: short files that leave ranks without samples are proved like others; bad ones end in exit
# code 2 and one message.
set -euo pipefail
ddp="$SHARDMARK_MPIRUN -n 4 $SHARDMARK_BIN/ddp"
gpt="--layers 2 --hidden 48 --heads 3 --seq 8 --batch 8"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The 16-bit ids 1, 2, ..., COUNT.
tokens() { # COUNT
  local i
  for ((i = 1; i <= $1; ++i)); do printf "\\x$(printf %02x "$i")\\x00"; done >"$folder/$1.bin"
  echo "tokens:$folder/$1.bin"
}

verified() {
  local last
  last=$("$@" | tail -n 1)
  echo "$last"
  [[ $last == "SHARDMARK "*" VERIFIED "* ]] || { echo "not VERIFIED: $*"; exit 1; }
}

refused() { # EXPECTED COMMAND...
  local expected=$1 out code=0
  shift
  out=$("$@" 2>&1) || code=$?
  [[ $code == 2 ]] || { echo "exit code $code instead of 2: $*"; echo "$out"; exit 1; }
  [[ $(grep -c "^shardmark: " <<<"$out") == 1 ]] || { echo "not one message: $out"; exit 1; }
  grep "^shardmark: .*$expected" <<<"$out" || { echo "not said: $expected"; echo "$out"; exit 1; }
}

# shellcheck disable=SC2086 # lists of words
{
  # case_121: 12 windows in updates of 8 and 4; 11; one window, so that three ranks are empty; too short; empty.
  verified $ddp verify $gpt --vocab 257 --steps 4 --data "$(tokens 97)"
  verified $ddp verify $gpt --vocab 257 --steps 3 --data "$(tokens 96)"
  verified $ddp verify $gpt --vocab 257 --steps 3 --data "$(tokens 9)"
  refused "8.bin has 8 tokens.*at least 9 tokens" $ddp verify $gpt --vocab 257 --data "$(tokens 8)"
  refused "0.bin has 0 tokens.*at least 9 tokens" $ddp verify $gpt --vocab 257 --data "$(tokens 0)"
  # case_03: 7 windows in updates of 4 and 3, with a learning rate that falls by update: 4 micro-batches of one rank, and four ranks.
  verified "$SHARDMARK_BIN/serial" verify ${gpt/--batch 8/--batch 4} --microbatches 4 --vocab 257 --steps 4 --lr-schedule linear --data "$(tokens 57)"
  verified $ddp verify ${gpt/--batch 8/--batch 4} --vocab 257 --steps 4 --lr-schedule linear --data "$(tokens 57)"
  # case_120: ids, and counts of elements and bytes beyond 31 bits (the embedding's 2457600000 in fp32, and 8 positions of 8192).
  refused "97.bin.*id 97 at position 96.*--vocab 98" $ddp verify $gpt --vocab 97 --data "tokens:$folder/97.bin"
  "$SHARDMARK_BIN/serial" plan --layers 1 --hidden 8192 --heads 8 --seq 8 --vocab 300000 --tied-embeddings --batch 1 --json |
    grep -q "\"parameters_bytes_embedding\":$((9830400000 + 8 * 8192 * 4))," || { echo "wrong size of a large embedding"; exit 1; }

  # case_122: four images of 3 x 2, labels 0 to 3.
  printf '\0\0\x08\x03\0\0\0\x04\0\0\0\x03\0\0\0\x02abcdefghijklmnopqrstuvwx' >"$folder/images"
  printf '\0\0\x08\x01\0\0\0\x04\0\x01\x02\x03' >"$folder/labels"
  gzip -c "$folder/images" >"$folder/packed"
  verified $ddp verify --model mlp --layers 2 --hidden 24 --batch 4 --steps 3 --data "idx:$folder/images,$folder/labels"
  refused "magic 2049 (labels); expected magic 2051" $ddp verify --model mlp --data "idx:$folder/labels,$folder/images"
  refused "packed (it begins with gzip's magic 1f 8b; expected magic 2051" $ddp verify --model mlp --data "idx:$folder/packed,$folder/labels"
  # What --eval will read is looked at before training.
  refused "no held-out image" $ddp bench --model mlp --data "idx:$folder/images,$folder/labels" --eval
}
