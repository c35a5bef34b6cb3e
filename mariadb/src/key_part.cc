// A part of a key.
#include "key_part.h"

namespace esker {

namespace {

thread_local Bytes scratch;

void invert(Bytes &bytes, size_t from) {
  for (size_t at = from; at < bytes.size(); at++) bytes[at] = static_cast<char>(~bytes[at]);
}

}  // namespace

KeyPart::KeyPart(const TABLE *table, const KEY_PART_INFO &part)
    : column_(table, table->field[part.fieldnr - 1]),
      field_(table->field[part.fieldnr - 1]),
      charset_(field_->charset()),
      kind_(kSortString),
      reverse_((part.key_part_flag & HA_REVERSE_SORT) != 0),
      decodable_(false),
      prefix_((field_->flags & BLOB_FLAG) != 0 || part.length < field_->key_length()),
      varying_search_((part.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART)) != 0),
      length_(part.length),
      encoded_size_(part.length),
      chars_max_(part.length / charset_->mbmaxlen),
      space_{},
      space_size_(0) {
  choose_kind(field_);
  decodable_ = decodable_ && !prefix_;
}

void KeyPart::choose_kind(Field *field) {
  const bool is_unsigned = (field->flags & UNSIGNED_FLAG) != 0;
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      kind_ = is_unsigned ? kUnsigned : kSigned;
      decodable_ = true;
      break;
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
      kind_ = kUnsigned;
      decodable_ = true;
      break;
    // A negative zero is the same key as zero, so the value is stored beside it.
    case MYSQL_TYPE_FLOAT: kind_ = kFloat; break;
    case MYSQL_TYPE_DOUBLE: kind_ = kDouble; break;
    case MYSQL_TYPE_NEWDECIMAL:
    case MYSQL_TYPE_TIMESTAMP2:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_TIME2:
    case MYSQL_TYPE_BIT:
      kind_ = kImage;
      decodable_ = true;
      break;
    case MYSQL_TYPE_STRING:
      if (field->type_handler() != &type_handler_string) {
        encoded_size_ = field->sort_length();
      } else if (charset_ == &my_charset_bin) {
        kind_ = kImage;
        decodable_ = true;
      } else {
        choose_text_kind();
      }
      break;
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_GEOMETRY:
      if (charset_ == &my_charset_bin) {
        kind_ = kGroups;
        decodable_ = true;
      } else {
        choose_text_kind();
      }
      break;
    default: encoded_size_ = field->sort_length();
  }
}

void KeyPart::choose_text_kind() {
  // Weights of several levels follow each other, so they compare rightly only where each level has a fixed length.
  if (charset_->levels_for_order > 1 || (charset_->state & MY_CS_STRNXFRM_BAD_NWEIGHTS) != 0) {
    kind_ = kFixedWeights;
    encoded_size_ = static_cast<uint>(charset_->strnxfrmlen(length_));
    return;
  }
  uchar space[8];
  const int space_bytes = charset_->cset->wc_mb(charset_, ' ', space, space + sizeof space);
  space_size_ = static_cast<uint>(charset_->strnxfrm(reinterpret_cast<char *>(space_), sizeof space_, 1,
                                                     reinterpret_cast<const char *>(space),
                                                     static_cast<size_t>(std::max(space_bytes, 1)), 0));
  kind_ = (charset_->state & MY_CS_NOPAD) != 0 ? kGroups : kWeights;
}

void KeyPart::append_from_record(Bytes &out, const uchar *record, bool &is_null) const {
  const size_t start = out.size();
  const bool null = column_.is_null(record);
  if (column_.is_nullable()) out.push_back(null ? 0 : 1);
  if (null) {
    is_null = true;
  } else {
    View value = column_.value(record);
    if (prefix_) {
      const char *end = value.data() + value.size();
      const size_t bytes =
          charset_->mbmaxlen > 1 ? charset_->charpos(value.data(), end, chars_max_) : static_cast<size_t>(length_);
      value = value.substr(0, std::min(bytes, value.size()));
    }
    append_value(out, value);
  }
  if (reverse_) invert(out, start);
}

const uchar *KeyPart::append_from_search(Bytes &out, const uchar *key, bool &is_null) const {
  const size_t start = out.size();
  bool null = false;
  if (column_.is_nullable()) {
    null = *key++ != 0;
    out.push_back(null ? 0 : 1);
  }
  size_t length = length_;
  if (varying_search_) {
    length = uint2korr(key);
    key += HA_KEY_BLOB_LENGTH;
  }
  if (null) is_null = true;
  else append_value(out, {reinterpret_cast<const char *>(key), length});
  if (reverse_) invert(out, start);
  return key + length_;
}

void KeyPart::append_value(Bytes &out, View value) const {
  const uchar *from = reinterpret_cast<const uchar *>(value.data());
  switch (kind_) {
    case kSigned: append_integer(out, from, value.size(), true); return;
    case kUnsigned: append_integer(out, from, value.size(), false); return;
    case kFloat: append_float(out, from); return;
    case kDouble: append_double(out, from); return;
    case kImage: out.append(value); return;
    case kGroups:
      if (charset_ == &my_charset_bin) {
        append_groups(out, value);
        return;
      }
      break;
    case kWeights: break;
    case kFixedWeights: {
      const size_t start = out.size();
      out.resize(start + encoded_size_);
      charset_->strnxfrm(reinterpret_cast<uchar *>(&out[start]), encoded_size_, chars_max_, from, value.size(),
                         MY_STRXFRM_PAD_WITH_SPACE | MY_STRXFRM_PAD_TO_MAXLEN);
      return;
    }
    case kSortString: {
      // The field looks at its own place; the statement that has the table is the only one that uses it.
      const size_t start = out.size();
      out.resize(start + encoded_size_);
      uchar *place = field_->ptr;
      field_->ptr = const_cast<uchar *>(from);
      field_->sort_string(reinterpret_cast<uchar *>(&out[start]), encoded_size_);
      field_->ptr = place;
      return;
    }
  }
  // A CHAR in a search key is filled with spaces.
  if (!varying_search_) value = value.substr(0, charset_->lengthsp(value.data(), value.size()));
  // The charset takes a length for one of characters of the longest kind.
  scratch.resize(charset_->strnxfrmlen(value.size() * charset_->mbmaxlen) + 8);
  const size_t size = charset_->strnxfrm(scratch.data(), scratch.size(), static_cast<uint>(value.size()), value.data(),
                                         value.size(), 0);
  const View weights(scratch.data(), size);
  if (kind_ == kGroups) append_groups(out, weights);
  else append_padded_weights(out, weights, {reinterpret_cast<const char *>(space_), space_size_});
}

size_t KeyPart::encoded_size_max() const {
  if (kind_ != kGroups && kind_ != kWeights) return 1 + encoded_size_;
  // A group of at least eight bytes has one more, and the last one may hold nothing.
  const size_t bytes = charset_ == &my_charset_bin ? length_ : charset_->strnxfrmlen(length_);
  return 1 + (bytes / 8 + 1) * 10;
}

bool KeyPart::skip_value(View &in) const {
  View taken;
  switch (kind_) {
    case kGroups:
      return skip_groups(in);
    case kWeights: return skip_padded_weights(in, space_size_);
    default: return take(in, encoded_size_, taken);
  }
}

bool KeyPart::is_null(View in) const {
  return column_.is_nullable() && !in.empty() && in.front() == static_cast<char>(reverse_ ? 0xff : 0);
}

bool KeyPart::skip(View &in) const {
  if (reverse_) {
    Bytes straight(in);
    invert(straight, 0);
    View rest = straight;
    View null;
    if (column_.is_nullable()) {
      if (!take(rest, 1, null)) return false;
      if (null[0] == 0) {
        in.remove_prefix(1);
        return true;
      }
    }
    if (!skip_value(rest)) return false;
    in.remove_prefix(straight.size() - rest.size());
    return true;
  }
  if (column_.is_nullable()) {
    View null;
    if (!take(in, 1, null)) return false;
    if (null[0] == 0) return true;
  }
  return skip_value(in);
}

bool KeyPart::take_into(View &in, uchar *record) const {
  const View before = in;
  if (!skip(in)) return false;
  View part = before.substr(0, before.size() - in.size());
  Bytes straight;
  if (reverse_) {
    straight = part;
    invert(straight, 0);
    part = straight;
  }
  if (column_.is_nullable()) {
    const bool null = part[0] == 0;
    column_.set_null(record, null);
    if (null) return true;
    part.remove_prefix(1);
  }
  switch (kind_) {
    case kSigned: read_integer(part, column_.place(record), true); return true;
    case kUnsigned: read_integer(part, column_.place(record), false); return true;
    case kImage: column_.set_value(record, part); return true;
    case kGroups: {
      scratch.clear();
      if (!take_groups(part, scratch)) return false;
      column_.set_value(record, scratch);
      return true;
    }
    default: return false;
  }
}

}  // namespace esker
