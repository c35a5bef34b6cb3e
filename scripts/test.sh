#!/usr/bin/env bash
# Every test that takes seconds; the last line counts them.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log"
awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
     END { printf "tests: %d passed, %d failed, %d ignored\n", passed, failed, ignored; exit passed == 0 }' "$log"
