#!/usr/bin/env bash
# Kills a server under load, again and again: the writers' transactions change an ESKER and an InnoDB table, with the binary log on.
# After each restart all that was acknowledged is there, both engines have the same rows, and CHECK TABLE finds nothing.
# Usage: scripts/mariadb/kill.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh

rounds=${1:-5}
writers=4
folder=$mariadb_home/kill
rm -rf "$folder"
server_install "$folder"
options=(--log-bin="$folder/binlog" --server-id=1 --binlog-format=ROW --sync-binlog=1 --innodb-flush-log-at-trx-commit=1)
server_start "$folder" "${options[@]}"
client "$folder" -e "CREATE DATABASE bank; USE bank;
  CREATE TABLE e (writer INT, n INT, v INT, PRIMARY KEY (writer, n), KEY (v)) ENGINE=ESKER;
  CREATE TABLE i (writer INT, n INT, v INT, PRIMARY KEY (writer, n), KEY (v)) ENGINE=InnoDB;"

# Writes numbered rows into both tables and notes each number that was acknowledged.
writer() { # WRITER FIRST
  local n=$2
  while :; do
    echo "BEGIN; INSERT INTO e VALUES ($1, $n, $n % 7); INSERT INTO i VALUES ($1, $n, $n % 7);
      UPDATE e SET v = v + 1 WHERE writer = $1 AND n = $((n / 2)); UPDATE i SET v = v + 1 WHERE writer = $1 AND n = $((n / 2));
      COMMIT; SELECT $n;"
    n=$((n + 1))
  done | client "$folder" -N --unbuffered bank >>"$folder/acknowledged.$1" 2>/dev/null || true
}

for round in $(seq "$rounds"); do
  jobs=()
  for w in $(seq "$writers"); do
    first=$(client "$folder" -N -e "SELECT COALESCE(MAX(n), 0) + 1 FROM bank.e WHERE writer = $w")
    writer "$w" "$first" &
    jobs+=($!)
  done
  sleep "$(awk -v seed="$round" 'BEGIN { srand(seed); print 1 + rand() }')"
  server_kill "$folder"
  for job in "${jobs[@]}"; do wait "$job" || true; done
  server_start "$folder" "${options[@]}"
  differ=$(client "$folder" -N bank -e "SELECT COUNT(*) FROM (SELECT * FROM e UNION ALL SELECT * FROM i) AS b GROUP BY writer, n, v HAVING COUNT(*) <> 2" | wc -l)
  [ "$differ" -eq 0 ] || fail "round $round: $differ rows are in one engine only"
  for w in $(seq "$writers"); do
    acknowledged=$(tail -n 1 "$folder/acknowledged.$w")
    there=$(client "$folder" -N -e "SELECT COALESCE(MAX(n), 0) FROM bank.e WHERE writer = $w")
    [ "$there" -ge "${acknowledged:-0}" ] || fail "round $round: writer $w was told of $acknowledged, and $there is there"
  done
  client "$folder" -N bank -e "CHECK TABLE e" | grep -q 'status.*OK' || fail "round $round: CHECK TABLE"
  client "$folder" -N -e "XA RECOVER" | grep -q . && fail "round $round: a prepared transaction was left"
  say "round $round: $(client "$folder" -N -e 'SELECT COUNT(*) FROM bank.e') rows in both engines"
done
server_stop "$folder"
