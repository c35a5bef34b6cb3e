// The plugin: what the server loads, and how the engine starts and stops with it.
#include "dictionary.h"
#include "engine.h"
#include "ha_esker.h"
#include "information.h"
#include "loader.h"
#include "status.h"
#include "ttl.h"
#include "variables.h"

// The server's, in none of its headers.
void ignore_db_dirs_append(const char *folder);

namespace esker {

namespace {

handler *make_handler(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *root) { return new (root) Handler(hton, share); }

// Asked after a crash whether an ALTER TABLE in place was done: 0 if it was.
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  const TablePointer table = find_table(path);
  if (table == nullptr) return 1;
  return View(table->definition) != View(reinterpret_cast<const char *>(version->str), version->length);
}

int start(void *place) {
  handlerton *hton = static_cast<handlerton *>(place);
  engine_handlerton = hton;
  // A folder in the data directory is a database to the server, unless it is told otherwise.
  ignore_db_dirs_append(data_folder());
  ignore_db_dirs_append(load_folder());
  if (clear_load_folder() || open_database()) return 1;
  apply_durability();
  if (load_dictionary()) {
    close_database();
    return 1;
  }
  hton->db_type = DB_TYPE_AUTOASSIGN;
  hton->create = make_handler;
  hton->show_status = show_engine_status;
  hton->check_version = check_version;
  hton->table_options = table_options;
  hton->flags = HTON_SUPPORTS_EXTENDED_KEYS;
  static const char *no_files[] = {NullS};
  hton->tablefile_extensions = no_files;
  fill_transaction_calls(hton);
  return 0;
}

int stop(void *) {
  forget_dictionary();
  close_database();
  return 0;
}

st_mysql_storage_engine storage_engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

st_mysql_information_schema information_schema = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

// Without an engine there is nothing to tell.
int stop_table(void *) { return 0; }

}  // namespace

}  // namespace esker

#define ESKER_TABLE(name, text, init)                                                                                        \
  {MYSQL_INFORMATION_SCHEMA_PLUGIN, &esker::information_schema, name, "The Esker project", text, PLUGIN_LICENSE_GPL, init, \
   esker::stop_table, 0x0001, nullptr, nullptr, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL}

maria_declare_plugin(esker){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &esker::storage_engine,
    "ESKER",
    "The Esker project",
    "Transactional LSM tables for flash",
    PLUGIN_LICENSE_GPL,
    esker::start,
    esker::stop,
    0x0001,
    esker::status_variables,
    esker::system_variables,
    "0.1",
    MariaDB_PLUGIN_MATURITY_EXPERIMENTAL,
},
    ESKER_TABLE("ESKER_FILES", "Files that rows are in", esker::init_files),
    ESKER_TABLE("ESKER_LEVELS", "Levels of those files", esker::init_levels),
    ESKER_TABLE("ESKER_TRANSACTIONS", "Transactions that run", esker::init_transactions),
    ESKER_TABLE("ESKER_LOCKS", "Locks that are held or wanted", esker::init_locks),
    ESKER_TABLE("ESKER_DEADLOCKS", "The last deadlocks", esker::init_deadlocks)
maria_declare_plugin_end;
