// A cursor over the stored entries of one index, as a transaction sees them.
#pragma once

#include "index.h"
#include "transaction.h"

namespace esker {

class Cursor {
 public:
  Cursor() : options_(esker_read_options_create()) {}
  Cursor(const Cursor &) = delete;
  ~Cursor() {
    close();
    esker_read_options_free(options_);
  }

  // Makes it show what a statement that begins to read now should see; `locks`: it locks what it finds, and then looks again.
  int open(THD *thd, Transaction &transaction, const Index &index, bool locks);
  // Makes it show the newest there is, whatever the transaction saw before.
  int open_newest(THD *thd, Transaction &transaction, const Index &index);
  void close();

  // What lies outside of these keys is not looked at, from the next positioning on; until it is opened or bound anew.
  int set_bounds(View lower, View upper);
  int clear_bounds();

  // All return the server's codes; behind the end is no error, and no row.
  int seek(View key) { return done(esker_iterator_seek(iterator_, slice(key), &row_)); }
  int seek_back(View key) { return done(esker_iterator_seek_for_prev(iterator_, slice(key), &row_)); }
  int first() { return done(esker_iterator_seek_to_first(iterator_, &row_)); }
  int last() { return done(esker_iterator_seek_to_last(iterator_, &row_)); }
  int next() { return done(esker_iterator_next(iterator_, &row_)); }
  int prev() { return done(esker_iterator_prev(iterator_, &row_)); }

  bool is_open() const { return iterator_ != nullptr; }
  bool has_row() const { return row_.key.data != nullptr; }
  View key() const { return view(row_.key); }
  View value() const { return view(row_.value); }

 private:
  int done(esker_error *error);
  int open_at(Transaction &transaction, const Index &index, const esker_snapshot *snapshot);

  THD *thd_ = nullptr;
  const Index *index_ = nullptr;
  esker_read_options *options_;
  esker_iterator *iterator_ = nullptr;
  esker_row row_ = {};
  uint64_t epoch_ = 0;
  size_t writes_ = 0;
  bool is_bounded_ = false;
};

}  // namespace esker
