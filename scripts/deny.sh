#!/usr/bin/env bash
# Licences, duplicates and sources of the dependencies; advisories where their database can be reached.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo deny --locked --log-level error check licenses bans sources
if timeout 60 cargo deny --locked --log-level off fetch db >/dev/null 2>&1; then
  cargo deny --locked --log-level error check --disable-fetch advisories
else
  echo "advisories: NOT CHECKED, the advisory database can't be reached from here" >&2
fi
