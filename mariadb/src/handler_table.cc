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
                      HA_TABLE_SCAN_ON_INDEX | HA_CAN_VIRTUAL_COLUMNS | HA_PRIMARY_KEY_IN_READ_INDEX | HA_CAN_SQL_HANDLER |
                      HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_PRIMARY_KEY_REQUIRED_FOR_DELETE | HA_CRASH_SAFE |
                      HA_CAN_ONLINE_BACKUPS | HA_CAN_TABLES_WITHOUT_ROLLBACK | HA_ONLINE_ANALYZE | HA_CONCURRENT_OPTIMIZE;
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
  if (const char *wrong = Ttl::check(form)) {
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "ESKER: %s", MYF(0), wrong);
    return HA_WRONG_CREATE_OPTION;
  }
  entry.ttl_seconds = Ttl(form).seconds();
  entry.is_temporary = info->tmp_table();
  for (uint i = 0; i < form->s->keys; i++) entry.indexes.push_back({0, Bytes(form->key_info[i].name.str), 0});
  if (form->s->primary_key >= MAX_KEY) entry.indexes.push_back({0, Bytes(), 0});
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
    indexes_[key]->set_since(entry_->indexes[key].since);
  }
  primary_->set_since(primary < MAX_KEY ? entry_->indexes[primary].since : entry_->indexes.back().since);
  ttl_ = Ttl(table);
  row_format_ = std::make_unique<RowFormat>(table, *primary_, *entry_);
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
  copying_ = is_bulk_ = wants_load_ = false;
  loader_.reset();
  return 0;
}

int Handler::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_BEGIN_COPY:
    case HA_EXTRA_BEGIN_ALTER_IGNORE_COPY:
      // A temporary table may be filled inside a transaction of the client, which is not this statement's to commit.
      copying_ = !thd()->in_active_multi_stmt_transaction();
      // Which of two rows with the same key is left out can be told only as they come.
      wants_load_ = copying_ && operation == HA_EXTRA_BEGIN_COPY;
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
  if (is_sequence()) lock_ = kNoLock;
  return 0;
}

void Handler::unlock_row() {
  if (lock_ == kNoLock || !transaction_->is_read_committed()) return;
  row_key_.assign(primary_->prefix()).append(last_primary_);
  fail(esker_transaction_undo_get_for_update(transaction_->get(), rows, slice(row_key_), nullptr));
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

}  // namespace esker
