#!/usr/bin/env bash
# What a server answers when the device is full, and when a file is damaged: the server's own errors; connections live on, what was
# committed is there, and writes go on when there is room; what the binary log has is committed, even if that can't be written at once.
# Needs to be root, for a small file system in memory.
# Usage: scripts/mariadb/limits.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh

folder=$mariadb_home/limits
small=$folder/small
! mountpoint -q "$small" || umount "$small"
rm -rf "$folder"
server_install "$folder"
mkdir -p "$small"
mount -t tmpfs -o size=96m tmpfs "$small" || fail "a file system in memory can't be mounted"
finish() {
  server_end
  [ ! -e "$folder/process" ] || server_wait "$folder"
  ! mountpoint -q "$small" || umount "$small"
}
trap finish EXIT
ask() { client "$folder" -N -e "$1"; }
options=(--esker-data-dir="$small/db" --esker-memory-size=16M --esker-settings=wal_segment_bytes=4194304 --default-storage-engine=esker)

# Rows are written until there is no room; then some is made.
server_start "$folder" "${options[@]}"
ask "CREATE DATABASE test; CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARBINARY(10000)) ENGINE=ESKER"
head -c 40M /dev/urandom >"$small/filler"
ask "SELECT CONNECTION_ID()" >/dev/null
{
  for _ in $(seq 1500); do echo "INSERT INTO test.t (v) SELECT RANDOM_BYTES(1000) FROM test.seq_1_to_100; SELECT ROW_COUNT();"; done
  echo "SELECT 'still here'; system rm $small/filler"
  for _ in $(seq 20); do echo "INSERT INTO test.t (v) SELECT RANDOM_BYTES(1000) FROM test.seq_1_to_100; SELECT ROW_COUNT(); DO SLEEP(0.05);"; done
  echo "SELECT COUNT(*) FROM test.t;"
} | client "$folder" -N --force >"$folder/written" 2>"$folder/errors" || true
full='ERROR \(1021\|1180 .*Disk full\)'
grep -q "$full" "$folder/errors" || fail "a full device was not told of: see $folder/errors"
[ -z "$(grep -v "$full" "$folder/errors" | grep ERROR)" ] || fail "other errors than of the full device: see $folder/errors"
grep -q 'still here' "$folder/written" || fail "the connection did not live on"
[ "$(sed '1,/still here/d' "$folder/written" | grep -c '^100$')" -gt 0 ] || fail "there was room, and no row was taken"
acknowledged=$(grep -c '^100$' "$folder/written")
there=$(tail -1 "$folder/written")
[ "$there" -eq $((100 * acknowledged)) ] || fail "$there rows are there of $((100 * acknowledged))"
ask "CHECK TABLE test.t" | grep -q 'status.*OK' || fail "CHECK TABLE after a full device"
say "a full device: rows that were refused are not there, $there are, and writes went on when there was room"

# The binary log is on another device, which has room. Of eight writers some have their row in the log when it can't be committed.
server_stop "$folder"
logged=("${options[@]}" --log-bin="$folder/binlog" --binlog-format=ROW --sync-binlog=1 --server-id=1)
server_start "$folder" "${logged[@]}"
ask "CREATE TABLE test.logged (id INT PRIMARY KEY, v VARBINARY(200)) ENGINE=ESKER"
in_log() {
  "$mariadb_prefix/usr/bin/mariadb-binlog" --no-defaults -v --base64-output=decode-rows "$folder"/binlog.0* | grep -c '^### INSERT INTO `test`.`logged`'
}
in_table() { ask "SELECT COUNT(*) FROM test.logged"; }
rounds=0
fall_behind_the_log() {
  local writer writers
  while :; do
    rounds=$((rounds + 1))
    [ "$rounds" -le 50 ] || fail "no commit failed behind the binary log"
    head -c 200M /dev/zero >"$small/filler" 2>/dev/null || true
    writers=()
    for writer in 1 2 3 4 5 6 7 8; do
      for i in $(seq 4000); do echo "INSERT INTO test.logged VALUES ($((rounds * 100000 + writer * 10000 + i)), RANDOM_BYTES(200));"; done |
        client "$folder" -N >/dev/null 2>"$folder/errors.$writer" &
      writers+=($!)
    done
    for writer in "${writers[@]}"; do wait "$writer" || true; done
    [ -z "$(cat "$folder"/errors.[1-8] | grep ERROR | grep -v "$full")" ] || fail "other errors than of the full device: see $folder/errors.*"
    [ "$(in_log)" -eq "$(in_table)" ] || return 0
    rm "$small/filler"
  done
}
for how in room kill stop; do
  fall_behind_the_log
  behind=$(($(in_log) - $(in_table)))
  case $how in
    kill) server_kill "$folder" ;;
    stop) server_stop "$folder" ;;
  esac
  rm "$small/filler"
  [ "$how" = room ] || server_start "$folder" "${logged[@]}"
  # Each question is a transaction that begins, and tries; it does not wait for a flush that goes on.
  tries=0
  until there=$(in_table) && [ "$there" -eq "$(in_log)" ]; do
    tries=$((tries + 1))
    [ "$how" = room ] && [ "$tries" -le 300 ] || fail "$how: the binary log has $(in_log) rows, the table $there"
    sleep 0.1
  done
  say "a full device behind the binary log, then $how: $behind rows were behind the log's; it and the table have $there"
done

# Some bytes of a file are changed while the server is down.
ask "CREATE TABLE test.other ENGINE=ESKER AS SELECT seq FROM test.seq_1_to_1000; OPTIMIZE TABLE test.t, test.other" >/dev/null
server_stop "$folder"
damaged=$(find "$small/db" -name '*.blob' -size +1M | sort | head -1)
[ -n "$damaged" ] || fail "no file of values was written"
printf '\xff\x00\xff\x00' | dd of="$damaged" bs=1 seek=500000 conv=notrunc status=none
server_start "$folder" "${options[@]}"
if client "$folder" -N -e "SELECT SUM(LENGTH(v)), SUM(CRC32(v)) FROM test.t" >/dev/null 2>"$folder/errors"; then fail "a damaged file was read"; fi
grep -q 'ERROR \(1034\|1194\)' "$folder/errors" || fail "damage was not told of: see $folder/errors"
grep -q "$(basename "$damaged")" "$folder/error.log" || fail "the log does not name the damaged file"
[ "$(ask "SELECT COUNT(*) FROM test.other")" -eq 1000 ] || fail "another table can't be read"
say "a damaged file: told of, by name; other tables are read"
server_stop "$folder"
