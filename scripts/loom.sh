#!/usr/bin/env bash
# The concurrent structures under loom: every interleaving within the preemption bound. Models are the tests whose path
# holds `loom`; an argument picks some of them (`commit::loom`).
set -euo pipefail
cd "$(dirname "$0")/.."

export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
# Models run fast, and with the assertions that the code has for them; they need no link-time optimisation.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_LTO=off
export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test -p esker -p esker-txn --lib --release --locked "${1:-loom}" 2>&1 | tee "$log"
grep -q '^test result: ok. [1-9]' "$log" || { echo "loom: no model was run" >&2; exit 1; }
