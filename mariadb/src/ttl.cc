// Rows that expire.
#include "ttl.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace esker {

namespace {

using Seconds = std::unordered_map<uint32_t, uint64_t>;

std::mutex mutex;                                   // guards what follows
Seconds seconds_by_index;

bool is_past(uint64_t time, uint64_t seconds, uint64_t now) { return time < now && now - time > seconds; }

// How much longer than it can be read a row is kept, for statements that have begun before and for replicas that lag behind: what the
// primary still changed has to be there when they come to it.
uint64_t grace(uint64_t seconds) { return std::min<uint64_t>(seconds, 3600); }

// Of one compaction: what it found when it began.
struct Filter {
  Seconds seconds;
  uint64_t now;
  uint32_t last_number = 0;
  uint64_t last_seconds = 0;
};

bool create_filter(void *, const esker_filter_context *, void **filter) {
  std::lock_guard guard(mutex);
  if (seconds_by_index.empty()) return false;
  *filter = new Filter{seconds_by_index, static_cast<uint64_t>(my_time(0))};
  return true;
}

void destroy_filter(void *filter) { delete static_cast<Filter *>(filter); }

esker_decision decide_by_key(void *place, esker_slice stored, esker_buffer *) {
  Filter &filter = *static_cast<Filter *>(place);
  const View key = view(stored);
  if (key.size() < 4) return ESKER_KEEP;
  const uint32_t number = read_u32_be(key.data());
  if (number != filter.last_number) {
    const auto found = filter.seconds.find(number);
    filter.last_number = number;
    filter.last_seconds = found == filter.seconds.end() ? 0 : found->second;
  }
  return filter.last_seconds == 0 ? ESKER_KEEP : ESKER_NEED_VALUE;
}

esker_decision decide(void *place, esker_slice key, esker_slice value, esker_buffer *out) {
  const Filter &filter = *static_cast<Filter *>(place);
  if (decide_by_key(place, key, out) == ESKER_KEEP) return ESKER_KEEP;
  return is_past(Ttl::time_of(view(value)), filter.last_seconds + grace(filter.last_seconds), filter.now) ? ESKER_REMOVE : ESKER_KEEP;
}

const Field *find_column(const TABLE *table, const char *name) {
  for (Field **field = table->field; *field != nullptr; field++) {
    if (my_strcasecmp(system_charset_info, (*field)->field_name.str, name) == 0) return *field;
  }
  return nullptr;
}

}  // namespace

ha_create_table_option table_options[] = {HA_TOPTION_NUMBER("TTL_SECONDS", ttl_seconds, 0, 0, UINT_MAX32, 1),
                                          HA_TOPTION_STRING("TTL_COLUMN", ttl_column), HA_TOPTION_END};

Ttl::Ttl(const TABLE *table) : table_(table) {
  const ha_table_option_struct *options = table->s->option_struct;
  if (options == nullptr || options->ttl_seconds == 0) return;
  seconds_ = options->ttl_seconds;
  if (options->ttl_column != nullptr) field_ = find_column(table, options->ttl_column);
}

const char *Ttl::check(const TABLE *table) {
  const ha_table_option_struct *options = table->s->option_struct;
  if (options == nullptr || options->ttl_column == nullptr) return nullptr;
  if (options->ttl_seconds == 0) return "TTL_COLUMN needs TTL_SECONDS";
  const Field *field = find_column(table, options->ttl_column);
  if (field == nullptr || !field->stored_in_db() || field->type() != MYSQL_TYPE_TIMESTAMP) {
    return "TTL_COLUMN must name a stored TIMESTAMP column";
  }
  return nullptr;
}

bool Ttl::changes(THD *thd, const uchar *old_record, const uchar *new_record) const {
  return is_on() && (field_ == nullptr || time_of(thd, old_record) != time_of(thd, new_record));
}

uint64_t Ttl::time_of(THD *thd, const uchar *record) const {
  if (field_ == nullptr) return static_cast<uint64_t>(thd->query_start());
  const my_ptrdiff_t offset = record - table_->record[0];
  // A row without a time stays.
  if (field_->is_null(offset)) return UINT64_MAX;
  ulong fraction;
  return static_cast<uint64_t>(field_->get_timestamp(field_->ptr + offset, &fraction));
}

uint64_t Ttl::time_of(View value) {
  return value.size() < sizeof(uint64_t) ? UINT64_MAX : read_u64_be(value.data() + value.size() - sizeof(uint64_t));
}

bool Ttl::is_expired(THD *thd, View value) const {
  return is_on() && is_past(time_of(value), seconds_, static_cast<uint64_t>(thd->query_start()));
}

void set_ttl(uint32_t index_number, uint64_t seconds) {
  std::lock_guard guard(mutex);
  if (seconds == 0) seconds_by_index.erase(index_number);
  else seconds_by_index[index_number] = seconds;
}

void forget_ttls() {
  std::lock_guard guard(mutex);
  seconds_by_index.clear();
}

esker_error *add_ttl_filter(esker_family_options *options) {
  const esker_compaction_filter filter = {nullptr, nullptr, create_filter, destroy_filter, decide_by_key, decide, false};
  return esker_family_options_set_compaction_filter(options, &filter);
}

}  // namespace esker
