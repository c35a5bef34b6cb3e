#!/usr/bin/env bash
# Runs every fuzz target for a while. New inputs go to fuzz/corpus-live/ (ignored by git), seeds are in fuzz/corpus/.
# The target `canary` holds a planted bug: if it is not found, the fuzzers find nothing, and that is a failure.
# Usage: scripts/fuzz-all.sh [SECONDS_PER_TARGET]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
nightly=${ESKER_NIGHTLY:-nightly}
fuzz() { cargo "+$nightly" fuzz "$@"; }

run() {
  local target=$1
  mkdir -p "fuzz/corpus-live/$target" "fuzz/corpus/$target"
  fuzz run "$target" "fuzz/corpus-live/$target" "fuzz/corpus/$target" -- \
    -max_total_time="$2" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1
}

fuzz build
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=""
rm -rf fuzz/corpus-live/canary
if run canary 120 >"$log" 2>&1; then
  echo "fuzz: the canary lives: the planted bug was not found" >&2
  failed="canary"
elif ! grep -q 'the planted bug' "$log"; then
  tail -20 "$log" >&2
  echo "fuzz: the canary failed, but not by its planted bug" >&2
  failed="canary"
else
  echo "fuzz: canary: the planted bug was found"
fi
for target in $(fuzz list | grep -vx canary); do
  echo "fuzz: $target for $seconds s"
  if run "$target" "$seconds" >"$log" 2>&1; then
    sed -n 's/^stat::\(number_of_executed_units\|average_exec_per_sec\): */  \1 /p' "$log"
  else
    tail -40 "$log" >&2
    failed="$failed $target"
  fi
done
[ -z "$failed" ] || { echo "fuzz: failed: $failed; inputs are in fuzz/artifacts/" >&2; exit 1; }
