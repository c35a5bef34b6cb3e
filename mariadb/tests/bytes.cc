// Encodings compare as what they encode, can be taken apart again, and none is the start of another: tried on many random values.
#include "../src/bytes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace esker;

namespace {

std::mt19937_64 chance(20260101);

void check(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "bytes: %s\n", what);
  std::exit(1);
}

int sign(int order) { return (order > 0) - (order < 0); }

// Strings that share long beginnings, of few letters.
Bytes random_string(const char *letters, size_t count, size_t length_max) {
  Bytes string(chance() % (length_max + 1), '\0');
  for (char &byte : string) byte = letters[chance() % 8 == 0 ? chance() % count : 0];
  return string;
}

// As if spaces followed for ever.
int compare_padded(View a, View b, char space) {
  for (size_t at = 0; at < std::max(a.size(), b.size()); at++) {
    const int x = static_cast<uint8_t>(at < a.size() ? a[at] : space), y = static_cast<uint8_t>(at < b.size() ? b[at] : space);
    if (x != y) return sign(x - y);
  }
  return 0;
}

void integers() {
  for (size_t size = 1; size <= 8; size++) {
    for (int round = 0; round < 20000; round++) {
      const unsigned shift = static_cast<unsigned>(chance() % 64);
      const uint64_t mask = size == 8 ? ~uint64_t{0} : (uint64_t{1} << size * 8) - 1;
      uint64_t a = (chance() >> shift) & mask, b = (chance() >> shift) & mask;
      for (const bool is_signed : {false, true}) {
        Bytes x, y;
        append_integer(x, reinterpret_cast<uint8_t *>(&a), size, is_signed);
        append_integer(y, reinterpret_cast<uint8_t *>(&b), size, is_signed);
        const uint64_t flip = is_signed ? uint64_t{1} << (size * 8 - 1) : 0;
        const int order = (a ^ flip) < (b ^ flip) ? -1 : a != b;
        check(sign(x.compare(y)) == order, "an integer's order");
        uint64_t again = 0;
        read_integer(x, reinterpret_cast<uint8_t *>(&again), is_signed);
        check(again == a, "an integer is read again");
      }
    }
  }
}

void doubles() {
  std::vector<double> values = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, 5e-324, -5e-324};
  for (int i = 0; i < 300; i++) values.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(chance())), static_cast<int>(chance() % 200) - 100));
  for (const double a : values) {
    for (const double b : values) {
      Bytes x, y;
      append_double(x, reinterpret_cast<const uint8_t *>(&a));
      append_double(y, reinterpret_cast<const uint8_t *>(&b));
      check(sign(x.compare(y)) == (a > b) - (a < b), "a double's order");
      const float f = static_cast<float>(a), g = static_cast<float>(b);
      x.clear();
      y.clear();
      append_float(x, reinterpret_cast<const uint8_t *>(&f));
      append_float(y, reinterpret_cast<const uint8_t *>(&g));
      check(sign(x.compare(y)) == (f > g) - (f < g), "a float's order");
    }
  }
}

void strings() {
  const char letters[] = {'a', 'b', '\0', '\xff', ' ', '\t'};
  for (int round = 0; round < 200000; round++) {
    const Bytes a = random_string(letters, sizeof letters, 20), b = random_string(letters, sizeof letters, 20);
    Bytes x, y, again;
    append_groups(x, a);
    append_groups(y, b);
    check(sign(x.compare(y)) == sign(a.compare(b)), "a string's order");
    check(a == b || (!starts_with(x, y) && !starts_with(y, x)), "one encoding is the start of another");
    View rest = x;
    check(take_groups(rest, again) && rest.empty() && again == a, "a string is read again");
    rest = x;
    check(skip_groups(rest) && rest.empty(), "a string is skipped");
    const View space(" ", 1);
    x.clear();
    y.clear();
    append_padded_weights(x, a, space);
    append_padded_weights(y, b, space);
    check(sign(x.compare(y)) == compare_padded(a, b, ' '), "a padded string's order");
    check(x == y || (!starts_with(x, y) && !starts_with(y, x)), "one padded encoding is the start of another");
    rest = x;
    check(skip_padded_weights(rest, 1) && rest.empty(), "a padded string is skipped");
    for (size_t cut = 0; cut < x.size(); cut++) {
      rest = View(x).substr(0, cut);
      check(!skip_padded_weights(rest, 1), "half a string is none");
    }
  }
}

void lengths() {
  for (unsigned shift = 0; shift < 64; shift++) {
    const uint64_t length = chance() >> shift;
    Bytes bytes;
    append_length(bytes, length);
    View rest = bytes;
    uint64_t again;
    check(take_length(rest, again) && rest.empty() && again == length, "a length is read again");
    rest = View(bytes).substr(0, bytes.size() - 1);
    check(!take_length(rest, again), "half a length is none");
  }
  Bytes bytes("a\xff\xff");
  check(make_successor(bytes) && bytes == "b", "what follows all that begin with these bytes");
  bytes = "\xff";
  check(!make_successor(bytes), "nothing follows the last bytes");
}

}  // namespace

int main() {
  integers();
  doubles();
  strings();
  lengths();
  std::puts("bytes: ok");
}
