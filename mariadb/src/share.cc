// What all handlers of a table share.
#include "share.h"

#include "engine.h"
#include "errors.h"

namespace esker {

TablePointer TableShare::entry() {
  std::lock_guard guard(mutex_);
  return entry_;
}

void TableShare::replace_entry(TablePointer table) {
  std::lock_guard guard(mutex_);
  entry_ = std::move(table);
  counters_ = counters_of(entry_->indexes[0].number);
  rows_per_key_.clear();
  sized_at_ = 0;
  sampled_rows_ = 0;
}

int TableShare::load_auto_increment() {
  return counters_->auto_increment != 0 ? 0 : read_auto_increment(entry_->indexes[0].number, counters_->auto_increment);
}

int TableShare::take_auto_increment(ulonglong offset, ulonglong increment, ulonglong count, ulonglong &first) {
  std::lock_guard guard(mutex_);
  std::lock_guard counting(counters_->mutex);
  if (const int code = load_auto_increment()) return code;
  first = counters_->auto_increment;
  if (first == ULONGLONG_MAX) return 0;
  if (increment > 1) {
    // An offset past the increment counts for nothing, as the server documents it.
    if (offset > increment) offset = 0;
    const ulonglong behind = first > offset ? (first - offset) % increment : 0;
    if (first < offset) first = offset;
    else if (behind != 0) first += increment - behind;
  }
  // Behind the last value; whoever comes next aligns to an increment of his own.
  const ulonglong room = (ULONGLONG_MAX - 1 - first) / increment;
  counters_->auto_increment = first + std::min(count - 1, room) * increment + 1;
  return 0;
}

int TableShare::use_auto_increment(uint64_t value, uint64_t &next) {
  std::lock_guard guard(mutex_);
  std::lock_guard counting(counters_->mutex);
  if (const int code = load_auto_increment()) return code;
  next = value == ULONGLONG_MAX ? value : value + 1;
  counters_->auto_increment = std::max(counters_->auto_increment, next);
  return 0;
}

int TableShare::peek_auto_increment(uint64_t &next) {
  std::lock_guard guard(mutex_);
  std::lock_guard counting(counters_->mutex);
  const int code = load_auto_increment();
  next = counters_->auto_increment;
  return code;
}

int TableShare::set_auto_increment(uint64_t next) {
  std::lock_guard guard(mutex_);
  std::lock_guard counting(counters_->mutex);
  if (const int code = esker::set_auto_increment(entry_->indexes[0].number, next)) return code;
  counters_->auto_increment = next;
  return 0;
}

int TableShare::load_row_number() {
  if (counters_->row_number != 0) return 0;
  Bytes start, end;
  append_u32_be(start, entry_->indexes.back().number);
  append_u32_be(end, entry_->indexes.back().number + 1);
  esker_read_options *options = esker_read_options_create();
  esker_iterator *iterator = nullptr;
  esker_row row = {};
  esker_error *error = esker_read_options_set_bounds(options, slice(start), slice(end));
  if (error == nullptr) error = esker_iterator_create(db, rows, options, &iterator);
  if (error == nullptr) error = esker_iterator_seek_to_last(iterator, &row);
  // Rows of transactions that an earlier server has prepared are not to be seen yet; none has so many.
  constexpr uint64_t kPreparedRows = uint64_t{1} << 32;
  if (error == nullptr) {
    counters_->row_number = (row.key.len == 12 ? read_u64_be(view(row.key).data() + 4) + 1 : 1) + (began_with_prepared ? kPreparedRows : 0);
  }
  esker_iterator_free(iterator);
  esker_read_options_free(options);
  return code_of(error, nullptr);
}

int TableShare::next_row_number(uint64_t &number) {
  std::lock_guard guard(mutex_);
  std::lock_guard counting(counters_->mutex);
  if (const int code = load_row_number()) return code;
  number = counters_->row_number++;
  return 0;
}

ulong TableShare::rows_per_key(uint key, uint part) {
  std::lock_guard guard(mutex_);
  return key < rows_per_key_.size() && part < rows_per_key_[key].size() ? rows_per_key_[key][part] : 0;
}

void TableShare::set_rows_per_key(uint key, std::vector<ulong> rows) {
  std::lock_guard guard(mutex_);
  if (key >= rows_per_key_.size()) rows_per_key_.resize(key + 1);
  rows_per_key_[key] = std::move(rows);
}

bool TableShare::takes_sample(uint64_t rows) {
  constexpr uint64_t kRowsMin = 64;
  std::lock_guard guard(mutex_);
  if (rows < kRowsMin || (rows < 2 * sampled_rows_ && rows > sampled_rows_ / 2)) return false;
  sampled_rows_ = rows;
  return true;
}

bool TableShare::recall_size(TableSize &size) {
  constexpr ulonglong kLongAgo = 1000000000;
  std::lock_guard guard(mutex_);
  if (sized_at_ == 0 || my_interval_timer() - sized_at_ > kLongAgo) return false;
  if (changes_.load(std::memory_order_relaxed) - sized_changes_ > size_.rows / 32) return false;
  size = size_;
  return true;
}

void TableShare::note_size(const TableSize &size) {
  std::lock_guard guard(mutex_);
  size_ = size;
  sized_at_ = my_interval_timer();
  sized_changes_ = changes_.load(std::memory_order_relaxed);
}

void TableShare::forget_size() {
  std::lock_guard guard(mutex_);
  sized_at_ = 0;
}

}  // namespace esker
