#!/usr/bin/env bash
# The concurrent structures under loom: every interleaving within the preemption bound. Tests of loom models are
# those whose path holds `loom`.
set -euo pipefail
cd "$(dirname "$0")/.."

export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test -p esker --lib --release --locked loom 2>&1 | tee "$log"
grep -q '^test result: ok. [1-9]' "$log" || { echo "loom: no model was run" >&2; exit 1; }
