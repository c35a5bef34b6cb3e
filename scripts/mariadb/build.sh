#!/usr/bin/env bash
# Builds ha_esker.so, among the plugins of the server in target/mariadb. Only what has changed is compiled.
# Usage: scripts/mariadb/build.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
command -v "${CXX:-c++}" >/dev/null || fail "needs a C++ compiler: apt-get install g++"
scripts/mariadb/fetch.sh

capi=$mariadb_home/capi
scripts/capi.sh "$capi" >/dev/null
make --no-print-directory -s -f scripts/mariadb/plugin.mk -j"$(nproc)" BUILD="$mariadb_build" CAPI="$capi" \
  PREFIX="$mariadb_prefix" SOURCE="$mariadb_source" PLUGINS="$mariadb_plugins"
say "built $mariadb_plugins/ha_esker.so"
