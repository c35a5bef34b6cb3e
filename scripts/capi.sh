#!/usr/bin/env bash
# Builds the C library and lays it out as a program is compiled against it, in target/capi: include, lib, lib/pkgconfig.
# Usage: scripts/capi.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked -p esker-capi
built=${CARGO_TARGET_DIR:-target}/release
folder=${1:-${CARGO_TARGET_DIR:-target}/capi}
mkdir -p "$folder/include" "$folder/lib/pkgconfig"
folder=$(cd "$folder" && pwd)
install -m 644 crates/esker-capi/include/esker.h "$folder/include/esker.h"
install -m 755 "$built/libesker_capi.so" "$folder/lib/libesker.so.0"
install -m 644 "$built/libesker_capi.a" "$folder/lib/libesker.a"
ln -sf libesker.so.0 "$folder/lib/libesker.so"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
cat >"$folder/lib/pkgconfig/esker.pc" <<PC
prefix=$folder
Name: esker
Description: A flash-optimised LSM storage engine
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lesker
Libs.private: -lpthread -lm -ldl
PC
echo "capi: $folder"
