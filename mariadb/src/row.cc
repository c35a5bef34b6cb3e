// A row.
#include "row.h"

namespace esker {

RowFormat::RowFormat(const TABLE *table, const Index &primary, const TableEntry &entry) {
  std::vector<bool> in_key(table->s->fields);
  for (const KeyPart &part : primary.parts()) {
    if (part.is_decodable()) in_key[part.field_index()] = true;
  }
  for (Field **field = table->field; *field != nullptr; field++) {
    if ((*field)->stored_in_db() && !in_key[(*field)->field_index]) columns_.emplace_back(table, *field);
  }
  for (const AddedColumns &added : entry.added) {
    widths_.push_back({added.columns_before, null_bytes(added.columns_before)});
    added_.insert(added_.end(), added.values.begin(), added.values.end());
  }
  widths_.push_back({columns_.size(), null_bytes(columns_.size())});
}

size_t RowFormat::null_bytes(size_t columns) const {
  size_t nullable = 0;
  for (size_t i = 0; i < columns && i < columns_.size(); i++) nullable += columns_[i].is_nullable();
  return (nullable + 7) / 8;
}

bool RowFormat::note_added(const RowFormat &wider, const uchar *defaults, TableEntry &entry) const {
  constexpr size_t kChangesMax = 255;
  if (widths_.size() > kChangesMax || wider.columns_.size() < columns_.size()) return false;
  AddedColumns added;
  added.columns_before = columns_.size();
  for (size_t i = columns_.size(); i < wider.columns_.size(); i++) {
    const Column &column = wider.columns_[i];
    Bytes value(1, column.is_null(defaults) ? 1 : 0);
    if (!column.is_null(defaults)) column.append(value, defaults);
    added.values.push_back(std::move(value));
  }
  entry.added.push_back(std::move(added));
  return true;
}

void RowFormat::prepare(const TABLE *table, uchar *record) const {
  memcpy(record, table->s->default_values, table->s->null_bytes);
}

void RowFormat::make(Bytes &row, const uchar *record) const {
  row.clear();
  row.push_back(static_cast<char>(widths_.size() - 1));
  row.append(widths_.back().null_bytes, '\0');
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
  if (row.empty() || static_cast<uchar>(row[0]) >= widths_.size()) return false;
  const Width &width = widths_[static_cast<uchar>(row[0])];
  View head;
  if (width.columns > columns_.size() || !take(row, 1 + width.null_bytes, head)) return false;
  size_t bit = 0;
  for (size_t i = 0; i < width.columns; i++) {
    const Column &column = columns_[i];
    if (column.is_nullable()) {
      const size_t at = bit++;
      const bool null = (head[1 + at / 8] >> at % 8 & 1) != 0;
      column.set_null(record, null);
      if (null) continue;
    }
    const bool keep = wanted == nullptr || bitmap_is_set(wanted, column.field_index());
    if (!(keep ? column.take_into(row, record) : column.skip(row))) return false;
  }
  return width.columns == columns_.size() || read_added(record, width.columns, wanted);
}

// Columns that a row has not, as it was written before they were added.
bool RowFormat::read_added(uchar *record, size_t from, const MY_BITMAP *wanted) const {
  for (size_t i = from; i < columns_.size(); i++) {
    const Column &column = columns_[i];
    if (i - widths_[0].columns >= added_.size()) return false;
    View value = added_[i - widths_[0].columns], null;
    if (!take(value, 1, null)) return false;
    column.set_null(record, null[0] != 0);
    if (null[0] != 0 || (wanted != nullptr && !bitmap_is_set(wanted, column.field_index()))) continue;
    if (!column.take_into(value, record)) return false;
  }
  return true;
}

}  // namespace esker
