#!/bin/sh
# Fetches the engines that the lab compares with, as release builds, into peers/ (ignored by git):
#   peers/librocksdb.so    the official RocksDB build inside the Maven artifact org.rocksdb:rocksdbjni
#   peers/libleveldb.so    the LevelDB build inside the PyPI wheel of plyvel, with its libsnappy beside it
# Uses the ordinary clients (mvn, pip) with whatever registries they are configured for. Safe to run again: what
# is there and exports the right symbols is kept. Offline, it says what is missing and still exits 0, for the lab
# runs without peers; `--strict` makes a missing peer an error.
set -u

rocksdb_version="${ESKER_ROCKSDB_VERSION:-11.8.1}"
plyvel_version="${ESKER_PLYVEL_VERSION:-1.5.1}"
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
peers="${ESKER_PEERS_DIR:-$root/peers}"
strict=0
for argument in "$@"; do
  case "$argument" in
    --strict) strict=1 ;;
    *) echo "usage: $0 [--strict]" >&2; exit 2 ;;
  esac
done

missing=""
work=""
cleanup() { [ -z "$work" ] || rm -rf "$work"; }
trap cleanup EXIT
trap 'exit 130' INT TERM

mkdir -p "$peers"
work=$(mktemp -d "$peers/.fetch.XXXXXX") || exit 1

have() { command -v "$1" >/dev/null 2>&1; }

# exports FILE SYMBOL...: every symbol is in the file's dynamic table.
exports() {
  file=$1; shift
  [ -f "$file" ] || return 1
  if have nm; then
    table=$(nm -D --defined-only "$file" 2>/dev/null | awk '{print $NF}' | sed 's/@.*//')
  elif have readelf; then
    table=$(readelf --dyn-syms -W "$file" 2>/dev/null | awk '{print $NF}' | sed 's/@.*//')
  else
    table=""
    for symbol in "$@"; do grep -q -a "$symbol" "$file" && table="$table
$symbol"; done
  fi
  for symbol in "$@"; do
    if ! printf '%s\n' "$table" | grep -qx "$symbol"; then
      echo "  $file does not export $symbol" >&2
      return 1
    fi
  done
}

rocksdb_symbols="rocksdb_open rocksdb_put rocksdb_get_pinned rocksdb_write rocksdb_compact_range
rocksdb_options_set_memtable_vector_rep rocksdb_options_set_enable_blob_files rocksdb_cache_create_hyper_clock"
leveldb_symbols="leveldb_open leveldb_put leveldb_get leveldb_write leveldb_compact_range leveldb_create_iterator
leveldb_cache_create_lru leveldb_filterpolicy_create_bloom leveldb_major_version"

unpack() { # ARCHIVE PATTERN FOLDER
  if have unzip; then
    unzip -q -o "$1" "$2" -d "$3"
  else
    python3 - "$1" "$2" "$3" <<'PY'
import fnmatch, sys, zipfile
archive, pattern, folder = sys.argv[1:]
with zipfile.ZipFile(archive) as z:
    z.extractall(folder, [n for n in z.namelist() if fnmatch.fnmatch(n, pattern)])
PY
  fi
}

fetch_rocksdb() {
  target="$peers/librocksdb.so"
  # shellcheck disable=SC2086
  if [ "$(cat "$peers/rocksdb.version" 2>/dev/null)" = "$rocksdb_version" ] && exports "$target" $rocksdb_symbols
  then
    echo "rocksdb $rocksdb_version: already in $target"
    return 0
  fi
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) member=librocksdbjni-linux64.so ;;
    Linux-aarch64) member=librocksdbjni-linux-aarch64.so ;;
    *) echo "rocksdb: no prebuilt library is known for $(uname -s) $(uname -m); pass --rocksdb-lib to esker-lab" >&2
       return 1 ;;
  esac
  have mvn || { echo "rocksdb: mvn (Maven) is not installed" >&2; return 1; }
  if ! mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:copy \
      -Dartifact="org.rocksdb:rocksdbjni:$rocksdb_version" -DoutputDirectory="$work" >"$work/mvn.log" 2>&1; then
    echo "rocksdb: Maven could not get org.rocksdb:rocksdbjni:$rocksdb_version (offline?)" >&2
    return 1
  fi
  unpack "$work/rocksdbjni-$rocksdb_version.jar" "$member" "$work" || return 1
  # shellcheck disable=SC2086
  exports "$work/$member" $rocksdb_symbols || return 1
  mv -f "$work/$member" "$target" && printf '%s\n' "$rocksdb_version" >"$peers/rocksdb.version"
  echo "rocksdb $rocksdb_version: $target"
}

fetch_leveldb() {
  target="$peers/libleveldb.so"
  # shellcheck disable=SC2086
  if [ "$(cat "$peers/leveldb.version" 2>/dev/null)" = "plyvel $plyvel_version" ] &&
      exports "$target" $leveldb_symbols; then
    echo "leveldb of plyvel $plyvel_version: already in $target"
    return 0
  fi
  pip=""
  for candidate in "python3 -m pip" pip3 pip; do
    if $candidate --version >/dev/null 2>&1; then pip=$candidate; break; fi
  done
  [ -n "$pip" ] || { echo "leveldb: pip is not installed" >&2; return 1; }
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64 | Linux-aarch64) platform="manylinux2014_$(uname -m)" ;;
    *) echo "leveldb: no prebuilt library is known for $(uname -s) $(uname -m); pass --leveldb-lib to esker-lab" >&2
       return 1 ;;
  esac
  # Only the library inside is used, so the wheel need not fit the Python that happens to be installed.
  if ! $pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --implementation cp \
      --python-version 3.11 --platform "$platform" --platform "manylinux_2_17_$(uname -m)" \
      -d "$work" "plyvel==$plyvel_version" >"$work/pip.log" 2>&1; then
    echo "leveldb: pip could not get the wheel of plyvel $plyvel_version (offline?)" >&2
    return 1
  fi
  unpack "$(ls "$work"/plyvel-*.whl)" 'plyvel.libs/*' "$work" || return 1
  library=$(ls "$work"/plyvel.libs/libleveldb-*.so* 2>/dev/null | head -n 1)
  # shellcheck disable=SC2086
  exports "$library" $leveldb_symbols || return 1
  # Every library of the wheel keeps its own name, which the others refer to.
  cp -f "$work"/plyvel.libs/*.so* "$peers/" && ln -sf "$(basename "$library")" "$target" &&
    printf 'plyvel %s\n' "$plyvel_version" >"$peers/leveldb.version"
  echo "leveldb of plyvel $plyvel_version: $target"
}

fetch_rocksdb || missing="$missing rocksdb"
fetch_leveldb || missing="$missing leveldb"

if [ -n "$missing" ]; then
  echo "missing peers:$missing. The lab runs without them; run this again when online, or name a library of your"
  echo "own with esker-lab --rocksdb-lib FILE or --leveldb-lib FILE."
  [ "$strict" -eq 0 ] || exit 1
fi
exit 0
