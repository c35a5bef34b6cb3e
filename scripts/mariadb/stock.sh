#!/usr/bin/env bash
# Runs the server's suites for any engine on ESKER: storage_engine, or engines. A test is well if its result is the recorded
# one. Many recordings of storage_engine are older than the server, so what InnoDB answers today is as good there. Whatever else differs must
# have its reason in mariadb/tests/explained, and differ by the same lines as when that was written: it has their checksum.
# Usage: scripts/mariadb/stock.sh storage_engine|engines [TEST…]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh

family=${1:-storage_engine}
[ $# -eq 0 ] || shift
case $family in
  storage_engine) suites="storage_engine storage_engine/trx storage_engine/parts" engines="innobase esker" ;;
  engines) suites="engines/funcs engines/iuds" engines="esker" ;;
  *) fail "no suite is called $family" ;;
esac
results=$mariadb_home/$family
explained=mariadb/tests/explained
rm -rf "$results"
# What InnoDB answers is wanted, not what its overlay lets pass.
find "$mariadb_tests/plugin/innobase" -name '*.rdiff' -delete
# These are of InnoDB and of MyISAM; the overlay has its own, of a server with InnoDB and of one without.
find "$mariadb_tests/suite/engines" -name combinations -delete
for engine in $engines; do
  mkdir -p "$results/$engine"
  find "$mariadb_tests/suite/$family" -name '*.reject' -delete
  # Where a test fails, warnings of a server's start, such as that of the plugin's maturity, would end the runner before the other tests.
  # shellcheck disable=SC2086
  overlays=$(printf ",%s-$engine" $suites)
  scripts/mariadb/test.sh "${overlays#,}" --parallel=2 --nowarnings "$@" >"$results/$engine.log" 2>&1 || true
  (cd "$mariadb_tests/suite" && find "$family" -name '*.reject' -exec cp --parents {} "$results/$engine/" \;)
done

status=0
recorded=0 same=0 accepted=0
complain() { say "$*"; status=1; }
while read -r suite test outcome; do
  folder=$suite
  [ ! -d "$mariadb_tests/suite/$suite/r" ] || folder=$suite/r
  answer=$results/esker/$folder/$test.reject
  reference=$results/innobase/$folder/$test.reject
  [ -e "$reference" ] || reference=$mariadb_tests/suite/$folder/$test.result
  known=$(awk -v test="$suite/$test" '$1 == test { print $2 }' "$explained")
  if [ "$outcome" = pass ]; then
    recorded=$((recorded + 1))
    [ -z "$known" ] || complain "$suite/$test passes: $explained is out of date"
  elif [ ! -e "$answer" ]; then
    complain "$suite/$test has no result: see $results/esker.log"
  elif cmp -s "$answer" "$reference"; then
    same=$((same + 1))
    [ -z "$known" ] || complain "$suite/$test is as InnoDB's: $explained is out of date"
  else
    diff "$reference" "$answer" >"${answer%.reject}.diff" || true
    found=$(cksum <"${answer%.reject}.diff" | cut -d' ' -f1)
    if [ "$known" = "$found" ]; then
      accepted=$((accepted + 1))
    else
      complain "$suite/$test: the lines ($found) in ${answer%.reject}.diff"
    fi
  fi
done < <(sed -nE "s/^($family[a-z_/]*)-esker\.([A-Za-z0-9_-]*) .*\[ (pass|fail) \].*/\1 \2 \3/p" "$results/esker.log")
[ "$recorded" -gt 0 ] || fail "no test ran: see $results/esker.log"
grep -q '^Completed\|^Failing test' "$results/esker.log" || fail "not all tests ran: see $results/esker.log"
say "$family: $recorded as recorded, $same as InnoDB today, $accepted explained"
exit "$status"
