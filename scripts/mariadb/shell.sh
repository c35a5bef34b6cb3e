#!/usr/bin/env bash
# Starts a private server with the plugin, on a socket in target/mariadb/shell, opens a client, and stops the server when the client
# ends. What was stored is there the next time.
# Usage: scripts/mariadb/shell.sh [ARGUMENT OF THE CLIENT…]      options of the server: ESKER_MARIADB_OPTIONS
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh

folder=$mariadb_home/shell
[ -e "$mariadb_plugins/ha_esker.so" ] || fail "make mariadb comes first"
server_install "$folder"
# shellcheck disable=SC2086
server_start "$folder" --default-storage-engine=esker ${ESKER_MARIADB_OPTIONS:-}
trap 'server_stop "$folder"' EXIT
client "$folder" -e 'CREATE DATABASE IF NOT EXISTS play'
client "$folder" --database=play "$@"
