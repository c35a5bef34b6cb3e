// A column as it is stored: the bytes of its value in the server's record, without what the record has for alignment and room.
#pragma once

#include "server.h"

namespace esker {

class Column {
 public:
  Column(const TABLE *table, Field *field);

  uint field_index() const { return field_index_; }
  bool is_nullable() const { return null_bit_ != 0; }
  bool is_null(const uchar *record) const { return null_bit_ != 0 && (record[null_offset_] & null_bit_) != 0; }
  // The server compares the bytes of columns that are null as well, so they are the same in all records.
  void set_null(uchar *record, bool is_null) const {
    if (null_bit_ == 0) return;
    if (is_null) {
      record[null_offset_] |= null_bit_;
      memcpy(record + offset_, default_, size_);
    } else {
      record[null_offset_] &= static_cast<uchar>(~null_bit_);
    }
  }

  // The bytes of the value in a record, without those that a CHAR is filled up with.
  View value(const uchar *record) const;

  // The value, so that it can be taken off the front again. Not null.
  void append(Bytes &out, const uchar *record) const;
  // Takes it off, into a record; false if there is no whole one. A BLOB's bytes are not copied: the record points to them.
  bool take_into(View &in, uchar *record) const;
  bool skip(View &in) const;

  // Puts a value of a fixed number of bytes, or of a VARCHAR, into a record.
  void set_value(uchar *record, View value) const;
  uchar *place(uchar *record) const { return record + offset_; }

 private:
  enum Shape : uint8_t { kFixed, kFilled, kVariable, kBlob };

  const uchar *default_;
  uint offset_, null_offset_, size_;
  uint16 field_index_;
  uchar null_bit_;
  Shape shape_;
  uchar length_bytes_;
  CHARSET_INFO *charset_;
};

}  // namespace esker
