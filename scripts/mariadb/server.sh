# Starts and stops a private server with the plugin, on a socket only; sourced by the scripts of this folder.

# Makes an empty data directory, if there is none in FOLDER.
server_install() { # FOLDER
  [ -d "$1/data/mysql" ] && return
  mkdir -p "$1/data"
  "$mariadb_prefix/usr/bin/mariadb-install-db" --no-defaults --basedir="$mariadb_prefix/usr" --datadir="$1/data" \
    --user="$(id -un)" --auth-root-authentication-method=normal --skip-test-db --force \
    --lc-messages-dir="$mariadb_prefix/usr/share/mysql" >"$1/install.log" 2>&1 || fail "see $1/install.log"
}

# Starts the server of FOLDER in the background and waits until it answers; its process is $server_process.
server_start() { # FOLDER OPTION…
  local folder=$1
  shift
  "$mariadb_prefix/usr/sbin/mariadbd" --no-defaults --basedir="$mariadb_prefix/usr" --datadir="$folder/data" \
    --socket="$folder/socket" --skip-networking --user="$(id -un)" --log-error="$folder/error.log" \
    --lc-messages-dir="$mariadb_prefix/usr/share/mysql" --character-sets-dir="$mariadb_prefix/usr/share/mysql/charsets" \
    --plugin-dir="$mariadb_plugins" --plugin-maturity=experimental --plugin-load-add=ha_esker "$@" 2>>"$folder/error.log" &
  server_process=$!
  local tries=0
  until "$mariadb_prefix/usr/bin/mariadb-admin" --no-defaults --socket="$folder/socket" ping >/dev/null 2>&1; do
    kill -0 "$server_process" 2>/dev/null || { tail -5 "$folder/error.log" >&2; fail "the server ended; see $folder/error.log"; }
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || fail "the server does not answer; see $folder/error.log"
    sleep 0.2
  done
}

server_stop() { # FOLDER
  "$mariadb_prefix/usr/bin/mariadb-admin" --no-defaults --socket="$1/socket" shutdown
  wait "$server_process" || true
}

client() { # FOLDER ARGUMENT…
  local folder=$1
  shift
  "$mariadb_prefix/usr/bin/mariadb" --no-defaults --socket="$folder/socket" "$@"
}

# The few libraries that the server's packages need are in the prefix too.
LD_LIBRARY_PATH=$mariadb_prefix/usr/lib/x86_64-linux-gnu:$mariadb_prefix/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
