// ALTER TABLE in place: indexes come and go, columns come behind the others, and what only the server knows of changes, without a copy of
// the table. New indexes are built while others read; nobody writes meanwhile.
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"

namespace esker {

namespace {

constexpr alter_table_operations kBuilds = ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;

// What changes names, texts and defaults only, or takes something away.
constexpr alter_table_operations kTells =
    ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX | ALTER_RENAME_INDEX | ALTER_INDEX_ORDER |
    ALTER_CHANGE_INDEX_COMMENT | ALTER_INDEX_IGNORABILITY | ALTER_COLUMN_NAME | ALTER_COLUMN_DEFAULT | ALTER_RENAME |
    ALTER_CHANGE_CREATE_OPTION | ALTER_DROP_CHECK_CONSTRAINT | ALTER_PARTITIONED | ALTER_ADD_VIRTUAL_COLUMN |
    ALTER_DROP_VIRTUAL_COLUMN;

// What an ALTER TABLE in place has come to.
class Change : public inplace_alter_handler_ctx {
 public:
  TableEntry table;
  std::vector<uint> built;        // keys of the altered table, or its numbers of them
};

// Columns lie in both tables' records alike.
bool has_same_layout(const TABLE *a, const TABLE *b) {
  if (a->s->fields != b->s->fields || a->s->reclength != b->s->reclength) return false;
  for (uint i = 0; i < a->s->fields; i++) {
    const Field *left = a->field[i], *right = b->field[i];
    if (left->ptr - a->record[0] != right->ptr - b->record[0] || left->null_bit != right->null_bit) return false;
    if (left->null_bit != 0 && left->null_ptr - a->record[0] != right->null_ptr - b->record[0]) return false;
  }
  return true;
}

// Whether all stored columns that come are behind those that are there, each with a value that is the same for all rows.
bool is_added_behind(const Alter_inplace_info &info, const TABLE *altered) {
  List_iterator_fast<Create_field> fields(info.alter_info->create_list);
  bool has_come = false;
  uint place = 0;
  while (const Create_field *created = fields++) {
    const Field *field = altered->field[place++];
    if (!field->stored_in_db()) continue;
    if (created->field != nullptr) {
      if (has_come) return false;
      continue;
    }
    has_come = true;
    if (field->default_value != nullptr || field->unireg_check != Field::NONE || (field->flags & BLOB_FLAG) != 0) return false;
  }
  return true;
}

bool is_added(const Alter_inplace_info &info, const char *name) {
  for (uint i = 0; i < info.index_add_count; i++) {
    if (strcasecmp(info.key_info_buffer[info.index_add_buffer[i]].name.str, name) == 0) return true;
  }
  return false;
}

// The number of the key that has this name once the table is altered; 0 if it is a new one.
uint32_t number_before(const TableEntry &table, const Alter_inplace_info &info, const char *name) {
  if (is_added(info, name)) return 0;
  for (size_t i = 0; i < info.rename_keys.size(); i++) {
    const Alter_inplace_info::Rename_key_pair &pair = info.rename_keys.at(i);
    if (strcasecmp(pair.new_key->name.str, name) != 0) continue;
    name = pair.old_key->name.str;
    break;
  }
  for (const IndexEntry &index : table.indexes) {
    if (strcasecmp(index.name.c_str(), name) == 0) return index.number;
  }
  return 0;
}

// The primary key, which stays, with the altered table's columns.
Index altered_primary(const TABLE *altered, const TableEntry &entry) {
  const uint key = altered->s->primary_key;
  if (key >= MAX_KEY) return Index(altered, kHiddenKey, Index::kHidden, entry.indexes.back().number, nullptr);
  return Index(altered, key, Index::kPrimary, entry.indexes[key].number, nullptr);
}

const char *primary_name(const TABLE *table) {
  return table->s->primary_key < MAX_KEY ? table->key_info[table->s->primary_key].name.str : "";
}

}  // namespace

enum_alter_inplace_result Handler::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) {
  const alter_table_operations operations = info->handler_flags & ~ALTER_COLUMN_INDEX_LENGTH;
  if ((operations & ~(kBuilds | kTells | ALTER_ADD_STORED_BASE_COLUMN)) != 0 || strcasecmp(primary_name(table), primary_name(altered)) != 0) {
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  // Rows of another age limit are written anew.
  if (Ttl(table) != Ttl(altered)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if ((operations & ALTER_ADD_STORED_BASE_COLUMN) != 0) {
    TableEntry noted;
    follow_entry();
    const Index primary = altered_primary(altered, *entry_);
    const RowFormat wider(altered, primary, {});
    if (!is_added_behind(*info, altered) || !row_format_->note_added(wider, altered->s->default_values, noted)) {
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
  }
  if ((operations & kBuilds) == 0) return HA_ALTER_INPLACE_INSTANT;
  if (info->ignore || !has_same_layout(table, altered)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
  return HA_ALTER_INPLACE_NOCOPY_LOCK;
}

bool Handler::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  Change *change = new Change;
  info->handler_ctx = change;
  follow_entry();
  for (uint key = 0; key < altered->s->keys; key++) {
    const char *name = altered->key_info[key].name.str;
    const uint32_t number = number_before(*entry_, *info, name);
    if (number == 0) change->built.push_back(key);
    change->table.indexes.push_back({number, Bytes(name), 0});
  }
  if (has_hidden_key()) change->table.indexes.push_back(entry_->indexes.back());
  change->table.added = entry_->added;
  change->table.ttl_seconds = entry_->ttl_seconds;
  if ((info->handler_flags & ALTER_ADD_STORED_BASE_COLUMN) != 0) {
    const Index primary = altered_primary(altered, change->table);
    row_format_->note_added(RowFormat(altered, primary, {}), altered->s->default_values, change->table);
  }
  const LEX_CUSTRING &version = altered->s->tabledef_version;
  if (version.str != nullptr) change->table.definition.assign(reinterpret_cast<const char *>(version.str), version.length);
  if (change->built.empty()) return false;
  const int code = begin_build(change->table);
  if (code != 0) print_error(code, MYF(0));
  return code != 0;
}

// Tells of two rows with the same unique key, of which an entry is given.
int Handler::report_duplicate(TABLE *altered, const Index &built, View key, View value) {
  row_key_.assign(primary_->prefix());
  if (!built.primary_of(primary_buffer_, key, value)) return HA_ERR_INDEX_CORRUPT;
  row_key_.append(primary_buffer_);
  esker_slice row;
  if (const int code = fail(esker_db_get(db, rows, slice(row_key_), nullptr, row_value_, &row))) return code;
  if (row.data != nullptr) {
    if (const int code = show_row(table->record[0], primary_buffer_, view(row))) return code;
    if (table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    memcpy(altered->record[0], table->record[0], table->s->reclength);
  }
  print_keydup_error(altered, &altered->key_info[built.key_number()], MYF(0));
  return HA_ERR_FOUND_DUPP_KEY;
}

int Handler::build_indexes(TABLE *altered, const std::vector<const Index *> &built) {
  Loader loader(built.size());
  esker_read_options *options = esker_read_options_create();
  esker_iterator *iterator = nullptr;
  esker_row row = {};
  Bytes end(primary_->prefix());
  make_successor(end);
  esker_read_options_set_fill_cache(options, false);
  esker_error *error = esker_read_options_set_bounds(options, slice(primary_->prefix()), slice(end));
  if (error == nullptr) error = esker_iterator_create(db, rows, options, &iterator);
  if (error == nullptr) error = esker_iterator_seek_to_first(iterator, &row);
  int code = fail(error);
  uchar *record = table->record[0];
  while (code == 0 && row.key.data != nullptr) {
    if (thd_killed(thd())) code = HA_ERR_ABORTED_BY_USER;
    const View primary = view(row.key).substr(primary_->prefix().size());
    if (code == 0) code = show_row(record, primary, view(row.value));
    if (code == kSkipped) {
      code = fail(esker_iterator_next(iterator, &row));
      continue;
    }
    if (code == 0 && table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    for (size_t i = 0; i < built.size() && code == 0; i++) {
      make_entry(*built[i], key_, value_, record, primary, Ttl::time_of(view(row.value)));
      code = loader.add(i, key_, value_);
    }
    if (code == 0) code = fail(esker_iterator_next(iterator, &row));
  }
  esker_iterator_free(iterator);
  esker_read_options_free(options);
  if (code != 0) return code;
  return loader.finish(thd(), [&](size_t i, View key, View value) { return report_duplicate(altered, *built[i], key, value); });
}

bool Handler::inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  Change &change = *static_cast<Change *>(info->handler_ctx);
  if (change.built.empty()) return false;
  // Columns have the same places in both tables' records, so entries of the altered table are made of rows of this one.
  const Index primary = altered_primary(altered, change.table);
  std::vector<std::unique_ptr<Index>> indexes;
  std::vector<const Index *> built;
  for (const uint key : change.built) {
    const Index::Kind kind = (altered->key_info[key].flags & HA_NOSAME) != 0 ? Index::kUnique : Index::kSecondary;
    indexes.push_back(std::make_unique<Index>(altered, key, kind, change.table.indexes[key].number, &primary));
    built.push_back(indexes.back().get());
  }
  MY_BITMAP *read_set = table->read_set, *write_set = table->write_set;
  table->use_all_columns();
  const int code = build_indexes(altered, built);
  table->column_bitmaps_set(read_set, write_set);
  if (code != 0 && code != HA_ERR_FOUND_DUPP_KEY) print_error(code, MYF(0));
  return code != 0;
}

bool Handler::commit_inplace_alter_table(TABLE *, Alter_inplace_info *info, bool commit) {
  Change *change = static_cast<Change *>(info->handler_ctx);
  // Of a partition that was never prepared there is nothing to undo.
  if (change == nullptr) return false;
  if (!commit) {
    std::vector<uint32_t> numbers;
    for (const uint key : change->built) numbers.push_back(change->table.indexes[key].number);
    return end_build(numbers) != 0;
  }
  cursor_.close();
  const HA_CREATE_INFO *create = info->create_info;
  uint64_t next = 0;
  int code = table->found_next_number_field == nullptr ? 0 : share_->peek_auto_increment(next);
  if ((create->used_fields & HA_CREATE_USED_AUTO) != 0 && next != 0) next = std::max<uint64_t>(next, create->auto_increment_value);
  if (code == 0) code = esker::alter_table(name_.c_str(), change->table, change->built, next);
  if (code != 0) {
    print_error(code, MYF(0));
    return true;
  }
  return false;
}

}  // namespace esker
