// Tables of information_schema, each filled from a list of the engine's.
#include "information.h"

#include <algorithm>

#include <sql_i_s.h>

#include "dictionary.h"
#include "engine.h"
#include "errors.h"

namespace esker {

namespace {

using Show::CEnd;
using Show::Column;
using Show::ULonglong;
using Show::Varchar;

constexpr uint kKeyBytesShown = 64;

// A row of a table of information_schema, column by column.
class Row {
 public:
  explicit Row(THD *thd, TABLE *table) : thd_(thd), table_(table) { restore_record(table, s->default_values); }

  Row &text(View value) {
    table_->field[at_]->set_notnull();
    table_->field[at_++]->store(value.data(), value.size(), system_charset_info);
    return *this;
  }
  Row &number(uint64_t value) {
    table_->field[at_]->set_notnull();
    table_->field[at_++]->store(static_cast<longlong>(value), true);
    return *this;
  }
  Row &none() {
    table_->field[at_++]->set_null();
    return *this;
  }
  // The table and the index that a stored key belongs to, and the key behind that in hexadecimal digits.
  Row &key(uint32_t family, esker_slice stored) {
    const View key = view(stored);
    Bytes table, index, digits;
    if (family == esker_family_id(rows) && key.size() >= 4) name_index(read_u32_be(key.data()), table, index);
    for (const char byte : key.substr(std::min<size_t>(key.size(), 4), kKeyBytesShown)) {
      digits.push_back(_dig_vec_lower[static_cast<uchar>(byte) >> 4]);
      digits.push_back(_dig_vec_lower[static_cast<uchar>(byte) & 15]);
    }
    return text(table).text(index).text(digits);
  }
  bool store() { return schema_table_store_record(thd_, table_); }

 private:
  THD *thd_;
  TABLE *table_;
  uint at_ = 0;
};

int failed(esker_error *error) {
  if (error == nullptr) return 0;
  my_printf_error(ER_UNKNOWN_ERROR, "ESKER: %s", MYF(0), esker_error_message(error));
  esker_error_free(error);
  return 1;
}

const char *mode_name(esker_lock_mode mode) { return mode == ESKER_SHARED ? "shared" : "exclusive"; }

ST_FIELD_INFO file_fields[] = {Column("FILE", Varchar(32), NOT_NULL),         Column("LEVEL", ULonglong(), NOT_NULL),
                               Column("BYTES", ULonglong(), NOT_NULL),        Column("BLOB_BYTES", ULonglong(), NOT_NULL),
                               Column("ENTRIES", ULonglong(), NOT_NULL),      Column("DELETIONS", ULonglong(), NOT_NULL),
                               Column("FIRST_TABLE", Varchar(192), NOT_NULL), Column("FIRST_INDEX", Varchar(64), NOT_NULL),
                               Column("FIRST_KEY", Varchar(2 * kKeyBytesShown), NOT_NULL),
                               Column("LAST_TABLE", Varchar(192), NOT_NULL),  Column("LAST_INDEX", Varchar(64), NOT_NULL),
                               Column("LAST_KEY", Varchar(2 * kKeyBytesShown), NOT_NULL),
                               CEnd()};

int fill_files(THD *thd, TABLE_LIST *list, COND *) {
  esker_tables *tables;
  if (failed(esker_db_tables(db, rows, {nullptr, 0}, {nullptr, 0}, &tables))) return 1;
  size_t count;
  const esker_table *items = esker_tables_items(tables, &count);
  bool is_over = false;
  for (size_t i = 0; i < count && !is_over; i++) {
    char name[32];
    snprintf(name, sizeof name, "%06llu.sst", static_cast<ulonglong>(items[i].number));
    is_over = Row(thd, list->table)
                  .text(name)
                  .number(items[i].level)
                  .number(items[i].size_bytes)
                  .number(items[i].blob_bytes)
                  .number(items[i].entries)
                  .number(items[i].deletions)
                  .key(esker_family_id(rows), items[i].smallest)
                  .key(esker_family_id(rows), items[i].largest)
                  .store();
  }
  esker_tables_free(tables);
  return is_over;
}

ST_FIELD_INFO level_fields[] = {Column("LEVEL", ULonglong(), NOT_NULL), Column("FILES", ULonglong(), NOT_NULL),
                                Column("BYTES", ULonglong(), NOT_NULL), Column("SCORE_PERCENT", ULonglong(), NOT_NULL), CEnd()};

int fill_levels(THD *thd, TABLE_LIST *list, COND *) {
  esker_levels *levels;
  if (failed(esker_db_levels(db, rows, &levels))) return 1;
  size_t count;
  const esker_level *items = esker_levels_items(levels, &count);
  bool is_over = false;
  for (size_t i = 0; i < count && !is_over; i++) {
    is_over = Row(thd, list->table)
                  .number(i)
                  .number(items[i].files)
                  .number(items[i].bytes)
                  .number(static_cast<uint64_t>(items[i].score * 100))
                  .store();
  }
  esker_levels_free(levels);
  return is_over;
}

ST_FIELD_INFO transaction_fields[] = {Column("TRANSACTION", ULonglong(), NOT_NULL), Column("CONNECTION", Varchar(20), NULLABLE),
                                      Column("STATE", Varchar(16), NOT_NULL),       Column("AGE_MS", ULonglong(), NOT_NULL),
                                      Column("WRITES", ULonglong(), NOT_NULL),      Column("LOCKS", ULonglong(), NOT_NULL),
                                      Column("WAITED_MS", ULonglong(), NULLABLE),   CEnd()};

int fill_transactions(THD *thd, TABLE_LIST *list, COND *) {
  esker_running_list *running;
  esker_waits *waits;
  if (failed(esker_db_running(db, &running))) return 1;
  if (failed(esker_db_waits(db, &waits))) {
    esker_running_free(running);
    return 1;
  }
  size_t count, wait_count;
  const esker_running *items = esker_running_items(running, &count);
  const esker_wait *wait_items = esker_waits_items(waits, &wait_count);
  bool is_over = false;
  for (size_t i = 0; i < count && !is_over; i++) {
    const esker_wait *wait = std::find_if(wait_items, wait_items + wait_count,
                                          [&](const esker_wait &one) { return one.transaction == items[i].id; });
    const bool waits_now = wait != wait_items + wait_count;
    Row row(thd, list->table);
    row.number(items[i].id);
    if (items[i].label.data == nullptr) row.none();
    else row.text(view(items[i].label));
    row.text(items[i].is_prepared ? "prepared" : waits_now ? "waits" : "active").number(items[i].age_us / 1000);
    row.number(items[i].writes).number(items[i].locks);
    is_over = (waits_now ? row.number(wait->waited_us / 1000) : row.none()).store();
  }
  esker_waits_free(waits);
  esker_running_free(running);
  return is_over;
}

ST_FIELD_INFO lock_fields[] = {Column("TRANSACTION", ULonglong(), NOT_NULL), Column("STATE", Varchar(8), NOT_NULL),
                               Column("MODE", Varchar(10), NOT_NULL),        Column("TABLE_NAME", Varchar(192), NOT_NULL),
                               Column("INDEX_NAME", Varchar(64), NOT_NULL),  Column("KEY_START", Varchar(2 * kKeyBytesShown), NOT_NULL),
                               Column("IS_RANGE", ULonglong(), NOT_NULL),    CEnd()};

bool store_lock(THD *thd, TABLE *table, uint64_t transaction, const char *state, const esker_lock_target &target) {
  return Row(thd, table)
      .number(transaction)
      .text(state)
      .text(mode_name(target.mode))
      .key(target.family, target.start)
      .number(target.is_range)
      .store();
}

int fill_locks(THD *thd, TABLE_LIST *list, COND *) {
  esker_locks *locks;
  if (failed(esker_db_locks(db, &locks))) return 1;
  size_t count;
  const esker_lock *items = esker_locks_items(locks, &count);
  bool is_over = false;
  for (size_t i = 0; i < count; i++) {
    for (size_t holder = 0; holder < items[i].holder_count && !is_over; holder++) {
      is_over = store_lock(thd, list->table, items[i].holders[holder], "held", items[i].target);
    }
  }
  esker_locks_free(locks);
  esker_waits *waits;
  if (is_over || failed(esker_db_waits(db, &waits))) return 1;
  const esker_wait *wait_items = esker_waits_items(waits, &count);
  for (size_t i = 0; i < count && !is_over; i++) {
    is_over = store_lock(thd, list->table, wait_items[i].transaction, "wanted", wait_items[i].target);
  }
  esker_waits_free(waits);
  return is_over;
}

ST_FIELD_INFO deadlock_fields[] = {Column("DEADLOCK", ULonglong(), NOT_NULL),    Column("AGE_S", ULonglong(), NOT_NULL),
                                   Column("TRANSACTION", ULonglong(), NOT_NULL), Column("WAITED_FOR", ULonglong(), NOT_NULL),
                                   Column("MODE", Varchar(10), NOT_NULL),        Column("TABLE_NAME", Varchar(192), NOT_NULL),
                                   Column("INDEX_NAME", Varchar(64), NOT_NULL),  Column("KEY_START", Varchar(2 * kKeyBytesShown), NOT_NULL),
                                   CEnd()};

int fill_deadlocks(THD *thd, TABLE_LIST *list, COND *) {
  esker_deadlocks *deadlocks;
  if (failed(esker_db_deadlocks(db, &deadlocks))) return 1;
  size_t count;
  const esker_deadlock *items = esker_deadlocks_items(deadlocks, &count);
  bool is_over = false;
  for (size_t i = 0; i < count; i++) {
    for (size_t at = 0; at < items[i].step_count && !is_over; at++) {
      const esker_deadlock_step &step = items[i].steps[at];
      is_over = Row(thd, list->table)
                    .number(i + 1)
                    .number(items[i].age_us / 1000000)
                    .number(step.transaction)
                    .number(step.waits_for)
                    .text(mode_name(step.target.mode))
                    .key(step.target.family, step.target.start)
                    .store();
    }
  }
  esker_deadlocks_free(deadlocks);
  return is_over;
}

int init(void *schema, ST_FIELD_INFO *fields, int (*fill)(THD *, TABLE_LIST *, COND *)) {
  ST_SCHEMA_TABLE *table = static_cast<ST_SCHEMA_TABLE *>(schema);
  table->fields_info = fields;
  table->fill_table = fill;
  return 0;
}

}  // namespace

int init_files(void *schema) { return init(schema, file_fields, fill_files); }
int init_levels(void *schema) { return init(schema, level_fields, fill_levels); }
int init_transactions(void *schema) { return init(schema, transaction_fields, fill_transactions); }
int init_locks(void *schema) { return init(schema, lock_fields, fill_locks); }
int init_deadlocks(void *schema) { return init(schema, deadlock_fields, fill_deadlocks); }

}  // namespace esker
