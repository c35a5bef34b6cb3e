#!/usr/bin/env bash
# The C programs of the drop-in libraries and of the C interface under valgrind: no bad access, nothing lost.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v valgrind >/dev/null || { echo "memcheck: please install valgrind" >&2; exit 1; }
cargo build --locked -p esker-leveldb -p esker-rocksdb -p esker-capi
built=$PWD/${CARGO_TARGET_DIR:-target}/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$built/libesker_leveldb.so" "$work/libleveldb.so.1"
ln -s "$built/libesker_rocksdb.so" "$work/librocksdb.so.11"
ln -s "$built/libesker_capi.so" "$work/libesker.so.0"

check() { # check NAME LIBRARY SOURCE…
  local name=$1 program=$work/$1 library=$2
  shift 2
  cc -g -I crates/esker-compat/tests/support -I crates/esker-capi/include "$@" "$work/$library" -lpthread -o "$program"
  mkdir "$program.data"
  LD_LIBRARY_PATH=$work valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite --error-exitcode=9 "$program" "$program.data" >/dev/null
  echo "memcheck: $name: clean"
}

check leveldb libleveldb.so.1 crates/esker-compat/leveldb/tests/c/everything.c
check rocksdb librocksdb.so.11 crates/esker-compat/rocksdb/tests/c/everything.c
check rocksdb-refusals librocksdb.so.11 crates/esker-compat/rocksdb/tests/c/refusals.c
check esker libesker.so.0 crates/esker-capi/tests/c/*.c
