// Rows that are looked up together.
#pragma once

#include <vector>

#include "index.h"

namespace esker {

// Primary keys with the ranges that they were found in, in the order of the ranges, and their rows once they are fetched. Its size
// grows from batch to batch, so that a query with a LIMIT does not read much that nobody wants.
class Batch {
 public:
  Batch() : values_(esker_values_create()) {}
  Batch(const Batch &) = delete;
  ~Batch() { esker_values_free(values_); }

  void begin() {
    clear();
    room_ = kRoomFirst;
    has_range = false;
    is_at_end = false;
  }
  void clear() {
    keys_.clear();
    places_.clear();
    at_ = 0;
  }

  bool is_full() const { return places_.size() >= room_; }
  bool is_used_up() const { return at_ == places_.size(); }
  void grow() { room_ = std::min(room_ * 2, kRoomMax); }
  // A primary key with the number of its index before it.
  void add(View prefix, View primary, range_id_t range) {
    places_.push_back({keys_.size(), prefix.size() + primary.size(), range});
    keys_.append(prefix).append(primary);
  }
  const std::vector<esker_slice> &keys();
  esker_values *values() { return values_; }
  void fetched() { rows_ = esker_values_items(values_, nullptr); }
  // The next row, with its key and range; data is null if it is gone.
  esker_slice take(View &key, range_id_t &range);

  EntryRange entries;           // of the range that is being looked through
  KEY_MULTI_RANGE range;
  bool has_range = false;       // the cursor is in it
  bool is_at_end = false;       // there are no more ranges

 private:
  static constexpr size_t kRoomFirst = 8, kRoomMax = 256;

  struct Place {
    size_t start, size;
    range_id_t range;
  };

  Bytes keys_;
  std::vector<Place> places_;
  std::vector<esker_slice> slices_;
  esker_values *values_;
  const esker_slice *rows_ = nullptr;
  size_t at_ = 0, room_ = kRoomFirst;
};

}  // namespace esker
