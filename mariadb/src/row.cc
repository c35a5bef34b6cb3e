// A row.
#include "row.h"

namespace esker {

namespace {
constexpr char kVersion = 0;
}

RowFormat::RowFormat(const TABLE *table, const Index &primary) {
  std::vector<bool> in_key(table->s->fields);
  for (const KeyPart &part : primary.parts()) {
    if (part.is_decodable()) in_key[part.field_index()] = true;
  }
  size_t nullable = 0;
  for (Field **field = table->field; *field != nullptr; field++) {
    if (!(*field)->stored_in_db() || in_key[(*field)->field_index]) continue;
    columns_.emplace_back(table, *field);
    nullable += columns_.back().is_nullable();
  }
  null_bytes_ = (nullable + 7) / 8;
}

void RowFormat::prepare(const TABLE *table, uchar *record) const {
  memcpy(record, table->s->default_values, table->s->null_bytes);
}

void RowFormat::make(Bytes &row, const uchar *record) const {
  row.clear();
  row.push_back(kVersion);
  row.append(null_bytes_, '\0');
  size_t bit = 0;
  for (const Column &column : columns_) {
    if (column.is_nullable()) {
      const size_t at = bit++;
      if (column.is_null(record)) {
        row[1 + at / 8] |= static_cast<char>(1 << at % 8);
        continue;
      }
    }
    column.append(row, record);
  }
}

bool RowFormat::read(uchar *record, View row, const MY_BITMAP *wanted) const {
  View head;
  if (!take(row, 1 + null_bytes_, head) || head[0] != kVersion) return false;
  size_t bit = 0;
  for (const Column &column : columns_) {
    if (column.is_nullable()) {
      const size_t at = bit++;
      const bool null = (head[1 + at / 8] >> at % 8 & 1) != 0;
      column.set_null(record, null);
      if (null) continue;
    }
    const bool keep = wanted == nullptr || bitmap_is_set(wanted, column.field_index());
    if (!(keep ? column.take_into(row, record) : column.skip(row))) return false;
  }
  return true;
}

}  // namespace esker
