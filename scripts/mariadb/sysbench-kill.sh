#!/usr/bin/env bash
# sysbench's oltp_read_write with 8 threads on ESKER tables, and then kill -9: with full durability nothing that was acknowledged is lost, tables
# and indexes agree, and all have the rows that sysbench keeps their number of.
# Usage: scripts/mariadb/sysbench-kill.sh [SECONDS] [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh

seconds=${1:-60}
rounds=${2:-1}
threads=8 tables=4 table_rows=25000
command -v sysbench >/dev/null || fail "needs sysbench: apt-get install sysbench"
folder=$mariadb_home/sysbench-kill
rm -rf "$folder"
server_install "$folder"
mkdir "$folder/notes"
options=(--log-bin="$folder/binlog" --server-id=1 --binlog-format=ROW --sync-binlog=1 --esker-flush-log-at-trx-commit=1
  --default-storage-engine=ESKER)
server_start "$folder" "${options[@]}"
client "$folder" -e "CREATE DATABASE sbtest; CREATE TABLE sbtest.committed (thread INT, number INT, PRIMARY KEY (thread, number))"
bench() {
  sysbench mariadb/tests/sysbench/acknowledged.lua --mysql-socket="$folder/socket" --mysql-user=root --tables="$tables" \
    --mysql-storage-engine=ESKER --table-size="$table_rows" --threads="$threads" --notes="$folder/notes" "$@"
}
bench prepare >"$folder/prepare.log" 2>&1 || fail "see $folder/prepare.log"

for round in $(seq "$rounds"); do
  bench --time=$((seconds + 60)) run >"$folder/run.log" 2>&1 &
  job=$!
  sleep "$seconds"
  kill -0 "$job" 2>/dev/null || fail "sysbench ended: see $folder/run.log"
  server_kill "$folder"
  wait "$job" || true
  server_start "$folder" "${options[@]}"
  total=0
  for thread in $(seq 0 $((threads - 1))); do
    acknowledged=$(tail -n 1 "$folder/notes/$thread")
    there=$(client "$folder" -N sbtest -e "SELECT COALESCE(MAX(number), 0) FROM committed WHERE thread = $thread HAVING COUNT(*) = COALESCE(MAX(number), 0)")
    [ "${there:-0}" -ge "${acknowledged:-0}" ] || fail "round $round: thread $thread was told of $acknowledged, and ${there:-less} is there"
    total=$((total + ${acknowledged:-0}))
  done
  [ "$total" -gt 0 ] || fail "nothing was committed: see $folder/run.log"
  for table in $(seq "$tables"); do
    for key in PRIMARY "k_$table"; do
      there=$(client "$folder" -N sbtest -e "SELECT COUNT(*) FROM sbtest$table FORCE INDEX ($key) WHERE k >= 0 OR id > 0")
      [ "$there" = "$table_rows" ] || fail "round $round: sbtest$table has $there rows by $key"
    done
    client "$folder" -N sbtest -e "CHECK TABLE sbtest$table" | grep -q 'status.*OK' || fail "round $round: CHECK TABLE sbtest$table"
  done
  client "$folder" -N -e "XA RECOVER" | grep -q . && fail "round $round: a prepared transaction was left"
  say "round $round: all of $total acknowledged transactions of $threads threads are there"
done
server_stop "$folder"
