#!/usr/bin/env bash
# Installs what this machine lacks, and nothing that it has; says so only when it does.
# Usage: scripts/setup.sh GROUP…
#   build    the pinned Rust toolchain with rustfmt and clippy; a C compiler (for zstd)
#   lint     cargo-deny
#   browser  a headless Chromium, with which the lab's tests look at its report; optional
#   peers    what scripts/fetch-peers.sh needs (Maven, pip, unzip), and jemalloc for all engines; optional
#   mariadb  what the plugin for MariaDB is built with, and its server's test runner runs on: a C++ compiler, all of Perl
#   sql      sysbench, and jemalloc for all engines, with which the lab measures engines in a MariaDB server
#   deep     nightly Rust with Miri, and cargo-fuzz
# Debian packages are installed as root or through sudo. An optional group that can't be had is named and left out.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo_deny_version=0.20.2
cargo_fuzz_version=0.13.2
nightly=${ESKER_NIGHTLY:-nightly}

say() { echo "setup: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# Installs Debian packages; fails, saying why, where that is not possible.
debian() {
  local as_root=()
  if ! have apt-get; then
    say "please install: $*"
    return 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo; then
      say "please install as root: apt-get install $*"
      return 1
    fi
    as_root=(sudo)
  fi
  say "installing $*"
  "${as_root[@]}" apt-get update -qq >/dev/null || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null
}

# toolchain NAME COMPONENT…: the toolchain, with those components.
toolchain() {
  local name=$1 installed component
  shift
  if ! have rustup; then
    have cargo || { say "please install Rust from https://rustup.rs"; return 1; }
    [ "$name" = "$pinned" ] || { say "rustup is needed for the toolchain $name"; return 1; }
    return 0
  fi
  installed=$(rustup component list --toolchain "$name" --installed 2>/dev/null || true)
  for component in cargo "$@"; do
    grep -q "^$component" <<<"$installed" && continue
    say "installing Rust $name with $*"
    # A toolchain that is complete but for a component is not updated on the way.
    if [ -n "$installed" ]; then
      rustup component add --toolchain "$name" "$@"
    else
      rustup toolchain install "$name" --profile minimal --no-self-update $(printf -- '--component %s ' "$@")
    fi
    return
  done
}

# cargo_tool NAME VERSION: a cargo subcommand, of that version or another that is there already.
cargo_tool() {
  have "$1" && return
  say "building $1 $2; this takes some minutes, once"
  # Optimising it would take longer than it ever runs.
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_DEBUG=0 cargo "+$pinned" install --quiet --locked --version "$2" "$1"
}

optional() { "$@" || say "going on without: $*"; }

setup_build() {
  have cc || debian gcc libc6-dev
  toolchain "$pinned" rustfmt clippy
}

setup_lint() { cargo_tool cargo-deny "$cargo_deny_version"; }

setup_browser() {
  have chromium || have chromium-browser || have google-chrome || optional debian chromium
}

setup_peers() {
  local packages=()
  have mvn || packages+=(maven)
  have unzip || packages+=(unzip)
  python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
  # The report ran on jemalloc; the lab preloads it for every engine.
  ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1 || packages+=(libjemalloc2)
  [ ${#packages[@]} -eq 0 ] || optional debian "${packages[@]}"
}

setup_mariadb() {
  local packages=()
  have c++ || packages+=(g++)
  perl -MTime::HiRes -MMemoize -MIO::Socket::INET -e1 2>/dev/null || packages+=(perl)
  [ ${#packages[@]} -eq 0 ] || debian "${packages[@]}"
}

setup_sql() {
  local packages=()
  have sysbench || packages+=(sysbench)
  ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1 || packages+=(libjemalloc2)
  [ ${#packages[@]} -eq 0 ] || debian "${packages[@]}"
}

setup_deep() {
  have c++ || debian g++
  toolchain "$nightly" miri rust-src
  cargo_tool cargo-fuzz "$cargo_fuzz_version"
}

PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
for group in "$@"; do
  case "$group" in
    build | lint | browser | peers | mariadb | sql | deep) "setup_$group" ;;
    *) say "no group is called $group"; exit 2 ;;
  esac
done
