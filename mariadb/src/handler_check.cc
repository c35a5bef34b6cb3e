// CHECK TABLE: every row can be read, every index has exactly the entries that the rows make, as of one moment.
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"

namespace esker {

namespace {

// Rows of an index at a snapshot.
class Scan {
 public:
  Scan(const Index &index, const esker_snapshot *snapshot) : options_(esker_read_options_create()) {
    Bytes end(index.prefix());
    make_successor(end);
    esker_read_options_set_snapshot(options_, snapshot);
    esker_read_options_set_fill_cache(options_, false);
    error_ = esker_read_options_set_bounds(options_, slice(index.prefix()), slice(end));
    if (error_ == nullptr) error_ = esker_iterator_create(db, rows, options_, &iterator_);
    if (error_ == nullptr) error_ = esker_iterator_seek_to_first(iterator_, &row_);
  }
  Scan(const Scan &) = delete;
  ~Scan() {
    esker_iterator_free(iterator_);
    esker_read_options_free(options_);
    esker_error_free(error_);
  }

  bool has_row() const { return error_ == nullptr && row_.key.data != nullptr; }
  View key() const { return view(row_.key); }
  View value() const { return view(row_.value); }
  void next() { error_ = esker_iterator_next(iterator_, &row_); }
  esker_error *take_error() { return std::exchange(error_, nullptr); }

 private:
  esker_read_options *options_;
  esker_iterator *iterator_ = nullptr;
  esker_row row_ = {};
  esker_error *error_ = nullptr;
};

}  // namespace

int Handler::check_entries(const esker_snapshot *snapshot, const esker_read_options *options, ha_rows &count) {
  Scan scan(*primary_, snapshot);
  uchar *record = table->record[0];
  for (; scan.has_row(); scan.next(), count++) {
    if (thd_killed(thd())) return HA_ERR_ABORTED_BY_USER;
    if (ttl_.is_expired(thd(), scan.value())) {
      count--;
      continue;
    }
    const View primary = scan.key().substr(primary_->prefix().size());
    row_format_->prepare(table, record);
    if (!primary_->read_primary(record, primary) || !row_format_->read(record, scan.value(), nullptr)) return HA_ERR_CRASHED;
    if (table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    for (const auto &index : indexes_) {
      if (index == nullptr) continue;
      make_entry(*index, key_, value_, record, primary, Ttl::time_of(scan.value()));
      esker_slice found;
      if (const int code = fail(esker_db_get(db, rows, slice(key_), options, check_value_, &found))) return code;
      if (found.data == nullptr || view(found) != View(value_)) {
        sql_print_error("ESKER: %s: key %s has not the entry of a row", name_.c_str(),
                        table->key_info[index->key_number()].name.str);
        return HA_ERR_CRASHED;
      }
    }
  }
  return fail(scan.take_error());
}

int Handler::check(THD *, HA_CHECK_OPT *) {
  esker_snapshot *snapshot;
  if (fail(esker_snapshot_create(db, &snapshot)) != 0) return HA_ADMIN_FAILED;
  esker_read_options *options = esker_read_options_create();
  esker_read_options_set_snapshot(options, snapshot);
  table->use_all_columns();
  ha_rows count = 0;
  int code = check_entries(snapshot, options, count);
  for (const auto &index : indexes_) {
    if (index == nullptr || code != 0) continue;
    ha_rows entries = 0;
    Scan scan(*index, snapshot);
    for (; scan.has_row(); scan.next()) entries += !ttl_.is_expired(thd(), scan.value());
    code = fail(scan.take_error());
    if (code == 0 && entries != count) {
      sql_print_error("ESKER: %s: key %s has %llu entries for %llu rows", name_.c_str(),
                      table->key_info[index->key_number()].name.str, entries, count);
      code = HA_ERR_CRASHED;
    }
  }
  table->default_column_bitmaps();
  esker_read_options_free(options);
  esker_snapshot_free(snapshot);
  if (code == 0) return HA_ADMIN_OK;
  return code == HA_ERR_CRASHED ? HA_ADMIN_CORRUPT : HA_ADMIN_FAILED;
}

}  // namespace esker
