#!/usr/bin/env bash
# The tests of `make test` at a length that finds rare things: property tests with 50 times the cases, 50 kills of
# a writing process where a second of the short run has a few, compactions of ten simulated terabytes. In release
# mode, with assertions and overflow checks.
set -euo pipefail
cd "$(dirname "$0")/.."

export PROPTEST_CASES=${PROPTEST_CASES:-12800} ESKER_KILL_ROUNDS=${ESKER_KILL_ROUNDS:-50}
export ESKER_SIMULATED_GIB=${ESKER_SIMULATED_GIB:-10240}
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/torture cargo test --workspace --release --locked --no-fail-fast
