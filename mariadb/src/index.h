// An index of a table: how its entries are made of records, and what can be read from them.
//
//   index          key                                                       value
//   primary        number, parts                                             row
//   hidden         number, row number (8 bytes)                              row
//   secondary      number, parts, suffix                                     extras
//   unique         number, parts            without a null in the parts      length of primary key, primary key, extras
//                  number, parts, suffix    with one                         the same
//
// The suffix is the parts of the primary key whose columns are not among the index's own. Extras are the columns of both that the
// bytes of the key don't tell. So that unique keys need one look-up of a key, and take a lock of that key, their suffix is left
// out; the logical key, by which the server searches, has it. Where rows expire, all values end with a time (ttl.h).
#pragma once

#include <vector>

#include "key_part.h"

namespace esker {

constexpr uint kHiddenKey = MAX_KEY;

// The entries from one key on, up to another without it, both as stored. Where the search named columns of a suffix that the stored
// keys of a unique index don't have, entries at the ends lie in it by their logical keys.
struct EntryRange {
  Bytes lower, upper;
  Bytes logical_lower, logical_upper;
  bool is_exact;                     // the stored keys tell all

  bool is_empty() const { return lower >= upper; }
};

class Index {
 public:
  enum Kind : uint8_t { kPrimary, kHidden, kSecondary, kUnique };

  // `primary` is null for a primary key itself; a hidden one has `key_number` kHiddenKey.
  Index(const TABLE *table, uint key_number, Kind kind, uint32_t number, const Index *primary);

  uint key_number() const { return key_number_; }
  Kind kind() const { return kind_; }
  // The sequence number of the database when it came into being: what was read before has nothing of it.
  uint64_t since() const { return since_; }
  void set_since(uint64_t since) { since_ = since; }
  bool is_primary() const { return kind_ <= kHidden; }
  // Whether entries tell the whole of each column of the index and of the primary key.
  bool has_whole_columns() const { return has_whole_columns_; }
  // Whether whoever puts an entry in, or takes one out, locks its key.
  bool has_locked_entries() const;
  View prefix() const { return prefix_; }
  const std::vector<KeyPart> &parts() const { return parts_; }

  // Keys of the primary key, without number: what a position is, and what secondary entries refer to.
  void append_primary(Bytes &out, const uchar *record) const;

  // The stored entry of a record whose primary key is `primary`. Returns whether a part is null.
  bool make_entry(Bytes &key, Bytes &value, const uchar *record, View primary) const;
  // The parts only, with number.
  bool make_parts(Bytes &key, const uchar *record) const;

  // A search key of the server for the parts in `map`. `stored_size` is where the key of a unique entry ends in it.
  void make_search(Bytes &key, size_t &stored_size, const uchar *search, key_part_map map) const;
  // The range between two search keys of the server; either may be null.
  void make_range(EntryRange &range, const key_range *min, const key_range *max) const;
  // Whether an entry between the stored ends of a range is in it.
  bool is_in_range(const EntryRange &range, View key, View value) const;
  // Whether a search for all parts names one entry at most: a unique key without a null.
  bool is_unique_key(View search) const;
  bool is_whole_key(key_part_map map) const { return (map & whole_) == whole_; }

  // What an entry tells; these return false if the bytes are not what make_entry makes.
  bool primary_of(Bytes &primary, View key, View value) const;
  bool logical_key(Bytes &logical, View key, View value) const;
  // Puts all columns into a record that the entry has.
  bool read_entry(uchar *record, View key, View value) const;
  // Puts the columns into a record that can be made of the primary key.
  bool read_primary(uchar *record, View primary) const;

 private:
  struct Suffix {
    const KeyPart *part;
    int own;               // the index's own part of the same column; -1 if there is none
  };

  bool split(View key, std::vector<View> &own) const;

  uint key_number_;
  Kind kind_;
  const Index *primary_;
  Bytes prefix_;
  uint64_t since_ = 0;
  key_part_map whole_ = 0;
  std::vector<KeyPart> parts_;
  std::vector<Suffix> suffix_;
  bool suffix_is_primary_ = true;   // no column of the primary key is among the index's own
  bool has_whole_columns_ = true;
  std::vector<Column> extras_;
};

}  // namespace esker
