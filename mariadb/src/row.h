// A row: the value under a table's primary key. A byte that counts how often columns had been added in place when it was written, a bit for
// each nullable column (set: null), and the values of the columns in the order of the table, but for those that the key tells and those
// that are computed when they are read. Columns that were added since have the values that they were added with.
#pragma once

#include <vector>

#include "dictionary.h"
#include "index.h"

namespace esker {

class RowFormat {
 public:
  RowFormat(const TABLE *table, const Index &primary, const TableEntry &entry);

  // What the dictionary notes when a table in this format gets the columns that the format `wider` has behind its own. Nothing, if
  // there were too many such changes before, or columns differ.
  bool note_added(const RowFormat &wider, const uchar *defaults, TableEntry &entry) const;

  void make(Bytes &row, const uchar *record) const;
  // Puts the columns that are `wanted` (null: all) into a record. False if the bytes are none of a row.
  bool read(uchar *record, View row, const MY_BITMAP *wanted) const;
  // Bits of null columns and what else stands before a record's columns, as an empty record has them.
  void prepare(const TABLE *table, uchar *record) const;

 private:
  struct Width {
    size_t columns, null_bytes;
  };

  size_t null_bytes(size_t columns) const;
  bool read_added(uchar *record, size_t from, const MY_BITMAP *wanted) const;

  std::vector<Column> columns_;
  std::vector<Width> widths_;       // of rows by their first byte; the last one is that of rows from now on
  std::vector<Bytes> added_;        // values of the columns behind the first width
};

}  // namespace esker
