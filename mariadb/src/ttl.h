// Rows that expire: CREATE TABLE … TTL_SECONDS=n TTL_COLUMN='c'. A row, and each of its entries, ends with the time from which on it counts
// (8 bytes, seconds since 1970): that of a TIMESTAMP column, or that at which it was written. Reads pass over what has expired when
// their statement begins; compactions remove it later.
#pragma once

#include "server.h"

// The server's name for what a storage engine adds to CREATE TABLE.
struct ha_table_option_struct {
  ulonglong ttl_seconds;
  char *ttl_column;
};

namespace esker {

extern ha_create_table_option table_options[];

class Ttl {
 public:
  Ttl() = default;
  explicit Ttl(const TABLE *table);

  // Null if the options make sense; else what is wrong with them.
  static const char *check(const TABLE *table);

  bool operator!=(const Ttl &other) const {
    const uint none = MAX_FIELDS;
    const uint place = field_ == nullptr ? none : field_->field_index, other_place = other.field_ == nullptr ? none : other.field_->field_index;
    return seconds_ != other.seconds_ || place != other_place;
  }
  bool is_on() const { return seconds_ != 0; }
  uint64_t seconds() const { return seconds_; }
  // Whether a row that is changed counts from another time.
  bool changes(THD *thd, const uchar *old_record, const uchar *new_record) const;
  // From when on a record counts, if it is written in this statement.
  uint64_t time_of(THD *thd, const uchar *record) const;
  static void append(Bytes &value, uint64_t time) { append_u64_be(value, time); }
  static uint64_t time_of(View value);
  bool is_expired(THD *thd, View value) const;

 private:
  uint64_t seconds_ = 0;
  const Field *field_ = nullptr;
  const TABLE *table_ = nullptr;
};

// Rows of the index with this number expire, or (0 seconds) they don't any more.
void set_ttl(uint32_t index_number, uint64_t seconds);
void forget_ttls();
// Has compactions remove what has expired.
esker_error *add_ttl_filter(esker_family_options *options);

}  // namespace esker
