// A row: the value under a table's primary key. A byte for the version, a bit for each nullable column (set: null), and the values of
// the columns in the order of the table, but for those that the key tells and those that are computed when they are read.
#pragma once

#include <vector>

#include "index.h"

namespace esker {

class RowFormat {
 public:
  RowFormat(const TABLE *table, const Index &primary);

  void make(Bytes &row, const uchar *record) const;
  // Puts the columns that are `wanted` (null: all) into a record. False if the bytes are none of a row.
  bool read(uchar *record, View row, const MY_BITMAP *wanted) const;
  // Bits of null columns and what else stands before a record's columns, as an empty record has them.
  void prepare(const TABLE *table, uchar *record) const;

 private:
  std::vector<Column> columns_;
  size_t null_bytes_;
};

}  // namespace esker
