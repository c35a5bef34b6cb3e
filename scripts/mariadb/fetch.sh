#!/usr/bin/env bash
# Fetches what ha_esker.so is built against and runs in, without touching the system: the packages of MariaDB's server, and the
# source that they were made of. Both come through apt from wherever this machine gets its Debian packages, and are unpacked below
# target/mariadb. Safe to run again: what is there of this version is kept.
# Usage: scripts/mariadb/fetch.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh

packages="mariadb-server mariadb-server-core mariadb-client mariadb-client-core mariadb-common libmariadb3 libmariadb-dev
libmariadbd-dev mariadb-plugin-rocksdb mariadb-test mariadb-test-data"
# What the server needs of the system and has not always: used from the prefix as well.
libraries="liburing2 libaio1 libsnappy1v5 libpcre2-posix3"

[ "$(cat "$mariadb_home/version" 2>/dev/null)" = "$mariadb_version" ] && exit 0
command -v apt-get >/dev/null || fail "needs apt: packages of Debian 12"
rm -rf "$mariadb_prefix" "$mariadb_source" "$mariadb_home/version"
mkdir -p "$mariadb_home/apt/lists/partial" "$mariadb_home/apt/sources" "$mariadb_home/debs" "$mariadb_prefix"

# The machine's own lists of packages with sources added to them, beside the machine's own.
for list in /etc/apt/sources.list.d/*.sources; do
  [ -e "$list" ] || continue
  sed 's/^Types:[[:space:]]*deb[[:space:]]*$/Types: deb deb-src/' "$list" >"$mariadb_home/apt/sources/$(basename "$list")"
done
if [ -e /etc/apt/sources.list ]; then
  { cat /etc/apt/sources.list; sed -n 's/^deb[[:space:]]/deb-src /p' /etc/apt/sources.list; } >"$mariadb_home/apt/sources/machine.list"
fi
cat >"$mariadb_home/apt/apt.conf" <<CONF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$mariadb_home/apt/sources";
Dir::State::lists "$mariadb_home/apt/lists";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Sandbox::User "root";
CONF
export APT_CONFIG=$mariadb_home/apt/apt.conf

say "fetching MariaDB $mariadb_version"
apt-get update -qq
# shellcheck disable=SC2086
(cd "$mariadb_home/debs" && apt-get download -qq $(printf "%s=$mariadb_version " $packages) $libraries) ||
  fail "this machine's package lists have no MariaDB $mariadb_version; ESKER_MARIADB_VERSION names another one"
for package in "$mariadb_home"/debs/*.deb; do dpkg-deb -x "$package" "$mariadb_prefix"; done
(cd "$mariadb_home/debs" && apt-get source -qq --download-only "mariadb=$mariadb_version")

# Of the source only the headers, and the tests that no package has.
upstream=${mariadb_version#*:}
upstream=mariadb-${upstream%%-*}
mkdir -p "$mariadb_source"
tar -xf "$mariadb_home"/debs/mariadb_*.orig.tar.gz -C "$mariadb_source" --strip-components=1 --wildcards --no-wildcards-match-slash \
  "$upstream/include" "$upstream/sql/*.h" "$upstream/wsrep-lib/include" "$upstream/wsrep-lib/wsrep-API"
mkdir -p "$mariadb_source/generated"
cp "$mariadb_source/include/probes_mysql_nodtrace.h.in" "$mariadb_source/generated/probes_mysql_nodtrace.h"
rm -rf "$mariadb_home/debs" "$mariadb_home/apt"
echo "$mariadb_version" >"$mariadb_home/version"
say "unpacked in $mariadb_home"
