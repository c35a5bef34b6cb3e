#!/usr/bin/env bash
# The modules with unsafe code, and those that they rest on, under Miri.
set -euo pipefail
cd "$(dirname "$0")/.."

nightly=${ESKER_NIGHTLY:-nightly}
# Isolation is off for proptest's seeds; a case takes a thousand times as long as natively.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}" PROPTEST_CASES=${PROPTEST_CASES:-8}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri
run() {
  local log status=0
  log=$(mktemp)
  cargo "+$nightly" miri test --locked "$@" 2>&1 | tee "$log" || status=$?
  grep -q '^test result: ok. [1-9]' "$log" || { echo "miri: no test was run by: $*" >&2; status=1; }
  rm -f "$log"
  return "$status"
}
run -p esker --lib key::
run -p esker --lib memtable::
run -p esker-env --lib posix::aligned::
