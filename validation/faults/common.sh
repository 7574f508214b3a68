# shellcheck shell=bash
# What the scripts of this folder share. Each works in a folder of its own.
set -euo pipefail

# shellcheck disable=SC2034 # the scripts read them
{
  serial=$SHARDMARK_BIN/serial
  ddp=$SHARDMARK_BIN/ddp
  small="--layers 1 --hidden 16 --heads 2 --seq 8 --batch 4"
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

failed() {
  echo "FAILED: $1"
  head -n 40 out err
  exit 1
}

ends_with() { # CODE COMMAND...: output is in the files out and err
  local expected=$1 code=0
  shift
  timeout -s KILL 60 "$@" >out 2>err </dev/null || code=$?
  [[ $code == "$expected" ]] || failed "exit code $code instead of $expected: $*"
}

says() { # PATTERN: one message of ours, and it says this
  [[ $(grep -c "^shardmark: " err) == 1 ]] || failed "not one message"
  grep -q "^shardmark: .*$1" err || failed "not said: $1"
}

has_state() { # RUN-FOLDER STATE
  grep -q "\"state\": \"$2\"" "$1/record.json" || failed "the record's state isn't $2: $(grep '"state"' "$1/record.json")"
}

refused() { # PATTERN COMMAND...: before any work; nothing is left behind
  local expected=$1
  shift
  ends_with 2 "$@"
  says "$expected"
  [[ ! -e runs ]] || failed "a run folder was left: $*"
}

wait_for() { # FILE
  local tries
  for ((tries = 0; tries < 200; ++tries)); do
    [[ -e $1 ]] && return
    sleep 0.05
  done
  failed "$1 never came"
}

stopped() { # SIGNAL CODE RUN-FOLDER COMMAND...
  local signal=$1 expected=$2 run=$3 code=0
  shift 3
  "$@" --out "$run" >out 2>err &
  local job=$!
  wait_for "$run/record.json"
  sleep 0.5
  kill "-$signal" $job
  wait $job || code=$?
  [[ $code == "$expected" ]] || failed "exit code $code instead of $expected: $signal to $*"
  has_state "$run" cancelled
}
