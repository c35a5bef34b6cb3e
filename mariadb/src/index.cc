// An index of a table.
#include "index.h"

#include <algorithm>

namespace esker {

namespace {

constexpr size_t kNumberBytes = 4;

void append_inverted(Bytes &out, View bytes) {
  for (const char byte : bytes) out.push_back(static_cast<char>(~byte));
}

}  // namespace

Index::Index(const TABLE *table, uint key_number, Kind kind, uint32_t number, const Index *primary)
    : key_number_(key_number), kind_(kind), primary_(primary) {
  append_u32_be(prefix_, number);
  if (kind == kHidden) return;
  const KEY &key = table->key_info[key_number];
  for (uint i = 0; i < key.user_defined_key_parts; i++) {
    parts_.emplace_back(table, key.key_part[i]);
    whole_ |= key_part_map{1} << i;
    has_whole_columns_ = has_whole_columns_ && !parts_.back().is_prefix();
  }
  if (is_primary()) return;

  has_whole_columns_ = has_whole_columns_ && primary->has_whole_columns_;
  std::vector<uint> seen;
  auto add_extra = [&](const KeyPart &part) {
    if (part.is_decodable() || part.is_prefix()) return;
    if (std::find(seen.begin(), seen.end(), part.field_index()) != seen.end()) return;
    seen.push_back(part.field_index());
    extras_.push_back(part.column());
  };
  for (const KeyPart &part : parts_) add_extra(part);
  for (const KeyPart &part : primary->parts_) {
    Suffix suffix = {&part, -1};
    for (size_t i = 0; i < parts_.size() && !part.is_prefix(); i++) {
      if (parts_[i].field_index() == part.field_index() && !parts_[i].is_prefix()) suffix.own = static_cast<int>(i);
    }
    suffix_is_primary_ = suffix_is_primary_ && suffix.own < 0;
    suffix_.push_back(suffix);
    add_extra(part);
  }
}

bool Index::has_locked_entries() const {
  if (is_primary()) return true;
  return kind_ == kUnique && std::none_of(parts_.begin(), parts_.end(), [](const KeyPart &part) { return part.column().is_nullable(); });
}

void Index::append_primary(Bytes &out, const uchar *record) const {
  bool is_null = false;
  for (const KeyPart &part : parts_) part.append_from_record(out, record, is_null);
}

bool Index::make_parts(Bytes &key, const uchar *record) const {
  bool is_null = false;
  key.assign(prefix_);
  for (const KeyPart &part : parts_) part.append_from_record(key, record, is_null);
  return is_null;
}

bool Index::make_entry(Bytes &key, Bytes &value, const uchar *record, View primary) const {
  const bool is_null = make_parts(key, record);
  if (kind_ == kSecondary || is_null) {
    if (suffix_is_primary_) {
      key.append(primary);
    } else {
      bool none = false;
      for (const Suffix &suffix : suffix_) {
        if (suffix.own < 0) suffix.part->append_from_record(key, record, none);
      }
    }
  }
  value.clear();
  if (kind_ == kUnique) {
    append_length(value, primary.size());
    value.append(primary);
  }
  for (const Column &column : extras_) {
    const bool null = column.is_null(record);
    if (column.is_nullable()) value.push_back(null ? 1 : 0);
    if (!null) column.append(value, record);
  }
  return is_null;
}

void Index::make_search(Bytes &key, size_t &stored_size, const uchar *search, key_part_map map) const {
  key.assign(prefix_);
  bool is_null = false;
  size_t i = 0;
  for (; i < parts_.size() && (map & 1) != 0; i++, map >>= 1) search = parts_[i].append_from_search(key, search, is_null);
  stored_size = key.size();
  for (const Suffix &suffix : suffix_) {
    if ((map & 1) == 0) break;
    if (suffix.own >= 0) continue;
    search = suffix.part->append_from_search(key, search, is_null);
    map >>= 1;
  }
  if (kind_ != kUnique || is_null) stored_size = key.size();
}

void Index::make_range(EntryRange &range, const key_range *min, const key_range *max) const {
  range.is_exact = true;
  range.lower.assign(prefix_);
  range.upper.assign(prefix_);
  make_successor(range.upper);
  range.logical_lower = range.lower;
  range.logical_upper = range.upper;
  size_t stored_size;
  if (min != nullptr) {
    make_search(range.logical_lower, stored_size, min->key, min->keypart_map);
    const bool is_cut = stored_size < range.logical_lower.size();
    range.lower.assign(range.logical_lower, 0, stored_size);
    if (min->flag == HA_READ_AFTER_KEY) {
      make_successor(range.logical_lower);
      if (!is_cut) range.lower = range.logical_lower;
    }
    range.is_exact = !is_cut;
  }
  if (max != nullptr) {
    make_search(range.logical_upper, stored_size, max->key, max->keypart_map);
    const bool is_cut = stored_size < range.logical_upper.size();
    range.upper.assign(range.logical_upper, 0, stored_size);
    if (max->flag != HA_READ_BEFORE_KEY) make_successor(range.logical_upper);
    if (is_cut) make_successor(range.upper);
    else range.upper = range.logical_upper;
    range.is_exact = range.is_exact && !is_cut;
  }
}

bool Index::is_in_range(const EntryRange &range, View key, View value) const {
  if (range.is_exact) return true;
  thread_local Bytes logical;
  return logical_key(logical, key, value) && logical >= range.logical_lower && logical < range.logical_upper;
}

bool Index::is_unique_key(View search) const {
  if (kind_ != kUnique) return false;
  search.remove_prefix(kNumberBytes);
  for (const KeyPart &part : parts_) {
    if (part.is_null(search) || !part.skip(search)) return false;
  }
  return search.empty();
}

bool Index::split(View key, std::vector<View> &own) const {
  own.clear();
  for (const KeyPart &part : parts_) {
    const View before = key;
    if (!part.skip(key)) return false;
    own.push_back(before.substr(0, before.size() - key.size()));
  }
  return true;
}

bool Index::primary_of(Bytes &primary, View key, View value) const {
  primary.clear();
  if (is_primary()) {
    primary.assign(key.substr(kNumberBytes));
    return true;
  }
  if (kind_ == kUnique) {
    uint64_t length;
    View bytes;
    if (!take_length(value, length) || !take(value, length, bytes)) return false;
    primary.assign(bytes);
    return true;
  }
  key.remove_prefix(kNumberBytes);
  if (suffix_is_primary_) {
    for (const KeyPart &part : parts_) {
      if (!part.skip(key)) return false;
    }
    primary.assign(key);
    return true;
  }
  thread_local std::vector<View> own;
  if (!split(key, own)) return false;
  for (const View &part : own) key.remove_prefix(part.size());
  for (const Suffix &suffix : suffix_) {
    if (suffix.own >= 0) {
      const View bytes = own[static_cast<size_t>(suffix.own)];
      if (parts_[static_cast<size_t>(suffix.own)].is_reverse() == suffix.part->is_reverse()) primary.append(bytes);
      else append_inverted(primary, bytes);
      continue;
    }
    const View before = key;
    if (!suffix.part->skip(key)) return false;
    primary.append(before.substr(0, before.size() - key.size()));
  }
  return true;
}

bool Index::logical_key(Bytes &logical, View key, View value) const {
  logical.assign(key);
  if (kind_ != kUnique) return true;
  View rest = key.substr(kNumberBytes);
  for (const KeyPart &part : parts_) {
    if (!part.skip(rest)) return false;
  }
  if (!rest.empty()) return true;
  thread_local Bytes primary;
  if (!primary_of(primary, key, value)) return false;
  if (suffix_is_primary_) {
    logical.append(primary);
    return true;
  }
  View left = primary;
  for (const Suffix &suffix : suffix_) {
    const View before = left;
    if (!suffix.part->skip(left)) return false;
    if (suffix.own < 0) logical.append(before.substr(0, before.size() - left.size()));
  }
  return true;
}

bool Index::read_primary(uchar *record, View primary) const {
  for (const KeyPart &part : parts_) {
    if (!(part.is_decodable() ? part.take_into(primary, record) : part.skip(primary))) return false;
  }
  return true;
}

bool Index::read_entry(uchar *record, View key, View value) const {
  View rest = key.substr(kNumberBytes);
  for (const KeyPart &part : parts_) {
    if (!(part.is_decodable() ? part.take_into(rest, record) : part.skip(rest))) return false;
  }
  if (kind_ == kUnique) {
    uint64_t length;
    View primary;
    if (!take_length(value, length) || !take(value, length, primary) || !primary_->read_primary(record, primary)) return false;
  } else {
    for (const Suffix &suffix : suffix_) {
      if (suffix.own >= 0) continue;
      if (!(suffix.part->is_decodable() ? suffix.part->take_into(rest, record) : suffix.part->skip(rest))) return false;
    }
  }
  for (const Column &column : extras_) {
    if (column.is_nullable()) {
      View null;
      if (!take(value, 1, null)) return false;
      column.set_null(record, null[0] != 0);
      if (null[0] != 0) continue;
    }
    if (!column.take_into(value, record)) return false;
  }
  return true;
}

}  // namespace esker
