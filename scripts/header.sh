#!/usr/bin/env bash
# Writes crates/esker-capi/include/esker.h anew from the sources.
set -euo pipefail
cd "$(dirname "$0")/.."

ESKER_WRITE_HEADER=1 cargo test -q -p esker-capi --test header --locked
echo "header: crates/esker-capi/include/esker.h"
