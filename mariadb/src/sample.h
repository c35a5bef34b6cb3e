// How many rows have the same first parts of an index, estimated from entries all over it.
#pragma once

#include "index.h"

namespace esker {

class Sample {
 public:
  explicit Sample(const Index &index);
  Sample(const Sample &) = delete;
  ~Sample();

  // Reads entries at about so many places, evenly spread over the entries; all of an index that has few.
  esker_error *read(size_t places);
  // For each number of parts, the entries that have the same ones; empty if there are too few to tell.
  std::vector<ulong> rows_per_key() const;

 private:
  esker_error *spread(View from, View to, uint64_t count, size_t places, int depth);
  esker_error *read_run(View from, size_t entries);
  void compare(View before, View now);

  const Index &index_;
  esker_read_options *options_;
  esker_iterator *iterator_ = nullptr;
  std::vector<ulong> changes_;       // between neighbours, by number of parts
  ulong pairs_ = 0;                  // of neighbours
};

}  // namespace esker
