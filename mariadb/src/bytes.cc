// Encodings of single values whose bytes compare as the values do.
#include "bytes.h"

#include <algorithm>

namespace esker {

namespace {

constexpr size_t kGroup = 8;
constexpr uint8_t kMore = kGroup + 1;

// Groups hold whole weights, which are 1, 2, 3, 4 or 8 bytes long.
size_t weight_group(size_t space_size) { return space_size == 3 ? 9 : std::max(kGroup, space_size); }

enum Follows : uint8_t { kLess = 1, kNothing = 2, kGreater = 3 };

// How `weights` compare with spaces for ever.
Follows against_spaces(View weights, View space) {
  for (size_t at = 0; at < weights.size(); at += space.size()) {
    const size_t size = std::min(space.size(), weights.size() - at);
    const int order = memcmp(weights.data() + at, space.data(), size);
    if (order != 0) return order < 0 ? kLess : kGreater;
  }
  return kNothing;
}

}  // namespace

void append_length(Bytes &out, uint64_t length) {
  for (; length >= 0x80; length >>= 7) out.push_back(static_cast<char>(length | 0x80));
  out.push_back(static_cast<char>(length));
}

bool take_length(View &in, uint64_t &length) {
  length = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool make_successor(Bytes &bytes) {
  while (!bytes.empty()) {
    const uint8_t last = static_cast<uint8_t>(bytes.back());
    if (last != 0xff) {
      bytes.back() = static_cast<char>(last + 1);
      return true;
    }
    bytes.pop_back();
  }
  return false;
}

void append_integer(Bytes &out, const uint8_t *from, size_t size, bool is_signed) {
  char image[8] = {};
  for (size_t i = 0; i < size; i++) image[i] = static_cast<char>(from[size - 1 - i]);
  if (is_signed) image[0] ^= static_cast<char>(0x80);
  append(out, image, size);
}

void read_integer(View from, uint8_t *to, bool is_signed) {
  const size_t size = from.size();
  for (size_t i = 0; i < size; i++) to[size - 1 - i] = static_cast<uint8_t>(from[i]);
  if (is_signed) to[size - 1] ^= 0x80;
}

void append_float(Bytes &out, const uint8_t *from) {
  uint32_t bits;
  memcpy(&bits, from, sizeof bits);
  if (bits == 0x80000000u) bits = 0;
  append_u32_be(out, bits & 0x80000000u ? ~bits : bits | 0x80000000u);
}

void append_double(Bytes &out, const uint8_t *from) {
  constexpr uint64_t sign = uint64_t{1} << 63;
  uint64_t bits;
  memcpy(&bits, from, sizeof bits);
  if (bits == sign) bits = 0;
  append_u64_be(out, bits & sign ? ~bits : bits | sign);
}

void append_groups(Bytes &out, View bytes) {
  for (;;) {
    const size_t size = std::min(bytes.size(), kGroup);
    append(out, bytes.data(), size);
    out.append(kGroup - size, '\0');
    bytes.remove_prefix(size);
    if (bytes.empty()) {
      out.push_back(static_cast<char>(size));
      return;
    }
    out.push_back(static_cast<char>(kMore));
  }
}

bool skip_groups(View &in) {
  View group;
  do {
    if (!take(in, kGroup + 1, group)) return false;
  } while (group.back() == kMore);
  return true;
}

bool take_groups(View &in, Bytes &bytes) {
  View group;
  do {
    if (!take(in, kGroup + 1, group) || static_cast<uint8_t>(group.back()) > kMore) return false;
    append(bytes, group.data(), std::min<size_t>(static_cast<uint8_t>(group.back()), kGroup));
  } while (group.back() == kMore);
  return true;
}

void append_padded_weights(Bytes &out, View weights, View space) {
  while (weights.size() >= space.size() &&
         memcmp(weights.data() + weights.size() - space.size(), space.data(), space.size()) == 0) {
    weights.remove_suffix(space.size());
  }
  const size_t group = weight_group(space.size());
  for (;;) {
    const size_t size = std::min(weights.size(), group);
    append(out, weights.data(), size);
    for (size_t at = size; at < group; at++) out.push_back(space[at % space.size()]);
    weights.remove_prefix(size);
    const Follows follows = against_spaces(weights, space);
    out.push_back(static_cast<char>(follows));
    if (follows == kNothing) return;
  }
}

bool skip_padded_weights(View &in, size_t space_size) {
  View group;
  do {
    if (!take(in, weight_group(space_size) + 1, group)) return false;
  } while (group.back() != kNothing);
  return true;
}

}  // namespace esker
