// What all handlers of a table share.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "dictionary.h"

namespace esker {

// What the optimizer is told of a table as a whole.
struct TableSize {
  uint64_t rows = 0, row_bytes = 0, index_bytes = 0;
};

class TableShare : public Handler_share {
 public:
  explicit TableShare(TablePointer table) : entry_(std::move(table)), counters_(counters_of(entry_->indexes[0].number)) {}

  // The dictionary's record: another one after the table was truncated.
  TablePointer entry();
  void replace_entry(TablePointer table);

  // Takes `count` values of the auto_increment column that are `offset` modulo `increment`, and says which is the first.
  int take_auto_increment(ulonglong offset, ulonglong increment, ulonglong count, ulonglong &first);
  // The value was used; says what comes next then.
  int use_auto_increment(uint64_t value, uint64_t &next);
  int peek_auto_increment(uint64_t &next);
  int set_auto_increment(uint64_t next);

  // The number of the next row in a table without a primary key.
  int next_row_number(uint64_t &number);

  // How many rows have the same first parts of an index, for each number of parts; 0 where nobody knows.
  ulong rows_per_key(uint key, uint part);
  void set_rows_per_key(uint key, std::vector<ulong> rows);
  // Whether the indexes should be sampled, now that there are so many rows; if so, the caller does it.
  bool takes_sample(uint64_t rows);

  // A row came or went.
  void note_change() { changes_.fetch_add(1, std::memory_order_relaxed); }
  // The size as it was noted, unless that is long ago or the table has changed much since. Every statement asks for it, and the engine has to
  // look at all files of the table to say it.
  bool recall_size(TableSize &size);
  void note_size(const TableSize &size);
  void forget_size();

 private:
  int load_auto_increment();
  int load_row_number();

  std::mutex mutex_;                       // guards what follows
  TablePointer entry_;
  std::shared_ptr<Counters> counters_;
  std::vector<std::vector<ulong>> rows_per_key_;
  uint64_t sampled_rows_ = 0;              // in the table, when they were sampled
  TableSize size_;
  ulonglong sized_at_ = 0;                 // nanoseconds; 0: not looked at yet
  uint64_t sized_changes_ = 0;             // `changes_` by then

  std::atomic<uint64_t> changes_{0};
};

}  // namespace esker
