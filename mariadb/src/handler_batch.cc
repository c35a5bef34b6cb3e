// Reads of many ranges at once: of lists of keys, of ranges of an index that does not cover, and of joins by batches of keys (BKA). Entries
// are collected, and their rows then looked up together, so that all of them wait for the device about as often as one. Rows come
// in the order of the ranges and, in each, of the index, as they do one by one.
#include "batch.h"
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"

namespace esker {

const std::vector<esker_slice> &Batch::keys() {
  slices_.clear();
  for (const Place &place : places_) slices_.push_back(slice(View(keys_).substr(place.start, place.size)));
  return slices_;
}

esker_slice Batch::take(View &key, range_id_t &range) {
  const Place &place = places_[at_];
  key = View(keys_).substr(place.start, place.size);
  range = place.range;
  return rows_[at_++];
}

// Batches are for rows that are looked up: what locks goes row by row, entries that cover need no rows, and ranges of the clustered key are
// read where they lie.
void Handler::choose_batches(uint key, bool are_points, uint *mode) const {
  const bool looks_up = key != table->s->primary_key || are_points;
  if (looks_up && lock_ == kNoLock && (*mode & HA_MRR_INDEX_ONLY) == 0) *mode &= ~HA_MRR_USE_DEFAULT_IMPL;
}

ha_rows Handler::multi_range_read_info_const(uint key, RANGE_SEQ_IF *sequence, void *parameter, uint ranges, uint *buffer_size,
                                             uint *mode, Cost_estimate *cost) {
  const ha_rows found = handler::multi_range_read_info_const(key, sequence, parameter, ranges, buffer_size, mode, cost);
  if (found == HA_POS_ERROR) return found;
  range_seq_t iterator = sequence->init(parameter, ranges, *mode);
  KEY_MULTI_RANGE range;
  bool are_points = true;
  while (are_points && !sequence->next(iterator, &range)) {
    are_points = (range.range_flag & (UNIQUE_RANGE | NULL_RANGE)) == UNIQUE_RANGE;
  }
  choose_batches(key, are_points, mode);
  return found;
}

ha_rows Handler::multi_range_read_info(uint key, uint ranges, uint rows, uint key_parts, uint *buffer_size, uint *mode,
                                       Cost_estimate *cost) {
  const ha_rows code = handler::multi_range_read_info(key, ranges, rows, key_parts, buffer_size, mode, cost);
  // A join may come to a batch without keys, as all are null. Where the table has partitions the server goes on with those of the batch before
  // then, and with none before the first.
  if (code == 0 && table->part_info == nullptr) choose_batches(key, key_parts == table->key_info[key].user_defined_key_parts, mode);
  return code;
}

int Handler::multi_range_read_explain_info(uint mode, char *text, size_t size) {
  if ((mode & HA_MRR_USE_DEFAULT_IMPL) != 0) return 0;
  constexpr View kName = "Batched lookups";
  const size_t length = std::min(kName.size(), size);
  memcpy(text, kName.data(), length);
  return static_cast<int>(length);
}

int Handler::multi_range_read_init(RANGE_SEQ_IF *sequence, void *parameter, uint ranges, uint mode, HANDLER_BUFFER *buffer) {
  if (lock_ != kNoLock || (keyread_enabled() && !active_->is_primary())) mode |= HA_MRR_USE_DEFAULT_IMPL;
  is_batched_ = (mode & HA_MRR_USE_DEFAULT_IMPL) == 0;
  if (!is_batched_) return handler::multi_range_read_init(sequence, parameter, ranges, mode, buffer);
  mrr_funcs = *sequence;
  mrr_iter = sequence->init(parameter, ranges, mode);
  set_end_range(nullptr);
  batch_.begin();
  return 0;
}

int Handler::multi_range_read_next(range_id_t *range) {
  if (!is_batched_) return handler::multi_range_read_next(range);
  for (;;) {
    if (batch_.is_used_up()) {
      if (batch_.is_at_end) return HA_ERR_END_OF_FILE;
      if (thd_killed(thd())) return HA_ERR_ABORTED_BY_USER;
      if (const int code = collect_batch()) return code;
      if (const int code = fetch_batch()) return code;
      continue;
    }
    View key;
    const esker_slice row = batch_.take(key, *range);
    if (row.data == nullptr) continue;
    if (mrr_funcs.skip_record != nullptr && mrr_funcs.skip_record(mrr_iter, *range, nullptr)) continue;
    last_primary_.assign(key.substr(primary_->prefix().size()));
    const int code = show_row(table->record[0], last_primary_, view(row));
    if (code == kSkipped) continue;
    if (code != 0) return code;
    // What the server does where it reads row by row.
    increment_statistics(&SSV::ha_read_next_count);
    update_index_statistics();
    if (table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    table->status = 0;
    return 0;
  }
}

// Takes the next range. Where it is one key, `is_point` says so, and the key is in `search_`.
int Handler::begin_range(bool &is_point) {
  KEY_MULTI_RANGE &range = batch_.range;
  is_point = false;
  batch_.is_at_end = mrr_funcs.next(mrr_iter, &range);
  if (batch_.is_at_end) return 0;
  const key_range *min = range.start_key.keypart_map != 0 ? &range.start_key : nullptr;
  const key_range *max = range.end_key.keypart_map != 0 ? &range.end_key : nullptr;
  if ((range.range_flag & EQ_RANGE) != 0 && min != nullptr && active_->is_whole_key(min->keypart_map)) {
    size_t stored_size;
    active_->make_search(search_, stored_size, min->key, min->keypart_map);
    is_point = active_->is_primary() && stored_size == search_.size();
    if (is_point) return 0;
  }
  active_->make_range(batch_.entries, min, max);
  if (batch_.entries.is_empty()) return 0;
  if (const int code = open_cursor(batch_.entries.lower, batch_.entries.upper)) return code;
  if (const int code = cursor_.set_bounds(batch_.entries.lower, batch_.entries.upper)) return code;
  batch_.has_range = true;
  return cursor_.first();
}

int Handler::add_to_batch(View key, View value) {
  if (!active_->is_in_range(batch_.entries, key, value) || ttl_.is_expired(thd(), value)) return 0;
  if (mrr_funcs.skip_index_tuple != nullptr) {
    row_format_->prepare(table, table->record[0]);
    if (!active_->read_entry(table->record[0], key, value)) return HA_ERR_INDEX_CORRUPT;
    if (mrr_funcs.skip_index_tuple(mrr_iter, batch_.range.ptr)) return 0;
  }
  if (const int code = check_condition(table->record[0])) return code == kSkipped ? 0 : code;
  if (!active_->primary_of(primary_buffer_, key, value)) return HA_ERR_INDEX_CORRUPT;
  batch_.add(primary_->prefix(), primary_buffer_, batch_.range.ptr);
  return 0;
}

// Fills the batch with primary keys of the next entries, until it is full or there are no more.
int Handler::collect_batch() {
  batch_.clear();
  while (!batch_.is_full() && !batch_.is_at_end) {
    if (!batch_.has_range) {
      bool is_point;
      if (const int code = begin_range(is_point)) return code;
      if (is_point) batch_.add({}, search_, batch_.range.ptr);
      continue;
    }
    if (!cursor_.has_row()) {
      batch_.has_range = false;
      continue;
    }
    if (const int code = add_to_batch(cursor_.key(), cursor_.value())) return code;
    if (const int code = cursor_.next()) return code;
  }
  return 0;
}

int Handler::fetch_batch() {
  if (batch_.is_used_up()) return 0;
  batch_.grow();
  const esker_read_options *options;
  if (const int code = transaction_->read_options(thd(), lock_ != kNoLock, options)) return code;
  const std::vector<esker_slice> &keys = batch_.keys();
  const int code = fail(esker_transaction_multi_get(transaction_->get(), rows, keys.data(), keys.size(), options, batch_.values()));
  if (code == 0) batch_.fetched();
  return code;
}

}  // namespace esker
