#!/usr/bin/env bash
# A table sharded by Spider over two servers with ESKER tables, behind a third one that clients talk to: rows go where they belong, queries and
# transactions over both shards answer, and a shard that was killed comes back with what was acknowledged.
# Usage: scripts/mariadb/shard.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh

base=$mariadb_home/shard
rm -rf "$base"
for server in one two front; do server_install "$base/$server"; done
expect() { # WANTED QUERY [FOLDER]
  local found
  found=$(client "${3:-$base/front}" -N shop -e "$2")
  [ "$found" = "$1" ] || fail "expected $1: $2: $found"
}
table="id INT, customer INT, amount DECIMAL(10,2), note VARCHAR(50), PRIMARY KEY (id), KEY (customer)"
# Two addresses: Spider tells the members of a transaction apart by their hosts.
declare -A address=([one]=127.0.0.1 [two]=127.0.0.2) port
for server in one two; do port[$server]=$(free_port "${address[$server]}"); done
start_shard() { # SERVER
  # shellcheck disable=SC2046
  server_start "$base/$1" --server-id=1 $(server_port "${port[$1]}" "${address[$1]}")
}
for server in one two; do
  start_shard "$server"
  client "$base/$server" -e "CREATE DATABASE shop; CREATE TABLE shop.orders ($table) ENGINE=ESKER;
    CREATE USER front@'127.0.0.%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO front@'127.0.0.%'"
done
# Changes of both shards are one transaction: prepared in both, then committed.
server_start "$base/front" --server-id=3 --plugin-load-add=ha_spider --spider-internal-xa=1
client "$base/front" -e "CREATE DATABASE shop;
  CREATE SERVER one FOREIGN DATA WRAPPER mysql
    OPTIONS (HOST '${address[one]}', PORT ${port[one]}, USER 'front', PASSWORD 'secret', DATABASE 'shop');
  CREATE SERVER two FOREIGN DATA WRAPPER mysql
    OPTIONS (HOST '${address[two]}', PORT ${port[two]}, USER 'front', PASSWORD 'secret', DATABASE 'shop');
  CREATE TABLE shop.orders ($table) ENGINE=SPIDER COMMENT='wrapper \"mysql\", table \"orders\"'
    PARTITION BY HASH (id) (PARTITION p1 COMMENT='srv \"one\"', PARTITION p2 COMMENT='srv \"two\"')"

client "$base/front" shop -e "INSERT INTO orders SELECT seq, seq % 100, seq / 4, CONCAT('order ', seq) FROM seq_1_to_10000"
one=$(client "$base/one" -N -e 'SELECT COUNT(*) FROM shop.orders')
two=$(client "$base/two" -N -e 'SELECT COUNT(*) FROM shop.orders')
[ $((one + two)) -eq 10000 ] && [ "$one" -gt 4000 ] && [ "$two" -gt 4000 ] || fail "the shards have $one and $two rows"
expect "10000	12501250.00" 'SELECT COUNT(*), SUM(amount) FROM orders'
expect "order 77" 'SELECT note FROM orders WHERE id = 77'
expect "100" 'SELECT COUNT(*) FROM orders WHERE customer = 42'
expect "11,12,13" 'SELECT GROUP_CONCAT(id ORDER BY id) FROM orders WHERE id BETWEEN 11 AND 13'
client "$base/front" shop -e "BEGIN; UPDATE orders SET amount = 0 WHERE id <= 50; DELETE FROM orders WHERE id > 9990; ROLLBACK;
  BEGIN; UPDATE orders SET note = 'changed' WHERE id <= 50; DELETE FROM orders WHERE id > 9990; COMMIT"
expect "9990	12476261.25	50" "SELECT COUNT(*), SUM(amount), SUM(note = 'changed') FROM orders"

server_kill "$base/one"
start_shard one
expect "9990	12476261.25	50" "SELECT COUNT(*), SUM(amount), SUM(note = 'changed') FROM orders"
for server in one two; do
  client "$base/$server" -N -e 'CHECK TABLE shop.orders' | grep -q 'status.*OK' || fail "CHECK TABLE of shard $server"
  client "$base/$server" -N -e 'XA RECOVER' | grep -q . && fail "a prepared transaction was left on shard $server"
done
say "Spider over two servers: $one and $two rows, queries and transactions over both, one killed and back"
for server in front one two; do server_stop "$base/$server"; done
