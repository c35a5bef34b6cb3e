#!/usr/bin/env bash
# A primary and a replica on this machine: row-based, by GTID, semi-synchronous. The replica, whose tables are ESKER, is killed (kill -9) again
# and again while the primary is written to; in the end both have the same rows. The primary's tables are ESKER, then InnoDB.
# Usage: scripts/mariadb/replicate.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh
. scripts/mariadb/load.sh

kills=${1:-3}

replicate() { # ENGINE-OF-THE-PRIMARY
  local base=$mariadb_home/replicate/$1
  local primary=$base/primary replica=$base/replica kill options replica_options position
  rm -rf "$base"
  server_install "$primary"
  server_install "$replica"
  options=(--log-bin="$primary/binlog" --server-id=1 --binlog-format=ROW --sync-binlog=1 --gtid-strict-mode=1 --default-storage-engine="$1"
    --rpl-semi-sync-master-enabled=1 --rpl-semi-sync-master-timeout=2000)
  # The position is kept in a table of the engine that is replicated into, so a transaction and its position are one.
  replica_options=(--log-bin="$replica/binlog" --server-id=2 --binlog-format=ROW --log-slave-updates --gtid-strict-mode=1
    --default-storage-engine=ESKER --gtid-pos-auto-engines=ESKER --relay-log="$replica/relay" --relay-log-recovery=1
    --slave-parallel-threads=2 --rpl-semi-sync-slave-enabled=1 --read-only=1 --replicate-annotate-row-events=0)
  port=$(free_port)
  # shellcheck disable=SC2046
  server_start "$primary" "${options[@]}" $(server_port "$port")
  server_start "$replica" "${replica_options[@]}"
  client "$primary" -e "CREATE USER copy@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO copy@'127.0.0.1'"
  client "$replica" -e "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$port, MASTER_USER='copy', MASTER_PASSWORD='secret',
    MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos; START SLAVE"
  load_create "$primary"
  load_start "$primary"
  for kill in $(seq "$kills"); do
    sleep "$(awk -v seed="$kill" 'BEGIN { srand(seed); print 2 + 2 * rand() }')"
    server_kill "$replica"
    server_start "$replica" "${replica_options[@]}"
  done
  sleep 2
  load_stop "$primary"
  position=$(client "$primary" -N -e 'SELECT @@gtid_binlog_pos')
  [ "$(client "$replica" -N -e "SELECT MASTER_GTID_WAIT('$position', 120)")" = 0 ] ||
    fail "$1 to ESKER: the replica has not reached $position: $(client "$replica" -e 'SHOW SLAVE STATUS\G' | grep -E 'Last.*Error|Running|Gtid_IO_Pos')"
  load_check "$1 to ESKER" "$primary" $(load_numbers "$primary")
  load_check "$1 to ESKER, the replica" "$replica" $(load_numbers "$primary")
  engines=$(client "$replica" -N -e "SELECT GROUP_CONCAT(DISTINCT engine) FROM information_schema.tables WHERE table_schema = 'bank'")
  [ "$engines" = ESKER ] || fail "$1 to ESKER: the replica's tables are $engines"
  diff <(client "$primary" -N -e 'CHECKSUM TABLE bank.entry, bank.note') <(client "$replica" -N -e 'CHECKSUM TABLE bank.entry, bank.note') >&2 ||
    fail "$1 to ESKER: the replica has other rows"
  semi=$(client "$primary" -N -e "SHOW STATUS WHERE variable_name IN ('Rpl_semi_sync_master_status', 'Rpl_semi_sync_master_yes_tx')" | awk '{ print $2 }' | tr '\n' ' ')
  case $semi in "ON 0 ") fail "$1 to ESKER: no transaction was acknowledged by the replica" ;; ON*) ;; *) fail "$1 to ESKER: not semi-synchronous: $semi" ;; esac
  say "$1 to ESKER: $(client "$replica" -N -e 'SELECT COUNT(*) FROM bank.note') transactions, $kills kills of the replica, checksums agree; semi-synchronous: $semi"
  server_stop "$replica"
  server_stop "$primary"
}

replicate ESKER
replicate InnoDB
