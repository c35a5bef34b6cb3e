// Sorts entries.
#include "sorter.h"

#include <algorithm>

namespace esker {

namespace {

constexpr size_t kHeadBytes = 8;            // of an entry in the file: the sizes of key and value
constexpr size_t kReadBytesMin = 64 << 10;

uint32_t read_size(const char *from) { return uint4korr(reinterpret_cast<const uchar *>(from)); }

}  // namespace

Sorter::~Sorter() {
  if (file_ >= 0) my_close(file_, MYF(0));
}

int Sorter::add(View key, View value) {
  entries_.push_back({bytes_.size(), static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())});
  bytes_.append(key).append(value);
  return bytes_.size() + entries_.size() * sizeof(Entry) < memory_bytes_ ? 0 : write_run();
}

void Sorter::sort() {
  std::sort(entries_.begin(), entries_.end(), [this](const Entry &a, const Entry &b) { return key_of(a) < key_of(b); });
}

int Sorter::write_run() {
  // Nobody else knows the file, and it is gone when it is closed.
  if (file_ < 0) file_ = mysql_tmpfile("esker");
  if (file_ < 0) return HA_ERR_DISK_FULL;
  sort();
  Run run;
  run.at = file_bytes_;
  Bytes block;
  auto flush = [&] {
    if (my_pwrite(file_, reinterpret_cast<const uchar *>(block.data()), block.size(), file_bytes_, MYF(MY_NABP)) != 0) return false;
    file_bytes_ += block.size();
    block.clear();
    return true;
  };
  for (const Entry &entry : entries_) {
    uchar head[kHeadBytes];
    int4store(head, entry.key_size);
    int4store(head + 4, entry.value_size);
    append(block, head, sizeof head);
    block.append(bytes_, entry.start, entry.key_size + entry.value_size);
    if (block.size() >= (1 << 20) && !flush()) return HA_ERR_DISK_FULL;
  }
  if (!flush()) return HA_ERR_DISK_FULL;
  run.end = file_bytes_;
  runs_.push_back(std::move(run));
  bytes_.clear();
  entries_.clear();
  return 0;
}

// Has the next `size` bytes of a run at hand.
int Sorter::read_ahead(Run &run, size_t size) {
  if (run.bytes.size() - run.used >= size) return 0;
  run.bytes.erase(0, run.used);
  run.used = 0;
  const size_t had = run.bytes.size();
  const size_t share = std::max(kReadBytesMin, memory_bytes_ / runs_.size());
  const size_t more = std::min<my_off_t>(std::max(size, share) - had, run.end - run.at);
  run.bytes.resize(had + more);
  if (had + more < size) return HA_ERR_CRASHED;
  if (my_pread(file_, reinterpret_cast<uchar *>(&run.bytes[had]), more, run.at, MYF(MY_NABP)) != 0) return HA_ERR_CRASHED;
  run.at += more;
  return 0;
}

int Sorter::advance(Run &run, bool &has_entry) {
  has_entry = run.at < run.end || run.used < run.bytes.size();
  if (!has_entry) return 0;
  if (const int code = read_ahead(run, kHeadBytes)) return code;
  const size_t key_size = read_size(&run.bytes[run.used]), value_size = read_size(&run.bytes[run.used + 4]);
  if (const int code = read_ahead(run, kHeadBytes + key_size + value_size)) return code;
  run.key = View(run.bytes).substr(run.used + kHeadBytes, key_size);
  run.value = View(run.bytes).substr(run.used + kHeadBytes + key_size, value_size);
  run.used += kHeadBytes + key_size + value_size;
  return 0;
}

int Sorter::finish() {
  if (runs_.empty()) {
    sort();
    return 0;
  }
  if (!entries_.empty()) {
    if (const int code = write_run()) return code;
  }
  bytes_.shrink_to_fit();
  for (size_t i = 0; i < runs_.size(); i++) {
    bool has_entry;
    if (const int code = advance(runs_[i], has_entry)) return code;
    if (has_entry) heap_.push_back(i);
  }
  const auto later = [this](size_t a, size_t b) { return runs_[a].key > runs_[b].key; };
  std::make_heap(heap_.begin(), heap_.end(), later);
  return 0;
}

int Sorter::next(bool &has_entry, View &key, View &value) {
  if (runs_.empty()) {
    has_entry = at_ < entries_.size();
    if (!has_entry) return 0;
    const Entry &entry = entries_[at_++];
    key = key_of(entry);
    value = View(bytes_).substr(entry.start + entry.key_size, entry.value_size);
    return 0;
  }
  const auto later = [this](size_t a, size_t b) { return runs_[a].key > runs_[b].key; };
  if (is_top_used_) {
    // The entry that was given last is left only now.
    std::pop_heap(heap_.begin(), heap_.end(), later);
    if (const int code = advance(runs_[heap_.back()], has_entry)) return code;
    if (has_entry) std::push_heap(heap_.begin(), heap_.end(), later);
    else heap_.pop_back();
  }
  has_entry = !heap_.empty();
  is_top_used_ = has_entry;
  if (!has_entry) return 0;
  key = runs_[heap_.front()].key;
  value = runs_[heap_.front()].value;
  return 0;
}

}  // namespace esker
