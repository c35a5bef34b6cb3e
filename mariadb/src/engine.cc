// The database of this server.
#include "engine.h"

#include "decided.h"
#include "errors.h"
#include "ttl.h"
#include "variables.h"

namespace esker {

handlerton *engine_handlerton;
esker_db *db;
esker_family *rows;
esker_family *dictionary_family;
bool began_with_prepared;
esker_write_options *synced_unlocked;

namespace {

// The dictionary's counters only grow: the larger operand wins, whatever the order in which transactions commit.
bool keep_larger(void *, esker_slice, esker_slice base, const esker_slice *operands, size_t count, esker_buffer *value) {
  View larger = base.data == nullptr ? View() : view(base);
  for (size_t i = 0; i < count; i++) larger = std::max(larger, view(operands[i]));
  return !logged(esker_buffer_set(value, slice(larger)), "merging a counter");
}

bool keep_larger_operand(void *, esker_slice key, const esker_slice *operands, size_t count, esker_buffer *operand) {
  return keep_larger(nullptr, key, {nullptr, 0}, operands, count, operand);
}

// Settings of transactions, which are the program's and not stored with the database.
bool is_of_transactions(const Bytes &name) {
  for (const char *known : {"shards", "max_locks", "overtakes", "deadlock_depth", "deadlocks_kept", "max_write_set_bytes"}) {
    if (name == known) return true;
  }
  return false;
}

bool set_of_transactions(esker_transaction_settings *transactions, const Bytes &name, const Bytes &text) {
  char *end;
  const ulonglong value = strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') {
    sql_print_error("ESKER: esker_settings: %s is not a number: %s", name.c_str(), text.c_str());
    return true;
  }
  return logged(esker_transaction_settings_set(transactions, name.c_str(), value), "esker_settings");
}

// Whether the setting is one of column families, whose are those of the rows here.
bool set_of_rows(esker_family_options *rows_options, const Bytes &name, const Bytes &value) {
  esker_error *error = esker_family_options_set(rows_options, name.c_str(), value.c_str());
  esker_error_free(error);
  return error == nullptr;
}

bool set_all(esker_options *options, esker_family_options *rows_options, esker_transaction_settings *transactions, const char *settings) {
  Bytes text = settings == nullptr ? "" : settings;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    Bytes one = text.substr(0, end);
    text.erase(0, end + 1);
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    if (equals == Bytes::npos) {
      sql_print_error("ESKER: esker_settings: %s is not name=value", one.c_str());
      return true;
    }
    const Bytes value = one.substr(equals + 1);
    one.resize(equals);
    if (is_of_transactions(one)) {
      if (set_of_transactions(transactions, one, value)) return true;
      continue;
    }
    if (set_of_rows(rows_options, one, value)) continue;
    if (logged(esker_options_set(options, one.c_str(), value.c_str()), "esker_settings")) return true;
  }
  return false;
}

bool open_with(esker_options *options, esker_transaction_settings *settings, esker_family_options *dictionary_options,
               esker_family_options *rows_options) {
  const Startup startup = startup_variables();
  const Bytes memory = std::to_string(startup.memory_bytes);
  const esker_merge_operator larger = {nullptr, nullptr, "esker-mariadb.larger", keep_larger, keep_larger_operand};
  if (logged(esker_options_set(options, "memory_budget_bytes", memory.c_str()), "esker_memory_size") ||
      // What memory the server's machine has beyond the budget then holds blocks as they are stored, two or three for one.
      logged(esker_options_set(options, "read_io", "buffered"), "opening") ||
      set_all(options, rows_options, settings, startup.settings) ||
      logged(esker_family_options_set_merge_operator(dictionary_options, &larger), "opening") ||
      logged(add_ttl_filter(rows_options), "opening") ||
      logged(esker_options_set_family(options, "default", rows_options), "opening") ||
      logged(esker_options_set_family(options, "dictionary", dictionary_options), "opening")) {
    return true;
  }
  esker_options_create_missing_families(options, true);
  return logged(esker_db_open_transactional(data_folder(), options, settings, &db), "opening the database") ||
         logged(esker_family_open(db, "default", &rows), "opening the database") ||
         logged(esker_family_open(db, "dictionary", &dictionary_family), "opening the database");
}

bool find_prepared() {
  esker_prepared_transactions *prepared;
  if (logged(esker_db_prepared_transactions(db, &prepared), "listing prepared transactions")) return true;
  size_t count;
  esker_prepared_transactions_items(prepared, &count);
  esker_prepared_transactions_free(prepared);
  began_with_prepared = count > 0;
  return false;
}

}  // namespace

bool open_database() {
  esker_options *options = esker_options_create();
  esker_transaction_settings *settings = esker_transaction_settings_create();
  esker_family_options *dictionary_options = esker_family_options_create();
  esker_family_options *rows_options = esker_family_options_create();
  bool failed = open_with(options, settings, dictionary_options, rows_options) || find_prepared();
  esker_family_options_free(rows_options);
  esker_family_options_free(dictionary_options);
  esker_transaction_settings_free(settings);
  esker_options_free(options);
  synced_unlocked = esker_write_options_create();
  failed = logged(esker_write_options_set_durability(synced_unlocked, ESKER_SYNC), "opening") || failed;
  esker_write_options_set_unlocked(synced_unlocked, true);
  if (failed) close_database();
  return failed;
}

void close_database() {
  leave_decided();
  esker_write_options_free(synced_unlocked);
  esker_family_free(rows);
  esker_family_free(dictionary_family);
  if (db != nullptr) logged(esker_db_close(db), "closing the database");
  synced_unlocked = nullptr;
  rows = dictionary_family = nullptr;
  db = nullptr;
}

}  // namespace esker
