// What the optimizer is told: how many rows there are, how large they are, how many a range or a key has.
#include "engine.h"
#include "errors.h"
#include "ha_esker.h"
#include "sample.h"

namespace esker {

namespace {

// Places at which an index is looked into: by ANALYZE, and by whoever is the first to ask.
constexpr size_t kAnalyzePlaces = 256, kPlaces = 32;

}  // namespace

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
  // Where a table has doubled or lost half of its rows, what was sampled before may be wrong.
  if ((flag & HA_STATUS_VARIABLE) != 0 && share_->takes_sample(stats.records)) sample(kPlaces);
  if ((flag & HA_STATUS_CONST) != 0) show_rows_per_key();
  if ((flag & HA_STATUS_AUTO) != 0 && table->found_next_number_field != nullptr) {
    uint64_t next;
    if (share_->peek_auto_increment(next) == 0) stats.auto_increment_value = next;
  }
  if ((flag & HA_STATUS_ERRKEY) != 0) {
    // A partition that the statement does not use is asked, too.
    const Transaction *transaction = Transaction::find(thd());
    errkey = transaction == nullptr ? MAX_KEY : transaction->duplicate_key(table->s);
  }
  return 0;
}

void Handler::show_rows_per_key() {
  for (uint key = 0; key < table->s->keys; key++) {
    KEY &info = table->key_info[key];
    for (uint part = 0; part < info.ext_key_parts; part++) {
      const bool is_whole = part + 1 >= info.user_defined_key_parts && (info.flags & HA_NOSAME) != 0;
      const bool is_row = part + 1 == info.ext_key_parts && part + 1 > info.user_defined_key_parts;
      const ulong sampled = share_->rows_per_key(key, std::min(part, info.user_defined_key_parts - 1));
      info.rec_per_key[part] = is_whole || is_row ? 1 : std::max<ulong>(1, sampled);
    }
  }
}

int Handler::sample(size_t places) {
  for (uint key = 0; key < table->s->keys; key++) {
    Sample taken(index(key));
    if (const int code = fail(taken.read(places))) return code;
    std::vector<ulong> rows_per_key = taken.rows_per_key();
    if (!rows_per_key.empty()) share_->set_rows_per_key(key, std::move(rows_per_key));
  }
  show_rows_per_key();
  return 0;
}

int Handler::analyze(THD *, HA_CHECK_OPT *) {
  if (sample(kAnalyzePlaces) != 0) return HA_ADMIN_FAILED;
  return info(HA_STATUS_CONST | HA_STATUS_VARIABLE) == 0 ? HA_ADMIN_OK : HA_ADMIN_FAILED;
}

ha_rows Handler::records_in_range(uint key, const key_range *min, const key_range *max, page_range *) {
  EntryRange range;
  index(key).make_range(range, min, max);
  if (range.is_empty()) return 1;
  uint64_t count = 0;
  if (const int code = fail(esker_db_approximate_count(db, rows, {slice(range.lower), slice(range.upper)}, &count))) {
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
