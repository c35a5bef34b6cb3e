# Writers with numbered transactions, and what must be true of what they wrote; sourced by scripts of this folder, behind server.sh.

load_writers=4
load_jobs=()

# Tables of the engine that is the server's default: one with a key that is not unique, one without a primary key.
load_create() { # FOLDER
  client "$1" -e "CREATE DATABASE bank; USE bank;
    CREATE TABLE entry (writer INT, n INT, v INT, text VARCHAR(200), PRIMARY KEY (writer, n), KEY (v, text));
    CREATE TABLE note (writer INT, n INT, KEY (writer));"
}

# One writer: a transaction puts a row into each table, changes one of before and removes another one; its number is noted once the
# server has acknowledged it.
load_writer() { # FOLDER WRITER FIRST
  local n=$3
  while :; do
    echo "BEGIN; INSERT INTO entry VALUES ($2, $n, 0, REPEAT('text $n ', 10)); INSERT INTO note VALUES ($2, $n);
      UPDATE entry SET v = v + 1, text = REPEAT('new $n ', 12) WHERE writer = $2 AND n = $n - 3;
      DELETE FROM entry WHERE writer = $2 AND n = $n - 50 AND n % 2 = 0; COMMIT; SELECT $n;"
    n=$((n + 1))
  done | client "$1" -N --unbuffered --skip-reconnect bank >>"$1/acknowledged.$2" 2>/dev/null || true
}

load_start() { # FOLDER
  local w first
  load_jobs=()
  for w in $(seq "$load_writers"); do
    first=$(client "$1" -N -e "SELECT COALESCE(MAX(n), 0) + 1 FROM bank.note WHERE writer = $w")
    load_writer "$1" "$w" "$first" &
    load_jobs+=($!)
  done
}

# Ends the writers; the last transaction of each is committed, or was never begun.
load_stop() { # FOLDER
  local id ids
  ids=$(client "$1" -N -e "SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE db = 'bank'")
  for id in ${ids//,/ }; do client "$1" -e "KILL $id" 2>/dev/null || true; done
  load_wait
}

load_wait() {
  local job
  for job in "${load_jobs[@]}"; do wait "$job" || true; done
}

# The last number that a writer was told of.
load_acknowledged() { # FOLDER WRITER
  if [ -s "$1/acknowledged.$2" ]; then tail -n 1 "$1/acknowledged.$2"; else echo 0; fi
}

# All transactions up to a number are there, whole, and none beyond it in part; of each writer at least up to the number that is given.
load_check() { # WHAT FOLDER NUMBER-OF-WRITER…
  local what=$1 folder=$2 w=0 wanted found
  shift 2
  for wanted in "$@"; do
    w=$((w + 1))
    found=$(client "$folder" -N bank -e "
      SELECT m >= $wanted AND c = m AND (SELECT COUNT(*) FROM entry WHERE writer = $w) = m - GREATEST((m - 50) DIV 2, 0)
        AND (SELECT COALESCE(SUM(v), 0) FROM entry WHERE writer = $w AND n > m - 50) = GREATEST(LEAST(m, 50) - 3, 0)
        FROM (SELECT COALESCE(MAX(n), 0) AS m, COUNT(*) AS c FROM note WHERE writer = $w) AS last")
    [ "$found" = 1 ] || fail "$what: writer $w was told of $wanted: $(client "$folder" -N bank -e "SELECT MAX(n), COUNT(*) FROM note WHERE writer = $w") is there"
  done
  client "$folder" -N bank -e "CHECK TABLE entry, note" | grep -qv 'status.*OK' && fail "$what: CHECK TABLE"
  return 0
}

# That number of every writer.
load_numbers() { # FOLDER
  local w
  for w in $(seq "$load_writers"); do load_acknowledged "$1" "$w"; done
}
