#!/usr/bin/env bash
# Runs the plugin's tests in servers of their own: encodings alone, and the suite mariadb/tests/esker, whose results InnoDB must give as well.
# Usage: scripts/mariadb/test.sh [SUITE] [OPTION OR TEST OF mysql-test-run…]
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh
. scripts/mariadb/server.sh

[ -e "$mariadb_plugins/ha_esker.so" ] || fail "make mariadb comes first"
suite=${1:-esker}
[ $# -eq 0 ] || shift

if [ "$suite" = esker ]; then
  mkdir -p "$mariadb_build"
  ${CXX:-c++} -std=gnu++17 -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined mariadb/src/bytes.cc mariadb/tests/bytes.cc \
    -o "$mariadb_build/bytes"
  "$mariadb_build/bytes"
fi

# Beside the tests of the server's own plugins, where the runner finds them.
rm -rf "$mariadb_tests/plugin/esker"
cp -r mariadb/tests "$mariadb_tests/plugin/esker"
root=$PWD
cd "$mariadb_tests"
status=0
perl mysql-test-run.pl --vardir="$mariadb_home/mtr" --suite="$suite" --force --retry=0 --max-test-fail=0 --nocheck-testcases \
  --skip-rpl "$@" || status=1
# Recorded results are the project's.
if [[ " $* " == *" --record "* ]]; then cp "$mariadb_tests"/plugin/esker/esker/*.result "$root/mariadb/tests/esker/"; fi
exit $status
