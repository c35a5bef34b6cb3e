// Sorts entries of which there may be more than memory has room for: runs of them go into a temporary file, and are merged.
#pragma once

#include <vector>

#include "server.h"

namespace esker {

class Sorter {
 public:
  explicit Sorter(size_t memory_bytes) : memory_bytes_(memory_bytes) {}
  Sorter(const Sorter &) = delete;
  ~Sorter();

  // These return the server's codes.
  int add(View key, View value);
  // No more are added.
  int finish();
  // The next entry by its key, which stays until the next call; `has_entry` is false behind the last one.
  int next(bool &has_entry, View &key, View &value);

 private:
  struct Entry {
    size_t start;
    uint32_t key_size, value_size;
  };
  // A part of the file, read piece by piece.
  struct Run {
    my_off_t at, end;
    Bytes bytes;
    size_t used = 0;
    View key, value;
  };

  View key_of(const Entry &entry) const { return View(bytes_).substr(entry.start, entry.key_size); }
  void sort();
  int write_run();
  int read_ahead(Run &run, size_t size);
  int advance(Run &run, bool &has_entry);

  size_t memory_bytes_;
  Bytes bytes_;                    // of what is in memory: keys, each with its value
  std::vector<Entry> entries_;
  size_t at_ = 0;
  File file_ = -1;
  my_off_t file_bytes_ = 0;
  std::vector<Run> runs_;
  std::vector<size_t> heap_;       // runs that are not used up, that with the smallest key first
  bool is_top_used_ = false;
};

}  // namespace esker
