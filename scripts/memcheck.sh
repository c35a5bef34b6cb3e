#!/usr/bin/env bash
# The drop-in libraries' C programs under valgrind: no bad access, nothing lost.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v valgrind >/dev/null || { echo "memcheck: please install valgrind" >&2; exit 1; }
cargo build --locked -p esker-leveldb -p esker-rocksdb
built=$PWD/${CARGO_TARGET_DIR:-target}/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$built/libesker_leveldb.so" "$work/libleveldb.so.1"
ln -s "$built/libesker_rocksdb.so" "$work/librocksdb.so.11"

check() { # check LIBRARY PROGRAM
  local program=$work/$(basename "$2" .c)-$(basename "$1")
  cc -g -I crates/esker-compat/tests/support "$2" "$work/$1" -o "$program"
  mkdir "$program.data"
  LD_LIBRARY_PATH=$work valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite --error-exitcode=9 "$program" "$program.data" >/dev/null
  echo "memcheck: $2: clean"
}

check libleveldb.so.1 crates/esker-compat/leveldb/tests/c/everything.c
check librocksdb.so.11 crates/esker-compat/rocksdb/tests/c/everything.c
check librocksdb.so.11 crates/esker-compat/rocksdb/tests/c/refusals.c
