// What becomes of the engine's errors.
#include "errors.h"

namespace esker {

namespace {

thread_local Bytes last_message;

int code_for(esker_error_kind kind) {
  switch (kind) {
    case ESKER_OK: return 0;
    case ESKER_CORRUPTION: return HA_ERR_CRASHED;
    case ESKER_NO_SPACE: return HA_ERR_DISK_FULL;
    case ESKER_READ_ONLY: return HA_ERR_TABLE_READONLY;
    case ESKER_UNSUPPORTED: return HA_ERR_NEW_FILE;
    // Another transaction was faster: the client runs this one again, as it does after a deadlock.
    case ESKER_CONFLICT:
    case ESKER_DEADLOCK:
    case ESKER_RETRY: return HA_ERR_LOCK_DEADLOCK;
    case ESKER_TIMED_OUT: return HA_ERR_LOCK_WAIT_TIMEOUT;
    case ESKER_LOCK_LIMIT: return HA_ERR_LOCK_TABLE_FULL;
    case ESKER_INTERRUPTED: return HA_ERR_ABORTED_BY_USER;
    case ESKER_WRITE_LIMIT: return kTransactionTooLarge;
    default: return kEngineError;
  }
}

}  // namespace

int code_of(esker_error *error, THD *thd) {
  if (likely(error == nullptr)) return 0;
  const int code = code_for(esker_error_get_kind(error));
  if (code == kEngineError || code == kTransactionTooLarge || code == HA_ERR_CRASHED) last_message = esker_error_message(error);
  if (code == kEngineError || code == HA_ERR_CRASHED) sql_print_error("ESKER: %s", last_message.c_str());
  if (code == HA_ERR_LOCK_DEADLOCK && thd != nullptr) thd->mark_transaction_to_rollback(true);
  esker_error_free(error);
  return code;
}

View engine_message() { return last_message; }

bool logged(esker_error *error, const char *doing) {
  if (error == nullptr) return false;
  sql_print_error("ESKER: %s: %s", doing, esker_error_message(error));
  esker_error_free(error);
  return true;
}

}  // namespace esker
