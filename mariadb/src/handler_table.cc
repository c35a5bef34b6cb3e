// Tables: what they can have, how they come, go and are opened, what a statement does before it reads, and what the optimizer is told.
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"

namespace esker {

Handler::Handler(handlerton *hton, TABLE_SHARE *table_share)
    : handler(hton, table_share), row_value_(esker_value_create()), check_value_(esker_value_create()) {
  ref_length = sizeof(uint64_t);
}

Handler::~Handler() {
  esker_value_free(row_value_);
  esker_value_free(check_value_);
}

int Handler::fail(esker_error *error) const {
  return likely(error == nullptr) ? 0 : code_of(error, table == nullptr ? nullptr : thd());
}

handler::Table_flags Handler::table_flags() const {
  Table_flags flags = HA_BINLOG_ROW_CAPABLE | HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_CAN_GEOMETRY |
                      HA_PARTIAL_COLUMN_READ | HA_TABLE_SCAN_ON_INDEX | HA_CAN_VIRTUAL_COLUMNS | HA_PRIMARY_KEY_IN_READ_INDEX | HA_CAN_SQL_HANDLER |
                      HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_PRIMARY_KEY_REQUIRED_FOR_DELETE | HA_CRASH_SAFE |
                      HA_CAN_ONLINE_BACKUPS | HA_ONLINE_ANALYZE | HA_CONCURRENT_OPTIMIZE;
  if (table_share != nullptr && table_share->primary_key < MAX_KEY) flags |= HA_PRIMARY_KEY_REQUIRED_FOR_POSITION;
  return flags;
}

ulong Handler::index_flags(uint index, uint part, bool all_parts) const {
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE;
  const bool is_primary = table_share != nullptr && index == table_share->primary_key;
  if (is_primary) flags |= HA_CLUSTERED_INDEX;
  if (!is_primary) flags |= HA_DO_INDEX_COND_PUSHDOWN;
  if (table_share == nullptr || table_share->key_info == nullptr) return flags | HA_KEYREAD_ONLY;
  // What is only the beginning of a column can't be read from the index.
  const KEY &key = table_share->key_info[index];
  const uint first = all_parts ? 0 : part;
  for (uint i = first; i <= part && i < key.user_defined_key_parts; i++) {
    const Field *field = key.key_part[i].field;
    if (field == nullptr && key.key_part[i].fieldnr > 0) field = table_share->field[key.key_part[i].fieldnr - 1];
    if (field != nullptr && ((field->flags & BLOB_FLAG) != 0 || key.key_part[i].length < field->key_length())) return flags;
  }
  return flags | HA_KEYREAD_ONLY;
}

int Handler::create(const char *name, TABLE *form, HA_CREATE_INFO *info) {
  TableEntry entry;
  entry.is_temporary = info->tmp_table();
  for (uint i = 0; i < form->s->keys; i++) entry.indexes.push_back({0, Bytes(form->key_info[i].name.str)});
  if (form->s->primary_key >= MAX_KEY) entry.indexes.push_back({0, Bytes()});
  if (info->data_file_name != nullptr || info->index_file_name != nullptr) {
    push_warning(ha_thd(), Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED, "ESKER has one folder: DIRECTORY is ignored");
  }
  return esker::create_table(name, std::move(entry), info->auto_increment_value);
}

int Handler::delete_table(const char *name) { return esker::drop_table(name); }

int Handler::rename_table(const char *from, const char *to) { return esker::rename_table(from, to); }

int Handler::truncate() {
  if (const int code = esker::truncate_table(name_.c_str())) return code;
  cursor_.close();
  share_->replace_entry(find_table(name_.c_str()));
  follow_entry();
  return 0;
}

int Handler::open(const char *name, int, uint) {
  name_ = name;
  lock_shared_ha_data();
  share_ = static_cast<TableShare *>(get_ha_share_ptr());
  if (share_ == nullptr) {
    if (TablePointer found = find_table(name)) {
      share_ = new TableShare(std::move(found));
      set_ha_share_ptr(share_);
    }
  }
  unlock_shared_ha_data();
  if (share_ == nullptr) return HA_ERR_NO_SUCH_TABLE;
  const size_t keys = table->s->keys + (table->s->primary_key >= MAX_KEY ? 1 : 0);
  if (share_->entry()->indexes.size() != keys) return HA_ERR_TABLE_DEF_CHANGED;
  follow_entry();
  size_t primary_size = sizeof(uint64_t);
  if (!has_hidden_key()) {
    primary_size = 0;
    for (const KeyPart &part : primary_->parts()) primary_size += part.encoded_size_max();
  }
  ref_length = static_cast<uint>(2 + primary_size);
  return info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST);
}

void Handler::follow_entry() {
  TablePointer entry = share_->entry();
  if (entry == entry_) return;
  entry_ = std::move(entry);
  const uint primary = table->s->primary_key;
  active_ = nullptr;
  indexes_.clear();
  indexes_.resize(table->s->keys);
  primary_ = primary < MAX_KEY
                 ? std::make_unique<Index>(table, primary, Index::kPrimary, entry_->indexes[primary].number, nullptr)
                 : std::make_unique<Index>(table, kHiddenKey, Index::kHidden, entry_->indexes.back().number, nullptr);
  for (uint key = 0; key < table->s->keys; key++) {
    if (key == primary) continue;
    const Index::Kind kind = (table->key_info[key].flags & HA_NOSAME) != 0 ? Index::kUnique : Index::kSecondary;
    indexes_[key] = std::make_unique<Index>(table, key, kind, entry_->indexes[key].number, primary_.get());
  }
  row_format_ = std::make_unique<RowFormat>(table, *primary_);
}

int Handler::close() {
  cursor_.close();
  return 0;
}

int Handler::reset() {
  cursor_.close();
  esker_value_reset(row_value_);
  esker_value_reset(check_value_);
  active_ = nullptr;
  point_ = false;
  copying_ = false;
  return 0;
}

int Handler::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_BEGIN_COPY:
    case HA_EXTRA_BEGIN_ALTER_IGNORE_COPY:
      // A temporary table may be filled inside a transaction of the client, which is not this statement's to commit.
      copying_ = !thd()->in_active_multi_stmt_transaction();
      break;
    case HA_EXTRA_END_COPY:
    case HA_EXTRA_ABORT_COPY: copying_ = false; break;
    default: break;
  }
  return 0;
}

// Another handler of the statement, which reads the table beside this one.
handler *Handler::clone(const char *name, MEM_ROOT *root) {
  Handler *other = static_cast<Handler *>(handler::clone(name, root));
  if (other == nullptr) return nullptr;
  other->transaction_ = transaction_;
  other->lock_ = lock_;
  return other;
}

THR_LOCK_DATA **Handler::store_lock(THD *, THR_LOCK_DATA **to, enum thr_lock_type lock_type) {
  if (lock_type == TL_IGNORE) return to;
  if (lock_type >= TL_WRITE_ALLOW_WRITE) lock_ = kExclusiveLock;
  else if (lock_type == TL_READ_WITH_SHARED_LOCKS) lock_ = kSharedLock;
  else lock_ = kNoLock;
  return to;
}

int Handler::external_lock(THD *thd, int lock_type) {
  if (lock_type == F_UNLCK) {
    if (transaction_ != nullptr) transaction_->leave_statement();
    lock_ = kNoLock;
    return 0;
  }
  if (lock_type == F_WRLCK) lock_ = kExclusiveLock;
  const int code = start_stmt(thd, TL_IGNORE);
  if (code == 0) transaction_->add_table();
  return code;
}

int Handler::start_stmt(THD *thd, thr_lock_type lock_type) {
  if (lock_type != TL_IGNORE) store_lock(thd, nullptr, lock_type);
  follow_entry();
  rows_locked_ = false;
  transaction_ = Transaction::of(thd);
  if (transaction_ == nullptr) return HA_ERR_OUT_OF_MEM;
  if (const int code = transaction_->enter_statement(thd)) return code;
  // A serializable transaction keeps others from changing what it has read.
  if (lock_ == kNoLock && transaction_->is_serializable() && thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN)) {
    lock_ = kSharedLock;
  }
  return 0;
}

void Handler::unlock_row() {
  if (lock_ == kNoLock || !transaction_->is_read_committed()) return;
  row_key_.assign(primary_->prefix()).append(last_primary_);
  fail(esker_transaction_undo_get_for_update(transaction_->get(), rows, slice(row_key_), nullptr));
}

int Handler::estimate_size(TableSize &size) {
  Bytes end(primary_->prefix());
  make_successor(end);
  const esker_range range = {slice(primary_->prefix()), slice(end)};
  if (const int code = fail(esker_db_approximate_count(db, rows, range, &size.rows))) return code;
  if (const int code = fail(esker_db_approximate_size(db, rows, range, &size.row_bytes))) return code;
  for (const auto &index : indexes_) {
    if (index == nullptr) continue;
    end = index->prefix();
    make_successor(end);
    const esker_range entries = {slice(index->prefix()), slice(end)};
    uint64_t bytes;
    if (const int code = fail(esker_db_approximate_size(db, rows, entries, &bytes))) return code;
    size.index_bytes += bytes;
  }
  share_->note_size(size);
  return 0;
}

void Handler::read_statistics(uint flag) {
  TableSize size;
  // Who asks for a table's status, or analyzes it, wants to know it as of now.
  const bool is_status = (flag & (HA_STATUS_TIME | HA_STATUS_OPEN)) != 0;
  const bool as_of_now = is_status || (flag & HA_STATUS_CONST) != 0;
  if ((as_of_now || !share_->recall_size(size)) && estimate_size(size) != 0) return;
  // The optimizer may not take a guess of none for the truth.
  stats.records = size.rows == 0 && !is_status ? 1 : size.rows;
  stats.data_file_length = size.row_bytes;
  stats.index_file_length = size.index_bytes;
  stats.mean_rec_length = static_cast<ulong>(stats.data_file_length / std::max<ha_rows>(stats.records, 1));
  stats.delete_length = 0;
}

int Handler::info(uint flag) {
  if ((flag & HA_STATUS_VARIABLE) != 0) read_statistics(flag);
  if ((flag & HA_STATUS_CONST) != 0) {
    for (uint key = 0; key < table->s->keys; key++) {
      KEY &info = table->key_info[key];
      if (!share_->has_rows_per_key(key)) sample(key);
      for (uint part = 0; part < info.ext_key_parts; part++) {
        const bool is_whole = part + 1 >= info.user_defined_key_parts && (info.flags & HA_NOSAME) != 0;
        const bool is_row = part + 1 == info.ext_key_parts && part + 1 > info.user_defined_key_parts;
        const ulong sampled = share_->rows_per_key(key, std::min(part, info.user_defined_key_parts - 1));
        info.rec_per_key[part] = is_whole || is_row ? 1 : std::max<ulong>(1, sampled);
      }
    }
  }
  if ((flag & HA_STATUS_AUTO) != 0 && table->found_next_number_field != nullptr) {
    uint64_t next;
    if (share_->peek_auto_increment(next) == 0) stats.auto_increment_value = next;
  }
  if ((flag & HA_STATUS_ERRKEY) != 0) errkey = duplicate_key_;
  return 0;
}

// Counts in the first entries of an index how often each number of parts changes.
int Handler::sample(uint key) {
  constexpr size_t kEntries = 2000;
  const Index &sampled = index(key);
  std::vector<ulong> changes(sampled.parts().size(), 1);
  esker_read_options *options = esker_read_options_create();
  esker_iterator *iterator = nullptr;
  esker_row row = {};
  Bytes end(sampled.prefix()), before;
  make_successor(end);
  size_t entries = 0;
  esker_error *error = esker_read_options_set_bounds(options, slice(sampled.prefix()), slice(end));
  if (error == nullptr) error = esker_iterator_create(db, rows, options, &iterator);
  if (error == nullptr) error = esker_iterator_seek_to_first(iterator, &row);
  for (; error == nullptr && row.key.data != nullptr && entries < kEntries; error = esker_iterator_next(iterator, &row)) {
    View now = view(row.key).substr(4), was = before;
    bool differs = entries == 0;
    for (size_t part = 0; part < changes.size(); part++) {
      const View now_before = now, was_before = was;
      if (!sampled.parts()[part].skip(now)) break;
      if (!differs) {
        if (!sampled.parts()[part].skip(was)) break;
        differs = now_before.substr(0, now_before.size() - now.size()) != was_before.substr(0, was_before.size() - was.size());
      }
      if (differs && entries > 0) changes[part]++;
    }
    before = view(row.key).substr(4);
    entries++;
  }
  esker_iterator_free(iterator);
  esker_read_options_free(options);
  // A table that has hardly any rows yet is looked at again.
  if (entries >= 100) {
    std::vector<ulong> per_key;
    for (const ulong changed : changes) per_key.push_back(static_cast<ulong>(entries / changed));
    share_->set_rows_per_key(key, std::move(per_key));
  }
  return fail(error);
}

int Handler::analyze(THD *, HA_CHECK_OPT *) {
  for (uint key = 0; key < table->s->keys; key++) {
    if (sample(key) != 0) return HA_ADMIN_FAILED;
  }
  return info(HA_STATUS_CONST | HA_STATUS_VARIABLE) == 0 ? HA_ADMIN_OK : HA_ADMIN_FAILED;
}

int Handler::optimize(THD *, HA_CHECK_OPT *) {
  for (const IndexEntry &entry : share_->entry()->indexes) {
    Bytes start, end;
    append_u32_be(start, entry.number);
    append_u32_be(end, entry.number + 1);
    if (fail(esker_db_compact_range(db, rows, slice(start), slice(end))) != 0) return HA_ADMIN_FAILED;
  }
  return HA_ADMIN_OK;
}

void Handler::update_create_info(HA_CREATE_INFO *info) {
  if ((info->used_fields & HA_CREATE_USED_AUTO) != 0) return;
  Handler::info(HA_STATUS_AUTO);
  info->auto_increment_value = stats.auto_increment_value;
}

bool Handler::check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) {
  if (changes != IS_EQUAL_YES || (info->used_fields & HA_CREATE_USED_AUTO) != 0) return COMPATIBLE_DATA_NO;
  return COMPATIBLE_DATA_YES;
}

// Too large a transaction has a code of the server's, though none of handlers.
void Handler::print_error(int error, myf flag) {
  if (error != kTransactionTooLarge) return handler::print_error(error, flag);
  const Bytes text(engine_message());
  my_printf_error(ER_TRANS_CACHE_FULL, "ESKER: %s", flag, text.c_str());
}

bool Handler::get_error_message(int error, String *message) {
  if (error != kEngineError) return false;
  const View text = engine_message();
  message->copy(text.data(), static_cast<uint32>(text.size()), &my_charset_utf8mb3_general_ci);
  return false;
}

ha_rows Handler::records_in_range(uint key, const key_range *min, const key_range *max, page_range *) {
  const Index &searched = index(key);
  Bytes start(searched.prefix()), end(searched.prefix());
  make_successor(end);
  size_t stored_size;
  if (min != nullptr) {
    searched.make_search(start, stored_size, min->key, min->keypart_map);
    if (min->flag == HA_READ_AFTER_KEY) make_successor(start);
  }
  if (max != nullptr) {
    searched.make_search(end, stored_size, max->key, max->keypart_map);
    if (max->flag == HA_READ_AFTER_KEY || max->flag == HA_READ_KEY_EXACT) make_successor(end);
  }
  if (View(start) >= View(end)) return 1;
  uint64_t count = 0;
  const esker_range range = {slice(start), slice(end)};
  if (const int code = fail(esker_db_approximate_count(db, rows, range, &count))) {
    print_error(code, MYF(0));
    return HA_POS_ERROR;
  }
  return std::max<ha_rows>(count, 1);
}

double Handler::scan_time() { return static_cast<double>(stats.data_file_length) / IO_SIZE + 2; }

// A range of the clustered key is read where it lies; every entry of another index costs a look-up of its row.
double Handler::read_time(uint key, uint ranges, ha_rows rows_read) {
  if (key != table->s->primary_key) return handler::read_time(key, ranges, rows_read);
  const double scan = scan_time();
  if (stats.records < rows_read) return scan;
  return ranges + static_cast<double>(rows_read) / static_cast<double>(std::max<ha_rows>(stats.records, 1)) * scan;
}

}  // namespace esker
