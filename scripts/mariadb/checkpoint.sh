#!/usr/bin/env bash
# Copies of the database are made while it is written to, and each is restored in the end: it has all that was acknowledged before it was
# begun, whole transactions only, and takes writes.
# Usage: scripts/mariadb/checkpoint.sh [COPIES]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh
. scripts/mariadb/load.sh

copies=${1:-3}
folder=$mariadb_home/checkpoint
rm -rf "$folder"
server_install "$folder"
mkdir "$folder/copies"
options=(--default-storage-engine=ESKER --esker-memory-size=64M)
server_start "$folder" "${options[@]}"
load_create "$folder"
load_start "$folder"
for copy in $(seq "$copies"); do
  sleep 3
  load_numbers "$folder" >"$folder/before.$copy"
  client "$folder" -e "SET GLOBAL esker_checkpoint = '$folder/copies/$copy'"
done
load_stop "$folder"
# shellcheck disable=SC2046
load_check "the database itself" "$folder" $(load_numbers "$folder")
last=$(client "$folder" -N -e 'SELECT COUNT(*) FROM bank.note')
server_stop "$folder"

for copy in $(seq "$copies"); do
  server_start "$folder" "${options[@]}" --esker-data-dir="$folder/copies/$copy"
  # shellcheck disable=SC2046
  load_check "copy $copy" "$folder" $(cat "$folder/before.$copy")
  there=$(client "$folder" -N -e 'SELECT COUNT(*) FROM bank.note')
  [ "$there" -lt "$last" ] || fail "copy $copy has $there transactions of $last: it is no copy of a time before"
  client "$folder" bank -e "INSERT INTO entry VALUES (100, 1, 1, 'new'); INSERT INTO note VALUES (100, 1); DELETE FROM entry WHERE writer = 1"
  client "$folder" -N bank -e "CHECK TABLE entry, note" | grep -qv 'status.*OK' && fail "copy $copy after writes: CHECK TABLE"
  say "copy $copy: $there transactions, whole"
  server_stop "$folder"
done
server_start "$folder" "${options[@]}"
[ "$(client "$folder" -N -e 'SELECT COUNT(*) FROM bank.note')" = "$last" ] || fail "the database itself has changed"
server_stop "$folder"
