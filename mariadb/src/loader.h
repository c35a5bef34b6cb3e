// Brings many entries of indexes in which nothing is yet into the database, as tables that are written outside of it: no log, no
// memtable, no compaction. All of them are there at one moment, or none.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "index.h"
#include "sorter.h"

namespace esker {

class Loader {
 public:
  // What is done about two entries with the same key; a code of the server's ends the load.
  using Duplicate = std::function<int(size_t index, View key, View value)>;

  explicit Loader(size_t index_count);
  Loader(const Loader &) = delete;
  ~Loader();

  // An entry of one of the indexes, in any order.
  int add(size_t index, View key, View value) { return sorters_[index]->add(key, value); }
  // Sorts them, writes the tables and makes them part of the database. `thd` may end it.
  int finish(THD *thd, const Duplicate &duplicate);

 private:
  int write_index(THD *thd, size_t index, const Duplicate &duplicate);
  int begin_table();
  int end_table();

  std::vector<std::unique_ptr<Sorter>> sorters_;
  std::vector<Bytes> paths_;
  esker_family_options *options_ = nullptr;
  esker_table_writer *writer_ = nullptr;
};

// Removes what a server that was killed has left of tables that were not loaded. True on failure, which is logged.
bool clear_load_folder();
// The folder in which they are written, beside the database, so that both are on the same device.
const char *load_folder();

}  // namespace esker
