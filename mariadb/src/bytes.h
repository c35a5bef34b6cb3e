// Encodings of single values whose bytes compare as the values do, and helpers on byte strings. Nothing of the server is needed here.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace esker {

using Bytes = std::string;          // a buffer that is used again and again
using View = std::string_view;      // bytes of somebody else

inline void append(Bytes &out, const void *data, size_t size) { out.append(static_cast<const char *>(data), size); }

inline void append_u32_be(Bytes &out, uint32_t value) {
  value = __builtin_bswap32(value);
  append(out, &value, sizeof value);
}

inline void append_u64_be(Bytes &out, uint64_t value) {
  value = __builtin_bswap64(value);
  append(out, &value, sizeof value);
}

inline uint32_t read_u32_be(const char *from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap32(value);
}

inline uint64_t read_u64_be(const char *from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap64(value);
}

// Lengths: seven bits a byte, the lowest first.
void append_length(Bytes &out, uint64_t length);

// Takes a length off the front; false if there is no whole one.
bool take_length(View &in, uint64_t &length);

// Takes `size` bytes off the front; false if there are fewer.
inline bool take(View &in, size_t size, View &taken) {
  if (in.size() < size) return false;
  taken = in.substr(0, size);
  in.remove_prefix(size);
  return true;
}

inline bool starts_with(View bytes, View prefix) {
  return bytes.size() >= prefix.size() && memcmp(bytes.data(), prefix.data(), prefix.size()) == 0;
}

// Makes `bytes` the first byte string behind all that begin with it. False if there is none (they are all 0xff).
bool make_successor(Bytes &bytes);

// A little-endian integer of `size` bytes, as records have them.
void append_integer(Bytes &out, const uint8_t *from, size_t size, bool is_signed);
void read_integer(View from, uint8_t *to, bool is_signed);

// IEEE numbers as records have them; both zeros are one key.
void append_float(Bytes &out, const uint8_t *from);
void append_double(Bytes &out, const uint8_t *from);

// Bytes of any length such that no encoding is the start of another: groups of eight, and behind each how many of it count, nine if
// others follow.
void append_groups(Bytes &out, View bytes);
bool skip_groups(View &in);
bool take_groups(View &in, Bytes &bytes);

// The weights of a string that compares as if spaces followed it for ever; `space` is the weight of one (1 to 8 bytes). Groups again, each
// padded with spaces; the byte behind it says how what follows compares with spaces: 1 less, 2 nothing follows, 3 more.
void append_padded_weights(Bytes &out, View weights, View space);
bool skip_padded_weights(View &in, size_t space_size);

}  // namespace esker
