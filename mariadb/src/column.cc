// A column as it is stored.
#include "column.h"

namespace esker {

namespace {

size_t read_le(const uchar *from, uint bytes) {
  size_t value = 0;
  memcpy(&value, from, bytes);
  return value;
}

void write_le(uchar *to, size_t value, uint bytes) { memcpy(to, &value, bytes); }

bool is_varying(const Field *field) {
  return field->real_type() == MYSQL_TYPE_VARCHAR || field->real_type() == MYSQL_TYPE_VARCHAR_COMPRESSED;
}

}  // namespace

Column::Column(const TABLE *table, Field *field)
    : default_(table->s->default_values + (field->ptr - table->record[0])),
      offset_(static_cast<uint>(field->ptr - table->record[0])),
      null_offset_(field->null_ptr == nullptr ? 0 : static_cast<uint>(field->null_ptr - table->record[0])),
      size_(field->pack_length()),
      field_index_(field->field_index),
      null_bit_(field->null_ptr == nullptr ? 0 : field->null_bit),
      shape_(kFixed),
      length_bytes_(0),
      charset_(field->charset()) {
  if ((field->flags & BLOB_FLAG) != 0) {
    shape_ = kBlob;
    length_bytes_ = static_cast<uchar>(static_cast<Field_blob *>(field)->pack_length_no_ptr());
  } else if (is_varying(field)) {
    shape_ = kVariable;
    length_bytes_ = static_cast<uchar>(static_cast<Field_varstring *>(field)->length_bytes);
  } else if (field->type_handler() == &type_handler_string && charset_ != &my_charset_bin && charset_->mbminlen == 1) {
    shape_ = kFilled;
  }
}

View Column::value(const uchar *record) const {
  const uchar *from = record + offset_;
  switch (shape_) {
    case kFixed: return {reinterpret_cast<const char *>(from), size_};
    case kFilled: {
      size_t size = size_;
      while (size > 0 && from[size - 1] == ' ') size--;
      return {reinterpret_cast<const char *>(from), size};
    }
    case kVariable: return {reinterpret_cast<const char *>(from + length_bytes_), read_le(from, length_bytes_)};
    case kBlob: break;
  }
  const char *data;
  memcpy(&data, from + length_bytes_, sizeof data);
  return {data, read_le(from, length_bytes_)};
}

void Column::append(Bytes &out, const uchar *record) const {
  const View bytes = value(record);
  if (shape_ != kFixed) append_length(out, bytes.size());
  out.append(bytes);
}

void Column::set_value(uchar *record, View value) const {
  uchar *to = record + offset_;
  if (shape_ == kVariable) {
    write_le(to, value.size(), length_bytes_);
    to += length_bytes_;
  }
  memcpy(to, value.data(), value.size());
  if (shape_ == kFilled) memset(to + value.size(), ' ', size_ - value.size());
}

bool Column::take_into(View &in, uchar *record) const {
  View bytes;
  uint64_t length = size_;
  if (shape_ != kFixed && !take_length(in, length)) return false;
  if (!take(in, length, bytes)) return false;
  if (shape_ != kBlob) {
    if (length > size_ - length_bytes_ * (shape_ == kVariable)) return false;
    set_value(record, bytes);
    return true;
  }
  uchar *to = record + offset_;
  const char *data = bytes.data();
  write_le(to, length, length_bytes_);
  memcpy(to + length_bytes_, &data, sizeof data);
  return true;
}

bool Column::skip(View &in) const {
  uint64_t length = size_;
  View bytes;
  if (shape_ != kFixed && !take_length(in, length)) return false;
  return take(in, length, bytes);
}

}  // namespace esker
