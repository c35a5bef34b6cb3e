#!/usr/bin/env bash
# Fetches what ha_esker.so is built against and runs in, without touching the system: the packages of MariaDB's server, and the
# source that they were made of. Both come through apt from wherever this machine gets its Debian packages, and are unpacked below
# target/mariadb. Safe to run again: what is there of this version is kept.
# Usage: scripts/mariadb/fetch.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/mariadb/env.sh

packages="mariadb-server mariadb-server-core mariadb-client mariadb-client-core mariadb-common libmariadb3 libmariadb-dev
libmariadbd-dev mariadb-plugin-rocksdb mariadb-plugin-spider mariadb-test mariadb-test-data"
# What the server and its clients need of the system and a small one has not: used from the prefix as well.
libraries="liburing2 libaio1 libsnappy1v5 libpcre2-posix3 libpcre2-8-0 libedit2 libbsd0 libmd0 libncurses6 libnuma1 libssl3 liblz4-1
libzstd1 libsystemd0"

mkdir -p "$mariadb_home"
exec 9>"$mariadb_home/lock"
flock 9
# shellcheck disable=SC2086
wanted=$(echo "$mariadb_version" $packages $libraries)
[ "$(cat "$mariadb_home/fetched" 2>/dev/null)" = "$wanted" ] && exit 0
command -v apt-get >/dev/null || fail "needs apt: packages of Debian 12"
rm -rf "$mariadb_prefix" "$mariadb_source" "$mariadb_home/fetched"
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
Acquire::Retries "5";
Acquire::http::Timeout "60";
Acquire::https::Timeout "60";
CONF
export APT_CONFIG=$mariadb_home/apt/apt.conf

# Packages that are there already are not fetched again, so a second try goes on where the first one ended. Lists of other archives
# than Debian's may fail: what counts is whether the packages come.
fetch() {
  apt-get update -qq || true
  cd "$mariadb_home/debs"
  # shellcheck disable=SC2046,SC2086
  apt-get download -qq $(printf "%s=$mariadb_version " $packages) $libraries && apt-get source -qq --download-only "mariadb=$mariadb_version"
}

say "fetching MariaDB $mariadb_version"
for try in 1 2 3; do
  (fetch) && break
  [ "$try" -lt 3 ] || {
    offered=$(apt-cache madison mariadb-server | awk '{ print $3 }' | sort -u | tr '\n' ' ')
    fail "MariaDB $mariadb_version could not be fetched; this machine's package lists offer ${offered:-none}
(ESKER_MARIADB_VERSION chooses one; its source must be offered as well)"
  }
  say "trying again"
  sleep 10
done
for package in "$mariadb_home"/debs/*.deb; do dpkg-deb -x "$package" "$mariadb_prefix"; done
missing=$(LD_LIBRARY_PATH=$mariadb_prefix/usr/lib/x86_64-linux-gnu:$mariadb_prefix/lib/x86_64-linux-gnu \
  ldd "$mariadb_prefix"/usr/sbin/mariadbd "$mariadb_prefix"/usr/bin/mariadb "$mariadb_prefix"/usr/bin/mariadb-test | sed -n 's/=> not found//p' | sort -u)
[ -z "$missing" ] || fail "the server needs libraries that neither the system nor the fetched packages have: $missing"

# Of the source only the headers, and the tests that no package has.
upstream=${mariadb_version#*:}
upstream=mariadb-${upstream%%-*}
mkdir -p "$mariadb_source"
tar -xf "$mariadb_home"/debs/mariadb_*.orig.tar.gz -C "$mariadb_source" --strip-components=1 --wildcards --no-wildcards-match-slash \
  "$upstream/include" "$upstream/sql/*.h" "$upstream/wsrep-lib/include" "$upstream/wsrep-lib/wsrep-API"
mkdir -p "$mariadb_source/generated"
cp "$mariadb_source/include/probes_mysql_nodtrace.h.in" "$mariadb_source/generated/probes_mysql_nodtrace.h"
rm -rf "$mariadb_home/debs" "$mariadb_home/apt"
echo "$wanted" >"$mariadb_home/fetched"
say "unpacked in $mariadb_home"
