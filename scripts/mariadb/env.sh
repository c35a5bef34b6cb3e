# Where the scripts of this folder find and put things; sourced by them, from the project's root.

# The plugin is refused by a server of another version than the one it was compiled for.
mariadb_version=${ESKER_MARIADB_VERSION:-1:10.11.18-0+deb12u1}
mariadb_home=${ESKER_MARIADB_HOME:-${CARGO_TARGET_DIR:-$PWD/target}/mariadb}

mariadb_prefix=$mariadb_home/prefix   # the server's packages, unpacked
mariadb_source=$mariadb_home/source   # its sources, for the headers that no package has
mariadb_build=$mariadb_home/build     # objects and tests
mariadb_plugins=$mariadb_prefix/usr/lib/mysql/plugin
mariadb_tests=$mariadb_prefix/usr/share/mysql/mysql-test

say() { echo "mariadb: $*" >&2; }
fail() { say "$*"; exit 1; }
