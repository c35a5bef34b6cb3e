#!/usr/bin/env bash
# Formatting, clippy, documentation and dependencies; a warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
(cd fuzz && cargo fmt --check)
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
scripts/deny.sh
if command -v shellcheck >/dev/null; then
  shellcheck scripts/*.sh .ci/run
fi
