#!/usr/bin/env bash
# Runs the server's suite storage_engine on InnoDB and on ESKER. Many of its recordings are older than the server: a test is well if ESKER's
# result is the recorded one, or what InnoDB answers today, or is explained in mariadb/tests/storage_engine/explained.
# Usage: scripts/mariadb/stock.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh

results=$mariadb_home/storage_engine
stock=$mariadb_tests/suite/storage_engine
explained=mariadb/tests/storage_engine/explained
rm -rf "$results"
for engine in innobase esker; do
  mkdir -p "$results/$engine"
  find "$stock" -name '*.reject' -delete
  scripts/mariadb/test.sh "storage_engine-$engine" >"$results/$engine.log" 2>&1 || true
  find "$stock" -maxdepth 1 -name '*.reject' -exec cp {} "$results/$engine/" \;
done

status=0
recorded=0 same=0 accepted=0
while read -r test outcome; do
  if [ "$outcome" = pass ]; then
    recorded=$((recorded + 1))
    if grep -q "^$test " "$explained"; then say "$test passes: $explained is out of date"; status=1; fi
  elif [ -e "$results/esker/$test.reject" ] && cmp -s "$results/esker/$test.reject" "$results/innobase/$test.reject"; then
    same=$((same + 1))
  elif grep -q "^$test " "$explained"; then
    accepted=$((accepted + 1))
  else
    say "$test: see $results/esker/$test.reject and $results/esker.log"
    status=1
  fi
done < <(sed -n 's/^storage_engine-esker\.\([a-z0-9_]*\) .*\[ \(pass\|fail\) \].*/\1 \2/p' "$results/esker.log")
[ "$recorded" -gt 0 ] || fail "no test ran: see $results/esker.log"
say "storage_engine: $recorded as recorded, $same as InnoDB today, $accepted explained"
exit "$status"
