// Writes of rows, with the entries of all indexes.
//
// A row is locked by the lock on its primary key, so entries of indexes that are not unique are written without a lock and without a read.
// Unique entries have locks of their own: whoever wants to take a key has to wait for whoever gives it up.
//
// The entry of a row is put once, and removed before another is put under its key: so those of indexes that are not unique go by single
// deletes, which vanish with what they delete where the two meet. Where rows expire an entry may be put over one that has expired, and they go by
// ordinary deletes.
#include "dictionary.h"
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"

namespace esker {

// Locks a key that is to be taken; the error of a duplicate if somebody has it.
int Handler::check_unique(const Index &index, View key) {
  esker_slice found;
  const int code = fail(
      esker_transaction_get_for_update(transaction_->get(), rows, slice(key), ESKER_EXCLUSIVE, check_value_, &found));
  if (code != 0) return code;
  if (found.data == nullptr || ttl_.is_expired(thd(), view(found))) return 0;
  transaction_->note_duplicate(table->s, index.key_number());
  return HA_ERR_FOUND_DUPP_KEY;
}

// Rows with numbers of our own giving meet nobody, but for a scan that keeps all others out: one of them, locked, is enough for that.
int Handler::lock_first_row() {
  if (rows_locked_ || is_sequence()) return 0;
  row_key_.assign(primary_->prefix()).append(primary_buffer_);
  const int code = fail(esker_transaction_lock_key(transaction_->get(), rows, slice(row_key_), ESKER_EXCLUSIVE));
  rows_locked_ = code == 0;
  return code;
}

void Handler::make_entry(const Index &index, Bytes &key, Bytes &value, const uchar *record, View primary, uint64_t time) const {
  index.make_entry(key, value, record, primary);
  if (ttl_.is_on()) Ttl::append(value, time);
}

int Handler::put_at_once(View key, View value) {
  static esker_write_options *const unlocked = [] {
    esker_write_options *options = esker_write_options_create();
    esker_write_options_set_unlocked(options, true);
    return options;
  }();
  return fail(esker_db_put(db, rows, slice(key), slice(value), unlocked));
}

// The row is locked already, or nobody else can know of it.
int Handler::put_row(View primary, const uchar *record) {
  row_key_.assign(primary_->prefix()).append(primary);
  row_format_->make(row_, record);
  if (ttl_.is_on()) Ttl::append(row_, ttl_.time_of(thd(), record));
  if (is_sequence()) return put_at_once(row_key_, row_);
  return fail(esker_transaction_put_untracked(transaction_->get(), rows, slice(row_key_), slice(row_)));
}

int Handler::put_entry(View key, View value) {
  return fail(esker_transaction_put_untracked(transaction_->get(), rows, slice(key), slice(value)));
}

int Handler::remove_entry(const Index &index, View key) {
  return fail(index.kind() == Index::kUnique || ttl_.is_on()
                  ? esker_transaction_delete(transaction_->get(), rows, slice(key))
                  : esker_transaction_single_delete_untracked(transaction_->get(), rows, slice(key)));
}

int Handler::note_auto_increment(const uchar *record) {
  Field *field = table->found_next_number_field;
  if (field == nullptr || record != table->record[0]) return 0;
  if (!field->is_unsigned() && field->val_int() < 0) return 0;
  uint64_t next;
  if (const int code = share_->use_auto_increment(static_cast<uint64_t>(field->val_int()), next)) return code;
  transaction_->note_auto_increment(entry_->indexes[0].number, next);
  return 0;
}

int Handler::write_row(const uchar *buf) {
  if (table->next_number_field != nullptr && buf == table->record[0]) {
    if (const int code = update_auto_increment()) return code;
  }
  if (is_bulk_ && wants_load_) {
    if (const int code = begin_load()) return code;
  }
  primary_buffer_.clear();
  if (has_hidden_key()) {
    uint64_t number;
    if (const int code = share_->next_row_number(number)) return code;
    append_u64_be(primary_buffer_, number);
    if (const int code = lock_first_row()) return code;
  } else {
    primary_->append_primary(primary_buffer_, buf);
  }
  if (loader_ != nullptr) {
    note_auto_increment(buf);
    return load_row(primary_buffer_, buf);
  }
  if (!has_hidden_key()) {
    row_key_.assign(primary_->prefix()).append(primary_buffer_);
    const int code = thd_test_options(thd(), OPTION_RELAXED_UNIQUE_CHECKS)
                         ? fail(esker_transaction_lock_key(transaction_->get(), rows, slice(row_key_), ESKER_EXCLUSIVE))
                         : check_unique(*primary_, row_key_);
    if (code != 0) return code;
  }
  for (const auto &index : indexes_) {
    if (index == nullptr || index->kind() != Index::kUnique || index->make_parts(key_, buf)) continue;
    if (const int code = check_unique(*index, key_)) return code;
  }
  if (const int code = put_row(primary_buffer_, buf)) return code;
  for (const auto &index : indexes_) {
    if (index == nullptr) continue;
    make_entry(*index, key_, value_, buf, primary_buffer_, ttl_.is_on() ? ttl_.time_of(thd(), buf) : 0);
    if (const int code = put_entry(key_, value_)) return code;
  }
  if (const int code = note_auto_increment(buf)) return code;
  share_->note_change();
  return commit_copy();
}

// A copy of a table may be larger than a transaction. Nobody else sees it until it is whole, so it is committed piece by piece.
int Handler::commit_copy() {
  constexpr size_t kPieceBytes = 16 << 20;
  if (!copying_ || esker_transaction_write_bytes(transaction_->get()) < kPieceBytes) return 0;
  if (const int code = transaction_->commit(thd())) return code;
  return transaction_->begin(thd(), false);
}

// The primary key of a record that was read.
void Handler::current_primary(Bytes &primary, const uchar *record) {
  if (has_hidden_key()) {
    primary = last_primary_;
  } else {
    primary.clear();
    primary_->append_primary(primary, record);
  }
}

int Handler::delete_row(const uchar *buf) {
  current_primary(old_primary_, buf);
  row_key_.assign(primary_->prefix()).append(old_primary_);
  if (const int code = fail(esker_transaction_delete(transaction_->get(), rows, slice(row_key_)))) return code;
  for (const auto &index : indexes_) {
    if (index == nullptr) continue;
    index->make_entry(key_, value_, buf, old_primary_);
    if (const int code = remove_entry(*index, key_)) return code;
  }
  share_->note_change();
  return 0;
}

// Whether an update may change the entry that an index has of the row.
bool Handler::is_touched(const Index &index) const {
  for (const KeyPart &part : index.parts()) {
    const uint field = part.field_index();
    if (bitmap_is_set(table->write_set, field) || !table->field[field]->stored_in_db()) return true;
  }
  return false;
}

// Whether a statement leaves a row as it is; the server counts, and logs for replicas, only those that change.
bool Handler::is_same(const uchar *old_record, const uchar *new_record) const {
  for (uint i = bitmap_get_first_set(table->write_set); i != MY_BIT_NONE; i = bitmap_get_next_set(table->write_set, i)) {
    const Field *field = table->field[i];
    if (!field->stored_in_db()) continue;
    if (field->is_null_in_record(old_record) != field->is_null_in_record(new_record)) return false;
    if (field->is_null_in_record(old_record)) continue;
    if (field->cmp_binary(old_record + field->offset(table->record[0]), new_record + field->offset(table->record[0])) != 0) return false;
  }
  return true;
}

int Handler::update_row(const uchar *old_record, const uchar *new_record) {
  if (!ttl_.changes(thd(), old_record, new_record) && is_same(old_record, new_record)) return HA_ERR_RECORD_IS_THE_SAME;
  current_primary(old_primary_, old_record);
  const bool moves = !has_hidden_key() && is_touched(*primary_);
  primary_buffer_ = old_primary_;
  if (moves) {
    primary_buffer_.clear();
    primary_->append_primary(primary_buffer_, new_record);
    if (primary_buffer_ != old_primary_) {
      row_key_.assign(primary_->prefix()).append(primary_buffer_);
      if (const int code = check_unique(*primary_, row_key_)) return code;
    }
  }
  for (const auto &index : indexes_) {
    if (index == nullptr || index->kind() != Index::kUnique || !is_touched(*index)) continue;
    if (index->make_parts(key_, new_record)) continue;
    if (!index->make_parts(old_key_, old_record) && old_key_ == key_) continue;
    if (const int code = check_unique(*index, key_)) return code;
  }
  if (primary_buffer_ != old_primary_) {
    row_key_.assign(primary_->prefix()).append(old_primary_);
    if (const int code = fail(esker_transaction_delete(transaction_->get(), rows, slice(row_key_)))) return code;
  }
  if (const int code = put_row(primary_buffer_, new_record)) return code;
  if (const int code = update_entries(old_record, new_record, old_primary_, primary_buffer_)) return code;
  if (table->found_next_number_field != nullptr &&
      bitmap_is_set(table->write_set, table->found_next_number_field->field_index)) {
    return note_auto_increment(new_record);
  }
  return 0;
}

int Handler::update_entries(const uchar *old_record, const uchar *new_record, View old_primary, View new_primary) {
  const bool moves = !has_hidden_key() && is_touched(*primary_);
  const bool ages = ttl_.changes(thd(), old_record, new_record);
  const uint64_t time = ttl_.is_on() ? ttl_.time_of(thd(), new_record) : 0;
  for (const auto &index : indexes_) {
    if (index == nullptr || (!moves && !ages && !is_touched(*index))) continue;
    make_entry(*index, old_key_, old_value_, old_record, old_primary, time);
    make_entry(*index, key_, value_, new_record, new_primary, time);
    if (!ages && old_key_ == key_ && old_value_ == value_) continue;
    if (old_key_ != key_ || index->kind() == Index::kSecondary) {
      if (const int code = remove_entry(*index, old_key_)) return code;
    }
    if (const int code = put_entry(key_, value_)) return code;
  }
  return 0;
}

void Handler::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong count, ulonglong *first,
                                 ulonglong *reserved) {
  ulonglong next;
  if (share_->take_auto_increment(offset, increment, count, next) != 0) {
    *first = ULONGLONG_MAX;
    return;
  }
  *first = next;
  *reserved = count;
}

}  // namespace esker
