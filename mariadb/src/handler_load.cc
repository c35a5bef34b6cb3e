// Bulk loads: rows of a statement that fills an empty table are sorted, with their entries, and come into the database together at
// its end. ALTER TABLE fills its copy so; LOAD DATA, INSERT … SELECT and CREATE TABLE … SELECT do where esker_bulk_load asks for it.
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"
#include "variables.h"

namespace esker {

namespace {

// Whether the statement alone fills a table, and ends where a row is refused.
bool is_filling(THD *thd) {
  const LEX *lex = thd->lex;
  switch (lex->sql_command) {
    case SQLCOM_LOAD:
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_CREATE_TABLE: break;
    default: return false;
  }
  return lex->duplicates == DUP_ERROR && !lex->ignore && !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

}  // namespace

void Handler::start_bulk_insert(ha_rows, uint) {
  is_bulk_ = true;
  wants_load_ = wants_load_ || (bulk_load(thd()) && is_filling(thd()));
}

// Before the first row of a bulk insert: decides whether it is loaded. Not where the server itself looks for rows that were
// written before, as it does for unique keys that it keeps.
int Handler::begin_load() {
  wants_load_ = false;
  // The server opens a copy that it fills as a temporary table.
  if ((table->s->tmp_table != NO_TMP_TABLE && !copying_) || table->s->long_unique_table || table->s->period.unique_keys != 0) return 0;
  for (const IndexEntry &index : entry_->indexes) {
    Bytes start, end;
    append_u32_be(start, index.number);
    append_u32_be(end, index.number + 1);
    const esker_range range = {slice(start), slice(end)};
    // Nobody else writes there until the statement is over.
    if (const int code = fail(esker_transaction_lock_range(transaction_->get(), rows, range, ESKER_EXCLUSIVE))) return code;
    bool is_empty;
    if (const int code = find_any(range, is_empty)) return code;
    if (!is_empty) return 0;
  }
  loader_ = std::make_unique<Loader>(entry_->indexes.size());
  return 0;
}

int Handler::find_any(esker_range range, bool &is_empty) {
  esker_read_options *options = esker_read_options_create();
  esker_iterator *iterator = nullptr;
  esker_row row = {};
  esker_error *error = esker_read_options_set_bounds(options, range.start, range.end);
  if (error == nullptr) error = esker_transaction_iterator(transaction_->get(), rows, options, &iterator);
  if (error == nullptr) error = esker_iterator_seek_to_first(iterator, &row);
  is_empty = row.key.data == nullptr;
  esker_iterator_free(iterator);
  esker_read_options_free(options);
  return fail(error);
}

// The primary key comes first, the others in their order behind it.
int Handler::load_row(View primary, const uchar *record) {
  row_key_.assign(primary_->prefix()).append(primary);
  row_format_->make(row_, record);
  const uint64_t time = ttl_.is_on() ? ttl_.time_of(thd(), record) : 0;
  if (ttl_.is_on()) Ttl::append(row_, time);
  size_t place = 0;
  int code = loader_->add(place++, row_key_, row_);
  for (const auto &index : indexes_) {
    if (index == nullptr || code != 0) continue;
    make_entry(*index, key_, value_, record, primary, time);
    code = loader_->add(place++, key_, value_);
  }
  return code;
}

int Handler::end_bulk_insert() {
  is_bulk_ = wants_load_ = false;
  if (loader_ == nullptr) return 0;
  const std::unique_ptr<Loader> loader = std::move(loader_);
  // A statement that has failed leaves nothing.
  if (thd()->is_error() || thd_killed(thd())) return 0;
  const int code = loader->finish(thd(), [this](size_t place, View key, View value) {
    const Index *loaded = primary_.get();
    for (const auto &index : indexes_) {
      if (place == 0) break;
      if (index == nullptr) continue;
      loaded = index.get();
      place--;
    }
    // The server tells of the key in the record.
    transaction_->note_duplicate(table->s, loaded->key_number());
    row_format_->prepare(table, table->record[0]);
    const View primary = key.substr(loaded->prefix().size());
    const bool is_read = loaded->is_primary() ? primary_->read_primary(table->record[0], primary) &&
                                                    row_format_->read(table->record[0], value, nullptr)
                                              : loaded->read_entry(table->record[0], key, value);
    return is_read ? HA_ERR_FOUND_DUPP_KEY : HA_ERR_CRASHED;
  });
  share_->forget_size();
  my_errno = code;
  return code;
}

}  // namespace esker
