// A part of a key: how the values of a column become bytes that compare as the column's type and collation say.
//
// A nullable part begins with a byte, 0 for null and 1 for a value. Parts of descending keys have all bits inverted. No part's encoding
// is the start of another one of its kind, so keys of several parts compare part by part.
#pragma once

#include "column.h"

namespace esker {

class KeyPart {
 public:
  KeyPart(const TABLE *table, const KEY_PART_INFO &part);

  uint field_index() const { return column_.field_index(); }
  const Column &column() const { return column_; }
  // Whether the column's value can be made of the key: else it is stored beside it, where it is to be read.
  bool is_decodable() const { return decodable_; }
  // Whether only the beginning of a value is in the key.
  bool is_prefix() const { return prefix_; }
  bool is_reverse() const { return reverse_; }
  // Of any value, with the byte for null.
  size_t encoded_size_max() const;

  void append_from_record(Bytes &out, const uchar *record, bool &is_null) const;
  // From the server's search key; the place behind the part in it is returned.
  const uchar *append_from_search(Bytes &out, const uchar *key, bool &is_null) const;
  bool skip(View &in) const;
  // Whether the part that comes first in these bytes is null.
  bool is_null(View in) const;
  // Takes the part off the front; the value goes into the record. Only for what is decodable.
  bool take_into(View &in, uchar *record) const;

 private:
  enum Kind : uint8_t { kSigned, kUnsigned, kFloat, kDouble, kImage, kGroups, kWeights, kFixedWeights, kSortString };

  void choose_kind(Field *field);
  void choose_text_kind();
  void append_value(Bytes &out, View value) const;
  bool skip_value(View &in) const;

  Column column_;
  Field *field_;
  CHARSET_INFO *charset_;
  Kind kind_;
  bool reverse_, decodable_, prefix_, varying_search_;
  uint16 length_;        // of the part in a search key, without its null byte and length
  uint encoded_size_;    // where it is fixed
  uint chars_max_;
  uchar space_[8];       // the weight of a space
  uint space_size_;
};

}  // namespace esker
