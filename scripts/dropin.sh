#!/usr/bin/env bash
# Builds the drop-in libraries for programs of LevelDB and RocksDB, under the originals' names, into target/dropin.
# Usage: scripts/dropin.sh [VERSION…]   further versions that programs look for, such as librocksdb.so.9.10
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked -p esker-leveldb -p esker-rocksdb
built=${CARGO_TARGET_DIR:-target}/release
folder=${CARGO_TARGET_DIR:-target}/dropin
mkdir -p "$folder"
install -m 755 "$built/libesker_leveldb.so" "$folder/libleveldb.so.1"
install -m 755 "$built/libesker_rocksdb.so" "$folder/librocksdb.so.11"
ln -sf libleveldb.so.1 "$folder/libleveldb.so"
ln -sf librocksdb.so.11 "$folder/librocksdb.so"
for name in "$@"; do
  case "$name" in
    libleveldb.so.*) ln -sf libleveldb.so.1 "$folder/$name" ;;
    librocksdb.so.*) ln -sf librocksdb.so.11 "$folder/$name" ;;
    *) echo "dropin: $name is no name of either library" >&2; exit 2 ;;
  esac
done
echo "dropin: $folder"
