// How many rows have the same first parts of an index.
#include "sample.h"

#include "engine.h"

namespace esker {

namespace {

constexpr size_t kRunEntries = 64;
constexpr ulong kPairsMin = 50;
// Ranges are halved by their bytes, which splits keys unevenly; so many times is enough for any that differ.
constexpr int kDepthMax = 64;

// A key about halfway between two; empty if there is none that can be told.
Bytes halfway(View from, View to) {
  size_t same = 0;
  while (same < from.size() && same < to.size() && from[same] == to[same]) same++;
  auto number = [same](View key) {
    char bytes[8] = {};
    if (key.size() > same) memcpy(bytes, key.data() + same, std::min<size_t>(key.size() - same, sizeof bytes));
    return read_u64_be(bytes);
  };
  const uint64_t low = number(from), high = number(to);
  if (high < low || high - low < 2) return {};
  Bytes key(from.substr(0, same));
  append_u64_be(key, low + (high - low) / 2);
  return key;
}

}  // namespace

Sample::Sample(const Index &index) : index_(index), options_(esker_read_options_create()), changes_(index.parts().size()) {}

Sample::~Sample() {
  esker_iterator_free(iterator_);
  esker_read_options_free(options_);
}

esker_error *Sample::read(size_t places) {
  Bytes end(index_.prefix());
  make_successor(end);
  const esker_range range = {slice(index_.prefix()), slice(end)};
  uint64_t count;
  esker_row first, last;
  esker_error *error = esker_db_approximate_count(db, rows, range, &count);
  if (error == nullptr) error = esker_read_options_set_bounds(options_, range.start, range.end);
  if (error == nullptr) error = esker_iterator_create(db, rows, options_, &iterator_);
  if (error == nullptr) error = esker_iterator_seek_to_first(iterator_, &first);
  if (error != nullptr || first.key.data == nullptr) return error;
  const Bytes from(view(first.key));
  if (count <= places * kRunEntries) return read_run(from, 2 * places * kRunEntries);
  error = esker_iterator_seek_to_last(iterator_, &last);
  if (error != nullptr || last.key.data == nullptr) return error;
  const Bytes to(view(last.key));
  return spread(from, to, count, places, kDepthMax);
}

esker_error *Sample::spread(View from, View to, uint64_t count, size_t places, int depth) {
  if (places == 0) return nullptr;
  const Bytes middle = places == 1 || depth == 0 || count <= kRunEntries ? Bytes() : halfway(from, to);
  if (View(middle) <= from || View(middle) >= to) return read_run(from, kRunEntries);
  uint64_t left;
  if (esker_error *error = esker_db_approximate_count(db, rows, {slice(from), slice(middle)}, &left)) return error;
  left = std::min(left, count);
  const size_t left_places = static_cast<size_t>((places * left + count / 2) / count);
  if (esker_error *error = spread(from, middle, left, left_places, depth - 1)) return error;
  return spread(middle, to, count - left, places - left_places, depth - 1);
}

esker_error *Sample::read_run(View from, size_t entries) {
  esker_row row;
  Bytes before;
  esker_error *error = esker_iterator_seek(iterator_, slice(from), &row);
  for (size_t i = 0; error == nullptr && row.key.data != nullptr && i < entries; i++) {
    if (i > 0) compare(before, view(row.key));
    before.assign(view(row.key));
    error = esker_iterator_next(iterator_, &row);
  }
  return error;
}

void Sample::compare(View before, View now) {
  before.remove_prefix(index_.prefix().size());
  now.remove_prefix(index_.prefix().size());
  pairs_++;
  bool differs = false;
  for (size_t part = 0; part < changes_.size(); part++) {
    const View was = before, is = now;
    if (!differs && index_.parts()[part].skip(before) && index_.parts()[part].skip(now)) {
      differs = was.substr(0, was.size() - before.size()) != is.substr(0, is.size() - now.size());
    }
    changes_[part] += differs;
  }
}

std::vector<ulong> Sample::rows_per_key() const {
  std::vector<ulong> rows_per_key;
  if (pairs_ < kPairsMin) return rows_per_key;
  for (const ulong changes : changes_) rows_per_key.push_back((pairs_ + changes / 2) / std::max<ulong>(changes, 1));
  return rows_per_key;
}

}  // namespace esker
