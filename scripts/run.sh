#!/usr/bin/env bash
# The flash benchmark on Esker, RocksDB and LevelDB under one memory limit, and its report.
# Usage: scripts/run.sh [ARGUMENTS OF esker-lab run flash]; they come after the defaults and win over them.
# ESKER_SCALE (small) and ESKER_MEMORY (512MiB) set what is most often changed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build peers
cargo build --release --locked --bin esker-lab
scripts/fetch-peers.sh || echo "run: going on without the peers that could not be fetched" >&2

lab=${CARGO_TARGET_DIR:-target}/release/esker-lab
mkdir -p results report
"$lab" run flash --engines esker,rocksdb,leveldb --scale "${ESKER_SCALE:-small}" \
  --memory "${ESKER_MEMORY:-512MiB}" --json results/flash.json "$@"
"$lab" report results --output report/index.html
echo "report: $PWD/report/index.html"
