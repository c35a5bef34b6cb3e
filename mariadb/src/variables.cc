// System variables: few, as whatever is not for one connection or for commits is a setting of the engine.
#include "variables.h"

#include "engine.h"
#include "errors.h"
#include "transaction.h"

namespace esker {

namespace {

char *data_dir;
char *checkpoint_folder;
char *settings;
ulonglong memory_bytes;
ulong flush_at_commit_value;

const char *flush_names[] = {"0", "1", "2", NullS};
TYPELIB flush_typelib = {array_elements(flush_names) - 1, "esker_flush_log_at_trx_commit", flush_names, nullptr};

void change_flush(THD *, st_mysql_sys_var *, void *, const void *save) {
  flush_at_commit_value = *static_cast<const ulong *>(save);
  apply_durability();
}

// Setting the variable makes the copy; a value that was set says nothing afterwards.
int make_checkpoint(THD *, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[FN_REFLEN];
  int size = sizeof buffer;
  const char *folder = value->val_str(value, buffer, &size);
  *static_cast<const char **>(save) = "";
  if (folder == nullptr || *folder == '\0') return 0;
  esker_error *error = esker_db_checkpoint(db, folder, nullptr, nullptr);
  if (error == nullptr) return 0;
  my_printf_error(ER_UNKNOWN_ERROR, "ESKER: %s", MYF(0), esker_error_message(error));
  esker_error_free(error);
  return 1;
}

void forget_checkpoint(THD *, st_mysql_sys_var *, void *, const void *) {}

MYSQL_SYSVAR_STR(checkpoint, checkpoint_folder, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_NOCMDOPT,
                 "Makes a copy of the database, as it is now, in the new folder that is set", make_checkpoint, forget_checkpoint, "");
MYSQL_SYSVAR_STR(data_dir, data_dir, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                 "The folder of the database; by default #esker in the data directory", nullptr, nullptr, nullptr);
MYSQL_SYSVAR_ULONGLONG(memory_size, memory_bytes, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                       "Memory of the engine in bytes: memtables, block cache, indexes and filters", nullptr, nullptr,
                       512ULL << 20, 16ULL << 20, ULONGLONG_MAX, 1 << 20);
MYSQL_SYSVAR_STR(settings, settings, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                 "Other settings of the engine, name=value;name=value", nullptr, nullptr, nullptr);
MYSQL_SYSVAR_ENUM(flush_log_at_trx_commit, flush_at_commit_value, PLUGIN_VAR_RQCMDARG,
                  "What a commit waits for: 1 the device, 2 the operating system, 0 as 2", nullptr, change_flush, kFlushAlways,
                  &flush_typelib);
MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG, "Seconds that a transaction waits for a lock", nullptr, nullptr, 50,
                   0, 1024 * 1024 * 1024, 0);

MYSQL_THDVAR_BOOL(bulk_load, PLUGIN_VAR_OPCMDARG,
                  "LOAD DATA, INSERT ... SELECT and CREATE TABLE ... SELECT fill empty tables past log and memtables, outside of "
                  "transactions",
                  nullptr, nullptr, false);

}  // namespace

st_mysql_sys_var *system_variables[] = {MYSQL_SYSVAR(data_dir), MYSQL_SYSVAR(memory_size), MYSQL_SYSVAR(settings),
                                        MYSQL_SYSVAR(flush_log_at_trx_commit), MYSQL_SYSVAR(checkpoint),
                                        MYSQL_SYSVAR(lock_wait_timeout), MYSQL_SYSVAR(bulk_load), nullptr};

Startup startup_variables() { return {memory_bytes, settings}; }

const char *data_folder() { return data_dir == nullptr || *data_dir == '\0' ? "#esker" : data_dir; }

FlushAtCommit flush_at_commit() { return static_cast<FlushAtCommit>(flush_at_commit_value); }

bool bulk_load(THD *thd) { return THDVAR(thd, bulk_load); }

ulonglong lock_wait_timeout_us(THD *thd) { return THDVAR(thd, lock_wait_timeout) * 1000000ULL; }

}  // namespace esker
