// The data dictionary.
#include "dictionary.h"

#include <map>
#include <mutex>

#include "engine.h"
#include "errors.h"

namespace esker {

namespace {

constexpr char kVersion = 1;
constexpr char kTemporary = 1;

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

Bytes encode(const TableEntry &table) {
  Bytes value;
  value.push_back(kVersion);
  value.push_back(table.is_temporary ? kTemporary : 0);
  for (const IndexEntry &index : table.indexes) {
    append_u32_be(value, index.number);
    append_length(value, index.name.size());
    value.append(index.name);
  }
  return value;
}

bool decode(View value, TableEntry &table) {
  View head, number, name;
  uint64_t length;
  if (!take(value, 2, head) || head[0] != kVersion) return false;
  table.is_temporary = (head[1] & kTemporary) != 0;
  while (!value.empty()) {
    if (!take(value, 4, number) || !take_length(value, length) || !take(value, length, name)) return false;
    table.indexes.push_back({read_u32_be(number.data()), Bytes(name)});
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
    for (const IndexEntry &index : table.indexes) {
      Bytes start, end;
      append_u32_be(start, index.number);
      append_u32_be(end, index.number + 1);
      if (!error_) error_ = esker_batch_delete_range(batch_, rows, slice(start), slice(end));
      remove(counter_key(index.number));
    }
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
void drop_files(const TableEntry &table) {
  for (const IndexEntry &index : table.indexes) {
    Bytes start, end;
    append_u32_be(start, index.number);
    append_u32_be(end, index.number + 1);
    const esker_range range = {slice(start), slice(end)};
    logged(esker_db_delete_files_in_ranges(db, rows, &range, 1, nullptr), "dropping files of a table");
  }
}

void number_indexes(TableEntry &table) {
  for (IndexEntry &index : table.indexes) index.number = ++last_number;
}

// Reads all records into memory.
bool read_records() {
  esker_iterator *iterator;
  if (logged(esker_iterator_create(db, dictionary_family, nullptr, &iterator), "reading the dictionary")) return true;
  esker_row row;
  bool failed = logged(esker_iterator_seek_to_first(iterator, &row), "reading the dictionary");
  while (!failed && row.key.data != nullptr) {
    const View key = view(row.key), value = view(row.value);
    if (key == "n" && value.size() == 4) last_number = read_u32_be(value.data());
    if (key.front() == 't') {
      auto table = std::make_shared<TableEntry>();
      if (!decode(value, *table)) {
        sql_print_error("ESKER: the dictionary's record of %s can't be read", Bytes(key.substr(1)).c_str());
        failed = true;
      }
      tables[Bytes(key.substr(1))] = table;
    }
    failed = failed || logged(esker_iterator_next(iterator, &row), "reading the dictionary");
  }
  esker_iterator_free(iterator);
  return failed;
}

}  // namespace

bool load_dictionary() {
  {
    std::lock_guard guard(mutex);
    if (read_records()) return true;
  }
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
  last_number = 0;
}

TablePointer find_table(const char *name) {
  std::lock_guard guard(mutex);
  const auto found = tables.find(View(name));
  return found == tables.end() ? nullptr : found->second;
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
