// A cursor over the stored entries of one index.
#include "cursor.h"

#include "engine.h"
#include "errors.h"

namespace esker {

int Cursor::done(esker_error *error) { return code_of(error, thd_); }

int Cursor::open(THD *thd, Transaction &transaction, const Index &index, bool locks) {
  thd_ = thd;
  const size_t writes = esker_transaction_write_count(transaction.get());
  if (iterator_ != nullptr && index_ == &index && epoch_ == transaction.epoch()) {
    if (writes == writes_) return clear_bounds();
    // What the statement has written since is to be seen, too.
    writes_ = writes;
    row_ = {};
    is_bounded_ = false;
    return done(esker_transaction_refresh_iterator(transaction.get(), iterator_));
  }
  close();
  const esker_snapshot *snapshot;
  if (const int code = transaction.snapshot(thd, locks, snapshot)) return code;
  if (const int code = open_at(transaction, index, snapshot)) return code;
  index_ = &index;
  epoch_ = transaction.epoch();
  writes_ = writes;
  return 0;
}

int Cursor::open_newest(THD *thd, Transaction &transaction, const Index &index) {
  thd_ = thd;
  close();
  return open_at(transaction, index, nullptr);
}

int Cursor::open_at(Transaction &transaction, const Index &index, const esker_snapshot *snapshot) {
  Bytes end(index.prefix());
  make_successor(end);
  esker_read_options_set_snapshot(options_, snapshot);
  esker_error *error = esker_read_options_set_bounds(options_, slice(index.prefix()), slice(end));
  if (error == nullptr) error = esker_transaction_iterator(transaction.get(), rows, options_, &iterator_);
  is_bounded_ = false;
  return done(error);
}

int Cursor::set_bounds(View lower, View upper) {
  row_ = {};
  is_bounded_ = true;
  return done(esker_iterator_set_bounds(iterator_, slice(lower), slice(upper)));
}

int Cursor::clear_bounds() {
  if (!is_bounded_) return 0;
  row_ = {};
  is_bounded_ = false;
  return done(esker_iterator_set_bounds(iterator_, {nullptr, 0}, {nullptr, 0}));
}

void Cursor::close() {
  esker_iterator_free(iterator_);
  iterator_ = nullptr;
  index_ = nullptr;
  row_ = {};
  // A snapshot that is held longer than it is needed keeps old rows from going.
  esker_read_options_set_snapshot(options_, nullptr);
}

}  // namespace esker
