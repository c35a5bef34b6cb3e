# Starts and stops a private server with the plugin, on a socket only; sourced by the scripts of this folder.

# Those that run; a script that fails leaves none behind.
server_folders=()
server_end() {
  local folder
  for folder in "${server_folders[@]}"; do
    [ ! -e "$folder/process" ] || kill -9 "$(cat "$folder/process")" 2>/dev/null || true
  done
}
trap server_end EXIT

# Runs a program of the server's for the data directory in FOLDER. A server that starts removes all temporary tables from where it has
# its own: no two may share the place.
server_program() { # FOLDER PROGRAM ARGUMENT…
  local folder=$1 program=$2
  shift 2
  mkdir -p "$folder/tmp"
  TMPDIR=$(cd "$folder/tmp" && pwd)
  export TMPDIR
  exec "$mariadb_prefix/usr/$program" --no-defaults --basedir="$mariadb_prefix/usr" \
    --datadir="$folder/data" --user="$(id -un)" --lc-messages-dir="$mariadb_prefix/usr/share/mysql" "$@"
}

# Makes an empty data directory, if there is none in FOLDER.
server_install() { # FOLDER
  [ -d "$1/data/mysql" ] && return
  mkdir -p "$1/data"
  (server_program "$1" bin/mariadb-install-db --auth-root-authentication-method=normal --skip-test-db --force \
    >"$1/install.log" 2>&1) || fail "see $1/install.log"
}

# Starts the server of FOLDER in the background and waits until it answers.
server_start() { # FOLDER OPTION…
  local folder=$1
  shift
  [ "${#folder}" -lt 100 ] || fail "the path $folder is too long for a socket in it: ESKER_MARIADB_HOME chooses a shorter one"
  server_program "$folder" sbin/mariadbd --socket="$folder/socket" --skip-networking --log-error="$folder/error.log" \
    --character-sets-dir="$mariadb_prefix/usr/share/mysql/charsets" --plugin-dir="$mariadb_plugins" \
    --plugin-maturity=experimental --plugin-load-add=ha_esker "$@" 2>>"$folder/error.log" &
  local process=$! tries=0
  echo "$process" >"$folder/process"
  server_folders+=("$folder")
  until "$mariadb_prefix/usr/bin/mariadb-admin" --no-defaults --socket="$folder/socket" ping >/dev/null 2>&1; do
    kill -0 "$process" 2>/dev/null || { tail -5 "$folder/error.log" >&2; fail "the server ended; see $folder/error.log"; }
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || fail "the server does not answer; see $folder/error.log"
    sleep 0.2
  done
}

server_stop() { # FOLDER
  "$mariadb_prefix/usr/bin/mariadb-admin" --no-defaults --socket="$1/socket" shutdown
  server_wait "$1"
}

# As a power cut would end it, but for what the system has in memory.
server_kill() { # FOLDER
  kill -9 "$(cat "$1/process")"
  server_wait "$1"
}

server_wait() { # FOLDER
  wait "$(cat "$1/process")" 2>/dev/null || true
  rm "$1/process"
}

# Options with which a server can be reached by others on this machine.
server_port() { # PORT [ADDRESS]
  echo "--skip-networking=0 --bind-address=${2:-127.0.0.1} --port=$1"
}

# A port that nobody listens on, below those that the system gives out by itself.
free_port() { # [ADDRESS]
  local port
  while :; do
    port=$((20000 + RANDOM % 10000))
    (exec 3<>"/dev/tcp/${1:-127.0.0.1}/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

client() { # FOLDER ARGUMENT…
  local folder=$1
  shift
  "$mariadb_prefix/usr/bin/mariadb" --no-defaults --socket="$folder/socket" "$@"
}

# The few libraries that the server's packages need are in the prefix too.
LD_LIBRARY_PATH=$mariadb_prefix/usr/lib/x86_64-linux-gnu:$mariadb_prefix/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
