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
  next_auto_increment_ = next_row_number_ = 0;
  rows_per_key_.clear();
}

int TableShare::load_auto_increment() {
  return next_auto_increment_ != 0 ? 0 : read_auto_increment(entry_->indexes[0].number, next_auto_increment_);
}

int TableShare::take_auto_increment(ulonglong offset, ulonglong increment, ulonglong count, ulonglong &first) {
  std::lock_guard guard(mutex_);
  if (const int code = load_auto_increment()) return code;
  first = next_auto_increment_;
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
  next_auto_increment_ = first + std::min(count - 1, room) * increment + 1;
  return 0;
}

uint64_t TableShare::use_auto_increment(uint64_t value) {
  std::lock_guard guard(mutex_);
  const uint64_t next = value == ULONGLONG_MAX ? value : value + 1;
  if (next_auto_increment_ != 0) next_auto_increment_ = std::max(next_auto_increment_, next);
  return next;
}

int TableShare::peek_auto_increment(uint64_t &next) {
  std::lock_guard guard(mutex_);
  const int code = load_auto_increment();
  next = next_auto_increment_;
  return code;
}

int TableShare::set_auto_increment(uint64_t next) {
  std::lock_guard guard(mutex_);
  if (const int code = esker::set_auto_increment(entry_->indexes[0].number, next)) return code;
  next_auto_increment_ = next;
  return 0;
}

int TableShare::load_row_number() {
  if (next_row_number_ != 0) return 0;
  Bytes start, end;
  append_u32_be(start, entry_->indexes.back().number);
  append_u32_be(end, entry_->indexes.back().number + 1);
  esker_read_options *options = esker_read_options_create();
  esker_iterator *iterator = nullptr;
  esker_row row = {};
  esker_error *error = esker_read_options_set_bounds(options, slice(start), slice(end));
  if (error == nullptr) error = esker_iterator_create(db, rows, options, &iterator);
  if (error == nullptr) error = esker_iterator_seek_to_last(iterator, &row);
  if (error == nullptr) next_row_number_ = row.key.len == 12 ? read_u64_be(view(row.key).data() + 4) + 1 : 1;
  esker_iterator_free(iterator);
  esker_read_options_free(options);
  return code_of(error, nullptr);
}

int TableShare::next_row_number(uint64_t &number) {
  std::lock_guard guard(mutex_);
  const int code = load_row_number();
  number = next_row_number_++;
  return code;
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

bool TableShare::has_rows_per_key(uint key) {
  std::lock_guard guard(mutex_);
  return key < rows_per_key_.size() && !rows_per_key_[key].empty();
}

}  // namespace esker
