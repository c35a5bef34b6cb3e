// Reads: by key, along an index, along all rows, by position.
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"

namespace esker {

namespace {

// Whether a logical key is where a search may stop.
bool not_before(View logical, View search) { return logical >= search; }
bool behind_all(View logical, View search) { return logical > search && !starts_with(logical, search); }
bool before(View logical, View search) { return logical < search; }
bool not_behind_all(View logical, View search) { return logical < search || starts_with(logical, search); }

}  // namespace

int Handler::index_init(uint key, bool) {
  active_index = key;
  return begin_read(index(key));
}

int Handler::index_end() {
  active_index = MAX_KEY;
  point_ = false;
  return 0;
}

int Handler::rnd_init(bool) {
  begun_ = false;
  return begin_read(*primary_);
}

int Handler::rnd_end() {
  point_ = false;
  return 0;
}

int Handler::begin_read(const Index &index) {
  if (active_ != &index) cursor_.close();
  active_ = &index;
  point_ = false;
  limit_ = kNoLimit;
  search_.clear();
  // The transaction reads as of a moment at which the index was not there.
  if (index.since() > transaction_->sequence() && transaction_->sequence() != 0) return HA_ERR_TABLE_DEF_CHANGED;
  return 0;
}

// Keys of hashes, and of periods that may not overlap, are unique because the server looks for rows that are in the way before it writes
// one. Whether it is doing so: for those of periods it has a record of its own.
bool Handler::is_check(const uchar *buf) const {
  if (lock_ != kExclusiveLock || active_->kind() == Index::kHidden) return false;
  const KEY &key = table->key_info[active_->key_number()];
  return key.algorithm == HA_KEY_ALG_LONG_HASH || (key.without_overlaps && buf != table->record[0] && buf != table->record[1]);
}

// Keeps others that look for the same from finding nothing as well: whoever comes later waits for the end of this transaction, and sees
// what it has written.
int Handler::open_check(const uchar *search) {
  const KEY &key = table->key_info[active_->key_number()];
  // A period has the last two columns of its key.
  const uint parts = key.without_overlaps ? key.user_defined_key_parts - 2 : key.user_defined_key_parts;
  size_t stored_size;
  active_->make_search(row_key_, stored_size, search, (key_part_map{1} << parts) - 1);
  if (const int code = fail(esker_transaction_lock_key(transaction_->get(), rows, slice(row_key_), ESKER_EXCLUSIVE))) return code;
  return cursor_.open_newest(thd(), *transaction_, *active_);
}

// Makes the cursor ready to look at the entries from `start` to `end`. Under SERIALIZABLE nobody else may put anything there from now
// on, and what is seen is the newest there is, behind that lock.
int Handler::open_cursor(View start, View end) {
  if (is_sequence()) return cursor_.open_newest(thd(), *transaction_, *active_);
  if (transaction_->is_serializable() && lock_ != kNoLock) {
    cursor_.close();
    if (const int code = lock_scan(*active_, start, end)) return code;
  }
  return cursor_.open(thd(), *transaction_, *active_, lock_ != kNoLock);
}

// Entries of keys that are not unique, and those with nulls, are written without locks of their own: a search along such a key locks all
// rows of the table, which have one each.
int Handler::lock_scan(const Index &index, View start, View end) {
  if (!transaction_->is_serializable() || lock_ == kNoLock || start >= end) return 0;
  Bytes behind_rows(primary_->prefix());
  make_successor(behind_rows);
  const esker_range range = index.has_locked_entries() ? esker_range{slice(start), slice(end)}
                                                       : esker_range{slice(primary_->prefix()), slice(behind_rows)};
  return fail(esker_transaction_lock_range(transaction_->get(), rows, range,
                                           lock_ == kExclusiveLock ? ESKER_EXCLUSIVE : ESKER_SHARED));
}

int Handler::show_row(uchar *buf, View primary, View row) {
  if (ttl_.is_expired(thd(), row)) return kSkipped;
  row_format_->prepare(table, buf);
  // A row that is locked is read whole: entries of indexes are found by what it was. So is one that virtual columns are computed of.
  const MY_BITMAP *wanted = lock_ != kNoLock || (keyread_enabled() && !active_->is_primary()) ? nullptr : table->read_set;
  if (!primary_->read_primary(buf, primary) || !row_format_->read(buf, row, wanted)) {
    sql_print_error("ESKER: a row of %s can't be read", name_.c_str());
    return HA_ERR_CRASHED;
  }
  return 0;
}

// Reads the row of a primary key, locked if the statement locks; kSkipped if there is none.
int Handler::read_row(uchar *buf, View primary) {
  row_key_.assign(primary_->prefix()).append(primary);
  esker_slice found;
  esker_error *error;
  if (lock_ == kNoLock) {
    const esker_read_options *options;
    if (const int code = transaction_->read_options(thd(), lock_ != kNoLock, options)) return code;
    error = esker_transaction_get(transaction_->get(), rows, slice(row_key_), options, row_value_, &found);
  } else {
    error = esker_transaction_get_for_update(transaction_->get(), rows, slice(row_key_),
                                             lock_ == kExclusiveLock ? ESKER_EXCLUSIVE : ESKER_SHARED, row_value_, &found);
  }
  if (const int code = fail(error)) return code;
  if (found.data == nullptr) return kSkipped;
  if (&last_primary_[0] != primary.data()) last_primary_.assign(primary);
  return show_row(buf, last_primary_, view(found));
}

int Handler::check_condition(uchar *buf) {
  if (pushed_idx_cond == nullptr || pushed_idx_cond_keyno != active_index || active_->is_primary()) return 0;
  row_format_->prepare(table, buf);
  if (!active_->read_entry(buf, cursor_.key(), cursor_.value())) return HA_ERR_INDEX_CORRUPT;
  // The server looks at the end of the range as well, and can't where the entry has only the beginning of a column.
  key_range *const end = end_range;
  if (!active_->has_whole_columns()) end_range = nullptr;
  const check_result_t result = handler_index_cond_check(this);
  end_range = end;
  switch (result) {
    case CHECK_POS: return 0;
    case CHECK_NEG: return kSkipped;
    case CHECK_OUT_OF_RANGE: return HA_ERR_END_OF_FILE;
    case CHECK_ABORTED_BY_USER: return HA_ERR_ABORTED_BY_USER;
    default: return HA_ERR_INTERNAL_ERROR;
  }
}

// Puts the row of the entry that the cursor stands on into a record.
int Handler::show_entry(uchar *buf) {
  if (active_->is_primary() && lock_ == kNoLock) {
    const View primary = cursor_.key().substr(active_->prefix().size());
    // Any other position is made of the record.
    if (has_hidden_key()) last_primary_.assign(primary);
    return show_row(buf, primary, cursor_.value());
  }
  if (ttl_.is_expired(thd(), cursor_.value())) return kSkipped;
  if (const int code = check_condition(buf)) return code;
  if (!active_->primary_of(primary_buffer_, cursor_.key(), cursor_.value())) return HA_ERR_INDEX_CORRUPT;
  if (reads_entries(*active_)) {
    last_primary_ = primary_buffer_;
    row_format_->prepare(table, buf);
    return active_->read_entry(buf, cursor_.key(), cursor_.value()) ? 0 : HA_ERR_INDEX_CORRUPT;
  }
  const int code = read_row(buf, primary_buffer_);
  if (code != 0 || active_->is_primary()) return code;
  return lock_ == kNoLock ? compute_columns(*active_, cursor_.key(), cursor_.value(), buf) : check_entry(*active_, cursor_.key(), buf);
}

// Whether entries of an index depend on columns that are in no row.
bool Handler::is_computed(const Index &index) const {
  for (const KeyPart &part : index.parts()) {
    if (!table->field[part.field_index()]->stored_in_db()) return true;
  }
  return false;
}

// Looks whether the row in a record, which is the newest there is once it is locked, has not moved in an index since its entry was read;
// kSkipped if it has.
int Handler::check_entry(const Index &index, View key, uchar *buf) {
  if (!is_computed(index)) {
    index.make_entry(key_, value_, buf, last_primary_);
    return key == View(key_) ? 0 : kSkipped;
  }
  // The server has not computed what the row alone does not tell, but nobody changes the entry without the row's lock.
  esker_slice found;
  if (const int code = fail(esker_transaction_get(transaction_->get(), rows, slice(key), nullptr, check_value_, &found))) return code;
  if (found.data == nullptr) return kSkipped;
  if (!index.primary_of(primary_buffer_, key, view(found))) return HA_ERR_INDEX_CORRUPT;
  return primary_buffer_ == last_primary_ ? compute_columns(index, key, view(found), buf) : kSkipped;
}

// Puts virtual columns of an index beside the others of a row, if the server reads by that index: it computes none then, though it
// may look at those which an index has the beginning of.
int Handler::compute_columns(const Index &index, View key, View value, uchar *buf) {
  if (!keyread_enabled() || !is_computed(index)) return 0;
  if (!index.read_entry(buf, key, value)) return HA_ERR_INDEX_CORRUPT;
  for (const KeyPart &part : index.parts()) {
    Field *const field = table->field[part.field_index()];
    if (part.is_prefix() && !field->stored_in_db() && buf == table->record[0]) field->vcol_info->expr->save_in_field(field, false);
  }
  return 0;
}

// Shows the entry that a move has led to, or the next one that there is something to show of.
int Handler::step(uchar *buf, bool forward, int code) {
  while (code == 0) {
    if (!cursor_.has_row()) return HA_ERR_END_OF_FILE;
    code = show_entry(buf);
    if (code != kSkipped) return code;
    if (thd_killed(thd())) return HA_ERR_ABORTED_BY_USER;
    code = forward ? cursor_.next() : cursor_.prev();
  }
  return code;
}

// Moves on until the logical key of the entry is where the search may stop.
int Handler::adjust(const Index &index, bool forward, bool (*fits)(View, View)) {
  while (cursor_.has_row()) {
    if (!index.logical_key(logical_, cursor_.key(), cursor_.value())) return HA_ERR_INDEX_CORRUPT;
    if (fits(logical_, search_)) return 0;
    if (const int code = forward ? cursor_.next() : cursor_.prev()) return code;
  }
  return 0;
}

int Handler::seek_search(const Index &index, size_t stored_size, enum ha_rkey_function flag, const uchar *check) {
  // Of a unique key that the search knows whole, the stored key is shorter than the logical one.
  const bool is_cut = stored_size < search_.size();
  key_ = search_;
  bool forward = true;
  bool (*fits)(View, View) = not_before;
  switch (flag) {
    case HA_READ_KEY_EXACT:
    case HA_READ_KEY_OR_NEXT: break;
    case HA_READ_AFTER_KEY:
      fits = behind_all;
      if (!is_cut) make_successor(key_);
      break;
    case HA_READ_BEFORE_KEY:
      forward = false;
      fits = before;
      break;
    case HA_READ_PREFIX_LAST:
    case HA_READ_PREFIX_LAST_OR_PREV:
    case HA_READ_KEY_OR_PREV:
      forward = false;
      fits = not_behind_all;
      if (!is_cut) make_successor(key_);
      break;
    default: return HA_ERR_WRONG_COMMAND;
  }
  if (is_cut) key_.resize(stored_size);
  // Nothing is looked at behind the end that the server has named, or the last entry that can fit.
  const View stored = View(search_).substr(0, stored_size);
  View start = index.prefix();
  bound_.assign(index.prefix());
  limit_ = kNoLimit;
  if (flag == HA_READ_KEY_EXACT || flag == HA_READ_PREFIX_LAST) {
    bound_.assign(stored);
    limit_ = forward ? kUpperLimit : kLowerLimit;
    if (!forward) lower_bound_.assign(stored);
  }
  make_successor(bound_);
  if (forward || limit_ != kNoLimit) start = stored;
  if (forward && limit_ == kNoLimit && end_range != nullptr) {
    index.make_range(range_, nullptr, end_range);
    bound_ = range_.upper;
  }
  if (const int code = check != nullptr ? open_check(check) : open_cursor(start, bound_)) return code;
  const View lower = limit_ == kLowerLimit ? start : index.prefix();
  if (const int code = cursor_.set_bounds(lower, bound_)) return code;
  if (const int code = forward ? cursor_.seek(key_) : cursor_.seek_back(key_)) return code;
  return adjust(index, forward, fits);
}

int Handler::index_read_map(uchar *buf, const uchar *key, key_part_map map, enum ha_rkey_function flag) {
  const Index &index = *active_;
  // The server means the columns of the key by a whole key, not what it is extended by.
  if (map == HA_WHOLE_KEY) map = (key_part_map{1} << table->key_info[active_index].user_defined_key_parts) - 1;
  size_t stored_size;
  index.make_search(search_, stored_size, key, map);
  point_ = false;
  // Pushed conditions are checked where entries are read one after the other.
  if (flag == HA_READ_KEY_EXACT && index.is_whole_key(map) && pushed_idx_cond_keyno != active_index &&
      (index.is_primary() || index.is_unique_key(search_))) {
    return point_read(buf, index);
  }
  if (const int code = seek_search(index, stored_size, flag, is_check(buf) ? key : nullptr)) return code;
  const bool forward = flag == HA_READ_KEY_EXACT || flag == HA_READ_KEY_OR_NEXT || flag == HA_READ_AFTER_KEY;
  int code = 0;
  for (;;) {
    if (!cursor_.has_row()) return HA_ERR_KEY_NOT_FOUND;
    if (flag == HA_READ_KEY_EXACT || flag == HA_READ_PREFIX_LAST) {
      if (!index.logical_key(logical_, cursor_.key(), cursor_.value())) return HA_ERR_INDEX_CORRUPT;
      if (!starts_with(logical_, search_)) return HA_ERR_KEY_NOT_FOUND;
    }
    code = show_entry(buf);
    if (code != kSkipped) return code == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : code;
    if (thd_killed(thd())) return HA_ERR_ABORTED_BY_USER;
    if ((code = forward ? cursor_.next() : cursor_.prev()) != 0) return code;
  }
}

int Handler::index_read_last_map(uchar *buf, const uchar *key, key_part_map map) {
  return index_read_map(buf, key, map, HA_READ_PREFIX_LAST);
}

// Looks one key up, without a cursor.
int Handler::point_read(uchar *buf, const Index &index) {
  point_ = true;
  Bytes end(search_);
  make_successor(end);
  if (const int code = lock_scan(index, search_, end)) return code;
  View primary = View(search_).substr(index.prefix().size());
  esker_slice found = {};
  if (!index.is_primary()) {
    const esker_read_options *options;
    if (lock_ != kNoLock) options = nullptr;
    else if (const int code = transaction_->read_options(thd(), lock_ != kNoLock, options)) return code;
    // Whoever changes the entry locks the row as well; the row is looked at again once it is locked.
    if (const int code = fail(esker_transaction_get(transaction_->get(), rows, slice(search_), options, check_value_, &found))) {
      return code;
    }
    if (found.data == nullptr || ttl_.is_expired(thd(), view(found))) return HA_ERR_KEY_NOT_FOUND;
    if (!index.primary_of(primary_buffer_, search_, view(found))) return HA_ERR_INDEX_CORRUPT;
    if (reads_entries(index)) {
      last_primary_ = primary_buffer_;
      row_format_->prepare(table, buf);
      return index.read_entry(buf, search_, view(found)) ? 0 : HA_ERR_INDEX_CORRUPT;
    }
    primary = primary_buffer_;
  }
  int code = read_row(buf, primary);
  if (code == 0 && !index.is_primary()) {
    code = lock_ == kNoLock ? compute_columns(index, search_, view(found), buf) : check_entry(index, search_, buf);
  }
  return code == kSkipped ? HA_ERR_KEY_NOT_FOUND : code;
}

// Looks at the whole index from here on.
int Handler::open_whole(bool from_start) {
  point_ = false;
  limit_ = kNoLimit;
  bound_.assign(active_->prefix());
  make_successor(bound_);
  return open_cursor(from_start ? active_->prefix() : View(search_), bound_);
}

// A scan goes on from a key that was only looked up.
int Handler::resume_after_point() {
  if (const int code = open_whole(false)) return code;
  return cursor_.seek(search_);
}

// A search for equal keys has come to their end, and the scan goes on all the same.
int Handler::pass_limit(uchar *buf, bool forward) {
  const Bytes passed = forward ? bound_ : lower_bound_;
  if (const int code = open_whole(true)) return code;
  if (forward) return step(buf, true, cursor_.seek(passed));
  const int code = cursor_.seek_back(passed);
  return step(buf, false, code == 0 && cursor_.has_row() && cursor_.key() == View(passed) ? cursor_.prev() : code);
}

int Handler::index_next(uchar *buf) {
  if (point_) {
    if (const int code = resume_after_point()) return code;
    if (!cursor_.has_row() || cursor_.key() != View(search_)) return step(buf, true, 0);
  }
  const int code = step(buf, true, cursor_.next());
  return code == HA_ERR_END_OF_FILE && limit_ == kUpperLimit ? pass_limit(buf, true) : code;
}

int Handler::index_prev(uchar *buf) {
  if (point_) {
    if (const int code = resume_after_point()) return code;
    if (!cursor_.has_row()) return step(buf, false, cursor_.last());
  }
  const int code = step(buf, false, cursor_.prev());
  return code == HA_ERR_END_OF_FILE && limit_ == kLowerLimit ? pass_limit(buf, false) : code;
}

int Handler::index_first(uchar *buf) {
  point_ = false;
  limit_ = kNoLimit;
  active_->make_range(range_, nullptr, inited == INDEX ? end_range : nullptr);
  if (const int code = open_cursor(active_->prefix(), range_.upper)) return code;
  if (const int code = cursor_.set_bounds(active_->prefix(), range_.upper)) return code;
  return step(buf, true, cursor_.first());
}

int Handler::index_last(uchar *buf) {
  if (const int code = open_whole(true)) return code;
  return step(buf, false, cursor_.last());
}

int Handler::index_next_same(uchar *buf, const uchar *, uint) {
  if (point_) return HA_ERR_END_OF_FILE;
  int code = cursor_.next();
  while (code == 0) {
    if (!cursor_.has_row()) return HA_ERR_END_OF_FILE;
    if (!active_->logical_key(logical_, cursor_.key(), cursor_.value())) return HA_ERR_INDEX_CORRUPT;
    if (!starts_with(logical_, search_)) return HA_ERR_END_OF_FILE;
    code = show_entry(buf);
    if (code != kSkipped) return code;
    if (thd_killed(thd())) return HA_ERR_ABORTED_BY_USER;
    code = cursor_.next();
  }
  return code;
}

int Handler::rnd_next(uchar *buf) {
  if (begun_) return step(buf, true, cursor_.next());
  begun_ = true;
  return index_first(buf);
}

// A position is the length of the primary key (2 bytes, little-endian), the key, and zeros.
void Handler::position(const uchar *record) {
  const Bytes *primary = &last_primary_;
  if (!has_hidden_key()) {
    primary_buffer_.clear();
    primary_->append_primary(primary_buffer_, record);
    primary = &primary_buffer_;
  }
  int2store(ref, primary->size());
  memcpy(ref + 2, primary->data(), primary->size());
  memset(ref + 2 + primary->size(), 0, ref_length - 2 - primary->size());
}

int Handler::rnd_pos(uchar *buf, uchar *position) {
  const View primary(reinterpret_cast<const char *>(position) + 2, uint2korr(position));
  primary_buffer_.assign(primary);
  const int code = read_row(buf, primary_buffer_);
  return code == kSkipped ? HA_ERR_KEY_NOT_FOUND : code;
}

int Handler::cmp_ref(const uchar *left, const uchar *right) {
  const View a(reinterpret_cast<const char *>(left) + 2, uint2korr(left));
  const View b(reinterpret_cast<const char *>(right) + 2, uint2korr(right));
  return a.compare(b);
}

Item *Handler::idx_cond_push(uint key, Item *condition) {
  if (index(key).is_primary()) return condition;
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = key;
  in_range_check_pushed_down = index(key).has_whole_columns();
  return nullptr;
}

}  // namespace esker
