// The data dictionary.
#include "dictionary.h"

#include <map>
#include <mutex>

#include "engine.h"
#include "errors.h"
#include "ttl.h"

namespace esker {

namespace {

constexpr char kVersion = 2;
constexpr char kTemporary = 1, kExpires = 2;

std::mutex mutex;                            // guards what follows; held across the engine's writes, so that both agree
std::map<Bytes, TablePointer, std::less<>> tables;
uint32_t last_number;
std::map<uint32_t, std::shared_ptr<Counters>> counters;

Bytes table_key(View name) { return Bytes("t").append(name); }

Bytes counter_key(uint32_t index_number) {
  Bytes key = "a";
  append_u32_be(key, index_number);
  return key;
}

Bytes building_key(uint32_t index_number) {
  Bytes key = "b";
  append_u32_be(key, index_number);
  return key;
}

Bytes encode(const TableEntry &table) {
  Bytes value;
  value.push_back(kVersion);
  value.push_back(static_cast<char>((table.is_temporary ? kTemporary : 0) | (table.ttl_seconds != 0 ? kExpires : 0)));
  if (table.ttl_seconds != 0) append_length(value, table.ttl_seconds);
  append_length(value, table.definition.size());
  value.append(table.definition);
  append_length(value, table.added.size());
  for (const AddedColumns &added : table.added) {
    append_length(value, added.columns_before);
    append_length(value, added.values.size());
    for (const Bytes &one : added.values) {
      append_length(value, one.size());
      value.append(one);
    }
  }
  for (const IndexEntry &index : table.indexes) {
    append_u32_be(value, index.number);
    append_length(value, index.name.size());
    value.append(index.name);
  }
  return value;
}

bool decode_added(View &value, TableEntry &table) {
  uint64_t times, count, length;
  View bytes;
  if (!take_length(value, times)) return false;
  while (times-- > 0) {
    AddedColumns added;
    if (!take_length(value, added.columns_before) || !take_length(value, count)) return false;
    while (count-- > 0) {
      if (!take_length(value, length) || !take(value, length, bytes)) return false;
      added.values.emplace_back(bytes);
    }
    table.added.push_back(std::move(added));
  }
  return true;
}

bool decode(View value, TableEntry &table) {
  View head, definition, number, name;
  uint64_t length;
  if (!take(value, 2, head) || head[0] != kVersion) return false;
  table.is_temporary = (head[1] & kTemporary) != 0;
  if ((head[1] & kExpires) != 0 && !take_length(value, table.ttl_seconds)) return false;
  if (!take_length(value, length) || !take(value, length, definition)) return false;
  table.definition.assign(definition);
  if (!decode_added(value, table)) return false;
  while (!value.empty()) {
    if (!take(value, 4, number) || !take_length(value, length) || !take(value, length, name)) return false;
    table.indexes.push_back({read_u32_be(number.data()), Bytes(name), 0});
  }
  return true;
}

// A change: what the engine is to do at once.
class Change {
 public:
  Change() : batch_(esker_batch_create()) {}
  Change(const Change &) = delete;
  ~Change() {
    esker_batch_free(batch_);
    esker_error_free(error_);
  }

  void put(View key, View value) {
    if (!error_) error_ = esker_batch_put(batch_, dictionary_family, slice(key), slice(value));
  }
  void remove(View key) {
    if (!error_) error_ = esker_batch_delete(batch_, dictionary_family, slice(key));
  }
  void put_last_number() {
    Bytes value;
    append_u32_be(value, last_number);
    put("n", value);
  }
  void put_counter(uint32_t index_number, uint64_t next) {
    Bytes value;
    append_u64_be(value, next);
    put(counter_key(index_number), value);
  }
  // Removes all that belongs to the indexes of a table.
  void remove_rows(const TableEntry &table) {
    for (const IndexEntry &index : table.indexes) remove_index(index.number);
  }
  void remove_index(uint32_t number) {
    Bytes start, end;
    append_u32_be(start, number);
    append_u32_be(end, number + 1);
    if (!error_) error_ = esker_batch_delete_range(batch_, rows, slice(start), slice(end));
    remove(counter_key(number));
    remove(building_key(number));
  }
  int commit() {
    if (!error_) error_ = esker_db_write(db, batch_, synced_unlocked);
    return code_of(std::exchange(error_, nullptr), nullptr);
  }

 private:
  esker_batch *batch_;
  esker_error *error_ = nullptr;
};

// Gives files back at once that hold nothing but rows of a table which is gone. They go by compactions otherwise.
void drop_files(uint32_t number) {
  set_ttl(number, 0);
  Bytes start, end;
  append_u32_be(start, number);
  append_u32_be(end, number + 1);
  const esker_range range = {slice(start), slice(end)};
  logged(esker_db_delete_files_in_ranges(db, rows, &range, 1, nullptr), "dropping files of a table");
}

void drop_files(const TableEntry &table) {
  for (const IndexEntry &index : table.indexes) drop_files(index.number);
}

void number_indexes(TableEntry &table) {
  for (IndexEntry &index : table.indexes) index.number = ++last_number;
}

// A snapshot of before sees nothing of what is in new indexes. Temporary tables are there for one connection, which has filled them.
void note_age(TableEntry &table) {
  if (table.is_temporary) return;
  for (IndexEntry &index : table.indexes) index.since = esker_db_last_sequence(db);
}

// Compactions look at rows of these indexes.
void note_ttl(const TableEntry &table) {
  for (const IndexEntry &index : table.indexes) set_ttl(index.number, table.ttl_seconds);
}

bool has_index(const TableEntry &table, uint32_t number) {
  for (const IndexEntry &index : table.indexes) {
    if (index.number == number) return true;
  }
  return false;
}

// Reads all records into memory.
bool read_records(std::vector<uint32_t> &building) {
  esker_iterator *iterator;
  if (logged(esker_iterator_create(db, dictionary_family, nullptr, &iterator), "reading the dictionary")) return true;
  esker_row row;
  bool failed = logged(esker_iterator_seek_to_first(iterator, &row), "reading the dictionary");
  while (!failed && row.key.data != nullptr) {
    const View key = view(row.key), value = view(row.value);
    if (key == "n" && value.size() == 4) last_number = read_u32_be(value.data());
    if (key.front() == 'b' && key.size() == 5) building.push_back(read_u32_be(key.data() + 1));
    if (key.front() == 't') {
      auto table = std::make_shared<TableEntry>();
      if (!decode(value, *table)) {
        sql_print_error("ESKER: the dictionary's record of %s can't be read", Bytes(key.substr(1)).c_str());
        failed = true;
      }
      note_ttl(*table);
      tables[Bytes(key.substr(1))] = table;
    }
    failed = failed || logged(esker_iterator_next(iterator, &row), "reading the dictionary");
  }
  esker_iterator_free(iterator);
  return failed;
}

}  // namespace

bool load_dictionary() {
  std::vector<uint32_t> building;
  {
    std::lock_guard guard(mutex);
    if (read_records(building)) return true;
  }
  if (end_build(building) != 0) return true;
  std::vector<Bytes> left_over;
  for (const auto &[name, table] : tables) {
    if (table->is_temporary) left_over.push_back(name);
  }
  for (const Bytes &name : left_over) {
    if (drop_table(name.c_str()) != 0) return true;
  }
  return false;
}

void forget_dictionary() {
  std::lock_guard guard(mutex);
  tables.clear();
  counters.clear();
  forget_ttls();
  last_number = 0;
}

TablePointer find_table(const char *name) {
  std::lock_guard guard(mutex);
  const auto found = tables.find(View(name));
  return found == tables.end() ? nullptr : found->second;
}

void name_index(uint32_t number, Bytes &table, Bytes &index) {
  std::lock_guard guard(mutex);
  for (const auto &[name, entry] : tables) {
    for (const IndexEntry &one : entry->indexes) {
      if (one.number != number) continue;
      table = name;
      index = one.name;
      return;
    }
  }
}

int create_table(const char *name, TableEntry table, uint64_t auto_increment) {
  std::lock_guard guard(mutex);
  if (tables.count(View(name)) != 0) return HA_ERR_TABLE_EXIST;
  number_indexes(table);
  Change change;
  change.put(table_key(name), encode(table));
  change.put_last_number();
  if (auto_increment > 1) change.put_counter(table.indexes[0].number, auto_increment);
  if (const int code = change.commit()) return code;
  note_age(table);
  note_ttl(table);
  tables[name] = std::make_shared<TableEntry>(std::move(table));
  return 0;
}

int drop_table(const char *name) {
  TablePointer dropped;
  {
    std::lock_guard guard(mutex);
    const auto found = tables.find(View(name));
    if (found == tables.end()) return HA_ERR_NO_SUCH_TABLE;
    dropped = found->second;
    Change change;
    change.remove(table_key(name));
    change.remove_rows(*dropped);
    if (const int code = change.commit()) return code;
    tables.erase(found);
    counters.erase(dropped->indexes[0].number);
  }
  drop_files(*dropped);
  return 0;
}

int rename_table(const char *from, const char *to) {
  std::lock_guard guard(mutex);
  const auto found = tables.find(View(from));
  if (found == tables.end()) return HA_ERR_NO_SUCH_TABLE;
  if (tables.count(View(to)) != 0) return HA_ERR_TABLE_EXIST;
  const TablePointer table = found->second;
  Change change;
  change.remove(table_key(from));
  change.put(table_key(to), encode(*table));
  if (const int code = change.commit()) return code;
  tables.erase(found);
  tables[to] = table;
  return 0;
}

int truncate_table(const char *name) {
  TablePointer before;
  {
    std::lock_guard guard(mutex);
    const auto found = tables.find(View(name));
    if (found == tables.end()) return HA_ERR_NO_SUCH_TABLE;
    before = found->second;
    TableEntry table = *before;
    number_indexes(table);
    Change change;
    change.put(table_key(name), encode(table));
    change.put_last_number();
    change.remove_rows(*before);
    if (const int code = change.commit()) return code;
    note_age(table);
    note_ttl(table);
    found->second = std::make_shared<TableEntry>(std::move(table));
    counters.erase(before->indexes[0].number);
  }
  drop_files(*before);
  return 0;
}

std::shared_ptr<Counters> counters_of(uint32_t index_number) {
  std::lock_guard guard(mutex);
  std::shared_ptr<Counters> &found = counters[index_number];
  if (found == nullptr) found = std::make_shared<Counters>();
  return found;
}

int begin_build(TableEntry &table) {
  std::lock_guard guard(mutex);
  Change change;
  for (IndexEntry &index : table.indexes) {
    if (index.number != 0) continue;
    index.number = ++last_number;
    change.put(building_key(index.number), {});
  }
  change.put_last_number();
  return change.commit();
}

int end_build(const std::vector<uint32_t> &numbers) {
  if (numbers.empty()) return 0;
  {
    std::lock_guard guard(mutex);
    Change change;
    for (const uint32_t number : numbers) change.remove_index(number);
    if (const int code = change.commit()) return code;
  }
  for (const uint32_t number : numbers) drop_files(number);
  return 0;
}

int alter_table(const char *name, TableEntry table, const std::vector<uint> &built, uint64_t auto_increment) {
  TablePointer before;
  {
    std::lock_guard guard(mutex);
    const auto found = tables.find(View(name));
    if (found == tables.end()) return HA_ERR_NO_SUCH_TABLE;
    before = found->second;
    // The counter is found by the table's first index.
    const uint32_t was_first = before->indexes[0].number, first = table.indexes[0].number;
    Change change;
    for (const IndexEntry &index : before->indexes) {
      if (!has_index(table, index.number)) change.remove_index(index.number);
    }
    for (const uint place : built) change.remove(building_key(table.indexes[place].number));
    if (was_first != first) change.remove(counter_key(was_first));
    if (auto_increment != 0) change.put_counter(first, auto_increment);
    change.put(table_key(name), encode(table));
    if (const int code = change.commit()) return code;
    for (IndexEntry &index : table.indexes) {
      for (const IndexEntry &old : before->indexes) {
        if (old.number == index.number) index.since = old.since;
      }
    }
    for (const uint place : built) table.indexes[place].since = esker_db_last_sequence(db);
    note_ttl(table);
    found->second = std::make_shared<TableEntry>(table);
    // Nobody has been given numbers that are not committed: the table is locked.
    counters.erase(was_first);
    counters.erase(first);
  }
  for (const IndexEntry &index : before->indexes) {
    if (!has_index(table, index.number)) drop_files(index.number);
  }
  return 0;
}

int read_auto_increment(uint32_t index_number, uint64_t &next) {
  next = 1;
  esker_value *value = esker_value_create();
  esker_slice found;
  const Bytes key = counter_key(index_number);
  const int code = code_of(esker_db_get(db, dictionary_family, slice(key), nullptr, value, &found), nullptr);
  if (code == 0 && found.len == 8) next = read_u64_be(view(found).data());
  esker_value_free(value);
  return code;
}

esker_error *merge_auto_increment(esker_transaction *transaction, uint32_t index_number, uint64_t next) {
  Bytes value;
  append_u64_be(value, next);
  return esker_transaction_merge_untracked(transaction, dictionary_family, slice(counter_key(index_number)), slice(value));
}

int set_auto_increment(uint32_t index_number, uint64_t next) {
  std::lock_guard guard(mutex);
  Change change;
  change.put_counter(index_number, next);
  return change.commit();
}

}  // namespace esker
