// The header is C++ as well: a handle that frees itself, without a word in the header about it.
#include <esker.h>

#include <cstdio>
#include <memory>
#include <string_view>

static esker_slice slice(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

struct Close {
  void operator()(esker_db *db) const { esker_error_free(esker_db_close(db)); }
  void operator()(esker_value *value) const { esker_value_free(value); }
  void operator()(esker_error *error) const { esker_error_free(error); }
};

template <typename T>
using Owned = std::unique_ptr<T, Close>;

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  esker_db *opened = nullptr;
  Owned<esker_error> error(esker_db_open(argv[1], nullptr, &opened));
  Owned<esker_db> db(opened);
  if (!error) error.reset(esker_db_put(db.get(), nullptr, slice("key"), slice("value"), nullptr));
  Owned<esker_value> value(esker_value_create());
  esker_slice found = {};
  if (!error) error.reset(esker_db_get(db.get(), nullptr, slice("key"), nullptr, value.get(), &found));
  if (error) {
    std::fprintf(stderr, "%s\n", esker_error_message(error.get()));
    return 1;
  }
  std::string_view text(reinterpret_cast<const char *>(found.data), found.len);
  if (text != "value") return 1;
  std::puts("done");
  return 0;
}
