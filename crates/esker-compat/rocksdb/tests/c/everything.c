/* What a program does with RocksDB's C interface, and what it is answered. Usage: everything FOLDER */
#include "rocksdb.h"
#include "show.h"

static char *error = NULL;
static rocksdb_writeoptions_t *plain, *synced, *unlogged;
static rocksdb_readoptions_t *reads;
static int destroyed = 0;

static void check(const char *what) { show_error(what, &error, rocksdb_free); }

static void put(rocksdb_t *db, const char *key, const char *value) {
  rocksdb_put(db, plain, key, strlen(key), value, strlen(value), &error);
  if (error) check("put");
}

static void get(rocksdb_t *db, const rocksdb_readoptions_t *options, const char *key) {
  size_t len = 99;
  char *value = rocksdb_get(db, options, key, strlen(key), &len, &error);
  if (error) check("get");
  show_value(key, value, len, rocksdb_free);
}

static void get_cf(rocksdb_t *db, rocksdb_column_family_handle_t *family, const char *key) {
  size_t len = 99;
  char *value = rocksdb_get_cf(db, reads, family, key, strlen(key), &len, &error);
  if (error) check("get");
  show_value(key, value, len, rocksdb_free);
}

static void row(const char *what, rocksdb_iterator_t *iter) {
  printf("%s: ", what);
  if (!rocksdb_iter_valid(iter)) {
    printf("not valid\n");
    return;
  }
  size_t len;
  const char *data = rocksdb_iter_key(iter, &len);
  show_bytes(data, len);
  printf(" = ");
  data = rocksdb_iter_value(iter, &len);
  show_bytes(data, len);
  rocksdb_slice_t slice = rocksdb_iter_key_slice(iter);
  printf(" (%zu, ", slice.size);
  slice = rocksdb_iter_value_slice(iter);
  printf("%zu)\n", slice.size);
}

static void scan(const char *what, rocksdb_iterator_t *iter) {
  printf("%s before seek: %d\n", what, rocksdb_iter_valid(iter));
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) row(what, iter);
  for (rocksdb_iter_seek_to_last(iter); rocksdb_iter_valid(iter); rocksdb_iter_prev(iter)) row(what, iter);
  rocksdb_iter_get_error(iter, &error);
  check(what);
  rocksdb_iter_destroy(iter);
}

static char *below(const char *folder, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* Joins the existing value and the operands by commas; the operand "bad" can't be merged. */
static char *joined(const char *existing, size_t existing_len, const char *const *operands, const size_t *lens,
                    int count, unsigned char *success, size_t *len) {
  *len = existing ? existing_len : 0;
  *success = 1;
  for (int i = 0; i < count; i++) {
    *len += lens[i] + 1;
    if (lens[i] == 3 && memcmp(operands[i], "bad", 3) == 0) *success = 0;
  }
  if (!*success) {
    *len = 0;
    return malloc(1);
  }
  char *value = malloc(*len + 1), *end = value;
  if (existing) memcpy(value, existing, existing_len), end += existing_len;
  for (int i = 0; i < count; i++) {
    if (end != value) *end++ = ',';
    memcpy(end, operands[i], lens[i]);
    end += lens[i];
  }
  *len = (size_t)(end - value);
  return value;
}

static char *full_merge(void *state, const char *key, size_t key_len, const char *existing, size_t existing_len,
                        const char *const *operands, const size_t *lens, int count, unsigned char *success,
                        size_t *len) {
  (void)state, (void)key, (void)key_len;
  return joined(existing, existing_len, operands, lens, count, success, len);
}

static char *partial_merge(void *state, const char *key, size_t key_len, const char *const *operands,
                           const size_t *lens, int count, unsigned char *success, size_t *len) {
  (void)state, (void)key, (void)key_len;
  return joined(NULL, 0, operands, lens, count, success, len);
}

static void delete_value(void *state, const char *value, size_t len) {
  (void)state, (void)len;
  free((char *)value);
}

static const char *merge_name(void *state) {
  (void)state;
  return "test.joined";
}

static void count_destroyed(void *state) { destroyed += *(int *)state; }

static void nothing_destroyed(void *state) { (void)state; }

static int reversed(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
  (void)state;
  size_t shared = a_len < b_len ? a_len : b_len;
  int order = memcmp(a, b, shared);
  if (order == 0) order = (a_len > b_len) - (a_len < b_len);
  return -order;
}

static const char *reversed_name(void *state) {
  (void)state;
  return "test.reversed";
}

static void opening(const char *folder) {
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_t *db = rocksdb_open(options, below(folder, "a"), &error);
  printf("open of nothing: %d\n", db != NULL);
  check("open of nothing");
  db = rocksdb_open_for_read_only(options, below(folder, "a"), 0, &error);
  printf("read-only open of nothing: %d\n", db != NULL);
  check("read-only open of nothing");
  size_t count = 9;
  char **names = rocksdb_list_column_families(options, below(folder, "a"), &count, &error);
  printf("families of nothing: %d\n", names != NULL);
  check("families of nothing");
  rocksdb_list_column_families_destroy(names, count);
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_error_if_exists(options, 1);
  db = rocksdb_open(options, below(folder, "a"), &error);
  check("create");
  rocksdb_options_set_error_if_exists(options, 0);
  rocksdb_t *second = rocksdb_open(options, below(folder, "a"), &error);
  printf("open twice: %d\n", second != NULL);
  check("open twice");
  put(db, "kept", "value");
  rocksdb_merge(db, plain, "kept", 4, "x", 1, &error);
  check("merge without operator");
  get(db, reads, "kept");
  rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  check("flush");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_close(db);
  rocksdb_options_set_error_if_exists(options, 1);
  rocksdb_open(options, below(folder, "a"), &error);
  check("exists");
  rocksdb_options_set_error_if_exists(options, 0);
  rocksdb_options_t *copy = rocksdb_options_create_copy(options);
  db = rocksdb_open_for_read_only(copy, below(folder, "a"), 0, &error);
  check("read-only open");
  get(db, reads, "kept");
  rocksdb_put(db, plain, "x", 1, "y", 1, &error);
  check("put into a read-only database");
  rocksdb_close(db);
  rocksdb_options_destroy(copy);
  rocksdb_options_destroy(options);
}

static void rows(rocksdb_t *db) {
  put(db, "apple", "red");
  put(db, "pear", "green");
  put(db, "empty", "");
  put(db, "", "the empty key");
  rocksdb_put(db, synced, "bin\0ary", 7, "\0\xff\n", 3, &error);
  check("synced put");
  rocksdb_put(db, unlogged, "unlogged", 8, "1", 1, &error);
  check("unlogged put");
  rocksdb_writeoptions_t *both = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(both, 1);
  rocksdb_writeoptions_disable_WAL(both, 1);
  rocksdb_put(db, both, "both", 4, "1", 1, &error);
  check("sync without log");
  rocksdb_writeoptions_destroy(both);
  get(db, reads, "apple");
  get(db, reads, "empty");
  get(db, reads, "");
  get(db, reads, "missing");
  size_t len = 5;
  char *value = rocksdb_get(db, reads, "bin\0ary", 7, &len, &error);
  show_value("binary", value, len, rocksdb_free);
  put(db, "apple", "yellow");
  rocksdb_delete(db, plain, "pear", 4, &error);
  check("delete");
  rocksdb_delete(db, plain, "never there", 11, &error);
  check("delete of nothing");
  get(db, reads, "pear");
  put(db, "once", "1");
  rocksdb_singledelete(db, plain, "once", 4, &error);
  check("single delete");
  get(db, reads, "once");
  rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(db, reads, "apple", 5, &error);
  const char *data = rocksdb_pinnableslice_value(pinned, &len);
  show_bytes(data, len);
  printf(" pinned\n");
  put(db, "apple", "blue");
  show_bytes(data, len);
  printf(" still pinned\n");
  rocksdb_pinnableslice_destroy(pinned);
  pinned = rocksdb_get_pinned(db, reads, "missing", 7, &error);
  printf("pinned nothing: %d", pinned != NULL);
  data = rocksdb_pinnableslice_value(pinned, &len);
  printf(" %d %zu\n", data != NULL, len);
  check("pinned nothing");
  rocksdb_pinnable_handle_t *handle = rocksdb_get_pinned_v2(db, reads, "apple", 5, &error);
  data = rocksdb_pinnable_handle_get_value(handle, &len);
  show_bytes(data, len);
  printf(" in a handle\n");
  rocksdb_pinnable_handle_destroy(handle);
  char buffer[8] = "-------";
  unsigned char found = 7;
  int fits = rocksdb_get_into_buffer(db, reads, "apple", 5, buffer, sizeof buffer, &len, &found, &error);
  printf("into a buffer: %d %zu %d %s\n", fits, len, found, buffer);
  fits = rocksdb_get_into_buffer(db, reads, "", 0, buffer, sizeof buffer, &len, &found, &error);
  printf("into a small buffer: %d %zu %d %s\n", fits, len, found, buffer);
  fits = rocksdb_get_into_buffer(db, reads, "missing", 7, buffer, sizeof buffer, &len, &found, &error);
  printf("nothing into a buffer: %d\n", found);
  rocksdb_iterator_t *iter = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek(iter, "b", 1);
  row("seek b", iter);
  rocksdb_iter_next(iter);
  row("next", iter);
  rocksdb_iter_prev(iter);
  row("prev", iter);
  rocksdb_iter_seek_for_prev(iter, "b", 1);
  row("seek for prev b", iter);
  rocksdb_iter_seek_for_prev(iter, "apple", 5);
  row("seek for prev apple", iter);
  rocksdb_iter_seek(iter, "zzz", 3);
  row("past the end", iter);
  rocksdb_iter_seek_for_prev(iter, "", 0);
  row("for prev of nothing", iter);
  put(db, "zebra", "new");
  rocksdb_iter_seek(iter, "zebra", 5);
  row("before refresh", iter);
  rocksdb_iter_refresh(iter, &error);
  check("refresh");
  rocksdb_iter_seek(iter, "zebra", 5);
  row("after refresh", iter);
  rocksdb_iter_destroy(iter);
  scan("rows", rocksdb_create_iterator(db, reads));
}

static void merges(rocksdb_t *db) {
  rocksdb_merge(db, plain, "m", 1, "a", 1, &error);
  rocksdb_merge(db, plain, "m", 1, "b", 1, &error);
  check("merge");
  get(db, reads, "m");
  put(db, "m", "base");
  for (int i = 0; i < 30; i++) {
    char operand[8];
    snprintf(operand, sizeof operand, "%d", i);
    rocksdb_merge(db, plain, "m", 1, operand, strlen(operand), &error);
    if (i == 10) rocksdb_compact_range(db, NULL, 0, NULL, 0);
  }
  get(db, reads, "m");
  rocksdb_delete(db, plain, "m", 1, &error);
  rocksdb_merge(db, plain, "m", 1, "after", 5, &error);
  get(db, reads, "m");
}

static void on_put(void *state, const char *key, size_t key_len, const char *value, size_t value_len) {
  printf("%s put ", (const char *)state);
  show_bytes(key, key_len);
  show_bytes(value, value_len);
  printf("\n");
}

static void on_delete(void *state, const char *key, size_t key_len) {
  printf("%s delete ", (const char *)state);
  show_bytes(key, key_len);
  printf("\n");
}

static void on_put_cf(void *state, uint32_t family, const char *key, size_t key_len, const char *value,
                      size_t value_len) {
  printf("%u ", family);
  on_put(state, key, key_len, value, value_len);
}

static void on_delete_cf(void *state, uint32_t family, const char *key, size_t key_len) {
  printf("%u ", family);
  on_delete(state, key, key_len);
}

static void batches(rocksdb_t *db, rocksdb_column_family_handle_t *family) {
  rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "x", 1, "1", 1);
  rocksdb_writebatch_put_cf(batch, family, "x", 1, "in family", 9);
  rocksdb_writebatch_delete(batch, "x", 1);
  rocksdb_writebatch_merge(batch, "y", 1, "m", 1);
  const char *parts[] = {"a", "", "bc"}, *values[] = {"1", "23"};
  size_t part_lens[] = {1, 0, 2}, value_lens[] = {1, 2};
  rocksdb_writebatch_putv(batch, 3, parts, part_lens, 2, values, value_lens);
  rocksdb_writebatch_putv_cf(batch, family, 3, parts, part_lens, 2, values, value_lens);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_deletev(batch, 3, parts, part_lens);
  rocksdb_writebatch_delete_range(batch, "a", 1, "z", 1);
  printf("count %d\n", rocksdb_writebatch_count(batch));
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  check("roll back");
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  check("roll back without save point");
  rocksdb_writebatch_pop_save_point(batch, &error);
  check("pop without save point");
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_pop_save_point(batch, &error);
  check("pop");
  rocksdb_writebatch_singledelete_cf(batch, family, "x", 1);
  rocksdb_writebatch_delete_range_cf(batch, family, "q", 1, "r", 1);
  rocksdb_writebatch_mergev(batch, 3, parts, part_lens, 2, values, value_lens);
  printf("count %d\n", rocksdb_writebatch_count(batch));
  rocksdb_writebatch_iterate(batch, "batch", on_put, on_delete);
  rocksdb_writebatch_iterate_cf(batch, "batch", on_put_cf, on_delete_cf, on_put_cf);
  size_t len;
  const char *data = rocksdb_writebatch_data(batch, &len);
  show_bytes(data, len);
  printf(" as bytes\n");
  rocksdb_writebatch_t *copy = rocksdb_writebatch_create_from(data, len);
  printf("count of the copy %d\n", rocksdb_writebatch_count(copy));
  rocksdb_write(db, plain, batch, &error);
  check("write");
  get(db, reads, "x");
  get(db, reads, "y");
  get(db, reads, "abc");
  get_cf(db, family, "x");
  get_cf(db, family, "abc");
  put(db, "abc", "changed");
  rocksdb_write(db, plain, copy, &error);
  check("write of the copy");
  get(db, reads, "abc");
  rocksdb_write(db, plain, batch, &error);
  check("write again");
  get(db, reads, "y");
  rocksdb_writebatch_clear(batch);
  printf("count %d\n", rocksdb_writebatch_count(batch));
  rocksdb_write(db, plain, batch, &error);
  check("write of nothing");
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_destroy(batch);
}

static void snapshots(rocksdb_t *db) {
  put(db, "s", "before");
  const rocksdb_snapshot_t *snapshot = rocksdb_create_snapshot(db);
  printf("sequences: %d\n", rocksdb_snapshot_get_sequence_number(snapshot) == rocksdb_get_latest_sequence_number(db));
  put(db, "s", "after");
  put(db, "t", "new");
  rocksdb_readoptions_t *then = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(then, snapshot);
  rocksdb_readoptions_set_fill_cache(then, 0);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  get(db, then, "s");
  get(db, then, "t");
  scan("then", rocksdb_create_iterator(db, then));
  rocksdb_readoptions_set_snapshot(then, NULL);
  get(db, then, "s");
  rocksdb_release_snapshot(db, snapshot);
  rocksdb_readoptions_destroy(then);
}

static void bounds(rocksdb_t *db) {
  char lower[8] = "b", upper[8] = "n";
  rocksdb_readoptions_t *within = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_lower_bound(within, lower, 1);
  rocksdb_readoptions_set_iterate_upper_bound(within, upper, 1);
  get(db, within, "apple");
  scan("within", rocksdb_create_iterator(db, within));
  /* Bounds stay the program's: what they are counts when an iterator is made. */
  upper[0] = 'f';
  scan("within less", rocksdb_create_iterator(db, within));
  rocksdb_iterator_t *iter = rocksdb_create_iterator(db, within);
  rocksdb_iter_seek(iter, "a", 1);
  row("seek before the bound", iter);
  rocksdb_iter_seek_for_prev(iter, "z", 1);
  row("seek for prev past the bound", iter);
  rocksdb_iter_seek(iter, "z", 1);
  row("seek past the bound", iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_iterate_lower_bound(within, NULL, 0);
  rocksdb_readoptions_set_iterate_upper_bound(within, NULL, 0);
  iter = rocksdb_create_iterator(db, within);
  rocksdb_iter_seek_to_first(iter);
  row("without bounds", iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(within);

  rocksdb_readoptions_t *tail = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(tail, 1);
  iter = rocksdb_create_iterator(db, tail);
  rocksdb_iter_seek(iter, "zz", 2);
  row("tail", iter);
  put(db, "zz1", "late");
  rocksdb_iter_seek(iter, "zz", 2);
  row("tail", iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(tail);
}

static void several(rocksdb_t *db, rocksdb_column_family_handle_t *family) {
  const char *keys[] = {"apple", "missing", "", "empty"};
  size_t lens[] = {5, 7, 0, 5}, found_lens[4];
  char *found[4], *errors[4];
  rocksdb_multi_get(db, reads, 4, keys, lens, found, found_lens, errors);
  for (int i = 0; i < 4; i++) {
    printf("%d ", errors[i] == NULL);
    show_value(keys[i], found[i], found_lens[i], rocksdb_free);
  }
  rocksdb_column_family_handle_t *basic = rocksdb_get_default_column_family_handle(db);
  const rocksdb_column_family_handle_t *families[] = {basic, family, family, basic};
  const char *others[] = {"apple", "abc", "apple", "abc"};
  size_t other_lens[] = {5, 3, 5, 3};
  rocksdb_multi_get_cf(db, reads, families, 4, others, other_lens, found, found_lens, errors);
  for (int i = 0; i < 4; i++) {
    printf("%d ", errors[i] == NULL);
    show_value(others[i], found[i], found_lens[i], rocksdb_free);
  }
  rocksdb_pinnableslice_t *pinned[4];
  rocksdb_batched_multi_get_cf(db, reads, basic, 4, keys, lens, pinned, errors, false);
  for (int i = 0; i < 4; i++) {
    size_t len = 0;
    const char *data = rocksdb_pinnableslice_value(pinned[i], &len);
    printf("%d %d %zu ", errors[i] == NULL, pinned[i] != NULL, len);
    show_bytes(data, len);
    printf("\n");
    if (pinned[i]) rocksdb_pinnableslice_destroy(pinned[i]);
  }
  unsigned char value_found = 9;
  char *value = NULL;
  size_t len;
  printf("may exist: %d\n", rocksdb_key_may_exist(db, reads, "apple", 5, &value, &len, NULL, 0, NULL));
  rocksdb_key_may_exist_cf(db, reads, basic, "apple", 5, &value, &len, NULL, 0, &value_found);
  if (value_found) rocksdb_free(value);
  rocksdb_column_family_handle_destroy(basic);
}

static void families(const char *folder, rocksdb_options_t *options) {
  char path[4096];
  snprintf(path, sizeof path, "%s", below(folder, "families"));
  const char *names[] = {"default", "one", "two"};
  const rocksdb_options_t *all[] = {options, options, options};
  rocksdb_column_family_handle_t *handles[3];
  rocksdb_options_set_create_missing_column_families(options, 0);
  rocksdb_t *db = rocksdb_open_column_families(options, path, 3, names, all, handles, &error);
  printf("families that are missing: %d\n", db != NULL);
  check("families that are missing");
  rocksdb_options_set_create_missing_column_families(options, 1);
  db = rocksdb_open_column_families(options, path, 3, names, all, handles, &error);
  check("families that are made");
  for (int i = 0; i < 3; i++) {
    size_t len;
    char *name = rocksdb_column_family_handle_get_name(handles[i], &len);
    printf("%u %.*s\n", rocksdb_column_family_handle_get_id(handles[i]), (int)len, name);
    rocksdb_free(name);
    rocksdb_put_cf(db, plain, handles[i], "key", 3, names[i], strlen(names[i]), &error);
    rocksdb_merge_cf(db, plain, handles[i], "key", 3, "m", 1, &error);
    check("put in a family");
  }
  rocksdb_put_cf(db, plain, handles[1], "range1", 6, "", 0, &error);
  rocksdb_put_cf(db, plain, handles[1], "range2", 6, "", 0, &error);
  rocksdb_put_cf(db, plain, handles[1], "range3", 6, "", 0, &error);
  rocksdb_delete_range_cf(db, plain, handles[1], "range1", 6, "range3", 6, &error);
  check("delete range");
  rocksdb_delete_range_cf(db, plain, handles[1], "z", 1, "z", 1, &error);
  check("delete of an empty range");
  rocksdb_delete_cf(db, plain, handles[2], "key", 3, &error);
  scan("one", rocksdb_create_iterator_cf(db, reads, handles[1]));
  rocksdb_iterator_t *iters[3];
  rocksdb_create_iterators(db, reads, handles, iters, 3, &error);
  check("iterators");
  for (int i = 0; i < 3; i++) scan(names[i], iters[i]);
  rocksdb_column_family_handle_t *three = rocksdb_create_column_family(db, options, "three", &error);
  check("create");
  rocksdb_column_family_handle_t *again = rocksdb_create_column_family(db, options, "three", &error);
  printf("create again: %d\n", again != NULL);
  check("create again");
  rocksdb_put_cf(db, plain, three, "k", 1, "v", 1, &error);
  rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
  rocksdb_flush_cf(db, flush, three, &error);
  check("flush of a family");
  rocksdb_flushoptions_destroy(flush);
  get_cf(db, three, "k");
  rocksdb_drop_column_family(db, handles[2], &error);
  check("drop");
  rocksdb_drop_column_family(db, handles[0], &error);
  check("drop of the default family");
  rocksdb_column_family_handle_destroy(three);
  for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);

  size_t count;
  char **listed = rocksdb_list_column_families(options, path, &count, &error);
  check("list");
  for (size_t i = 0; i < count; i++) printf("%zu %s\n", i, listed[i]);
  rocksdb_list_column_families_destroy(listed, count);
  db = rocksdb_open_column_families(options, path, 2, names, all, handles, &error);
  printf("a family is forgotten: %d\n", db != NULL);
  check("a family is forgotten");
  db = rocksdb_open(options, path, &error);
  printf("families are forgotten: %d\n", db != NULL);
  check("families are forgotten");
  const char *known[] = {"default", "one", "three"};
  db = rocksdb_open_for_read_only_column_families(options, path, 2, known, all, handles, 0, &error);
  check("some families, read-only");
  get_cf(db, handles[1], "key");
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
  db = rocksdb_open_column_families(options, path, 3, known, all, handles, &error);
  check("all families");
  get_cf(db, handles[0], "key");
  get_cf(db, handles[2], "k");
  for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
  rocksdb_options_set_create_missing_column_families(options, 0);
  rocksdb_destroy_db(options, path, &error);
  check("destroy");
}

/* A database that is written is read beside it. */
static void secondaries(const char *folder) {
  char path[4096], own[4096];
  snprintf(path, sizeof path, "%s/primary", folder);
  snprintf(own, sizeof own, "%s/secondary", folder);
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_t *secondary = rocksdb_open_as_secondary(options, path, own, &error);
  printf("secondary of nothing: %d\n", secondary != NULL);
  check("secondary of nothing");
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t *db = rocksdb_open(options, path, &error);
  check("open");
  put(db, "a", "1");
  secondary = rocksdb_open_as_secondary(options, path, own, &error);
  check("secondary");
  get(secondary, reads, "a");
  put(db, "a", "2");
  put(db, "b", "2");
  get(secondary, reads, "b");
  rocksdb_try_catch_up_with_primary(secondary, &error);
  check("catch up");
  get(secondary, reads, "a");
  scan("secondary", rocksdb_create_iterator(secondary, reads));
  rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  check("flush");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  put(db, "b", "3");
  rocksdb_try_catch_up_with_primary(secondary, &error);
  check("catch up with tables");
  scan("secondary", rocksdb_create_iterator(secondary, reads));
  rocksdb_put(secondary, plain, "x", 1, "y", 1, &error);
  check("put into a secondary");
  rocksdb_try_catch_up_with_primary(db, &error);
  check("catch up of a primary");
  rocksdb_close(secondary);

  rocksdb_column_family_handle_t *one = rocksdb_create_column_family(db, options, "one", &error);
  rocksdb_column_family_handle_t *two = rocksdb_create_column_family(db, options, "two", &error);
  check("families");
  rocksdb_put_cf(db, plain, one, "k", 1, "v", 1, &error);
  check("put");
  const char *names[] = {"default", "one", "absent"};
  const rocksdb_options_t *all[] = {options, options, options};
  rocksdb_column_family_handle_t *handles[3];
  secondary = rocksdb_open_as_secondary_column_families(options, path, own, 3, names, all, handles, &error);
  printf("secondary with an absent family: %d\n", secondary != NULL);
  check("secondary with an absent family");
  secondary = rocksdb_open_as_secondary_column_families(options, path, own, 2, names, all, handles, &error);
  check("secondary with families");
  get_cf(secondary, handles[1], "k");
  rocksdb_put_cf(db, plain, one, "k", 1, "w", 1, &error);
  rocksdb_put_cf(db, plain, two, "k", 1, "w", 1, &error);
  rocksdb_column_family_handle_destroy(one);
  rocksdb_column_family_handle_destroy(two);
  rocksdb_close(db);
  rocksdb_try_catch_up_with_primary(secondary, &error);
  check("catch up with families");
  get_cf(secondary, handles[1], "k");
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(secondary);
  rocksdb_options_destroy(options);
}

static void orders(const char *folder) {
  static int one = 1, ten = 10;
  rocksdb_comparator_t *comparator = rocksdb_comparator_create(&one, count_destroyed, reversed, reversed_name);
  rocksdb_mergeoperator_t *merge = rocksdb_mergeoperator_create(&ten, count_destroyed, full_merge, partial_merge,
                                                                delete_value, merge_name);
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_options_set_merge_operator(options, merge);
  rocksdb_t *db = rocksdb_open(options, below(folder, "reversed"), &error);
  check("open reversed");
  put(db, "a", "1");
  put(db, "b", "2");
  put(db, "c", "3");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  put(db, "b", "4");
  rocksdb_merge(db, plain, "ab", 2, "5", 1, &error);
  scan("reversed", rocksdb_create_iterator(db, reads));
  rocksdb_readoptions_t *within = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_upper_bound(within, "ab", 2);
  scan("down to ab", rocksdb_create_iterator(db, within));
  rocksdb_readoptions_destroy(within);
  rocksdb_close(db);
  rocksdb_options_t *other = rocksdb_options_create();
  printf("another order: %d\n", rocksdb_open(other, below(folder, "reversed"), &error) != NULL);
  check("another order");
  rocksdb_options_destroy(other);
  rocksdb_options_destroy(options);
  printf("destroyed: %d\n", destroyed);
  rocksdb_comparator_destroy(comparator);
  printf("destroyed: %d\n", destroyed);
}

static void prefixes(const char *folder) {
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(2));
  rocksdb_t *db = rocksdb_open(options, below(folder, "prefixes"), &error);
  check("open with prefixes");
  put(db, "aa1", "1");
  put(db, "aa2", "2");
  put(db, "ab1", "3");
  put(db, "ac1", "4");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  put(db, "ab2", "5");
  rocksdb_readoptions_t *same = rocksdb_readoptions_create();
  rocksdb_readoptions_set_prefix_same_as_start(same, 1);
  rocksdb_iterator_t *iter = rocksdb_create_iterator(db, same);
  for (rocksdb_iter_seek(iter, "ab", 2); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) row("same prefix", iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(same);
  rocksdb_readoptions_t *total = rocksdb_readoptions_create();
  rocksdb_readoptions_set_total_order_seek(total, 1);
  scan("total order", rocksdb_create_iterator(db, total));
  rocksdb_readoptions_destroy(total);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Of a database of its own: a merge that fails stops the real library's background work. */
static void failing_merges(const char *folder, rocksdb_options_t *options) {
  rocksdb_t *db = rocksdb_open(options, below(folder, "failing"), &error);
  rocksdb_merge(db, plain, "m2", 2, "bad", 3, &error);
  check("a merge that will fail");
  size_t len = 1;
  char *value = rocksdb_get(db, reads, "m2", 2, &len, &error);
  printf("what can't be merged: %d %zu\n", value != NULL, len);
  check("what can't be merged");
  rocksdb_iterator_t *iter = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek(iter, "m2", 2);
  row("what can't be merged", iter);
  rocksdb_iter_get_error(iter, &error);
  check("its iterator");
  rocksdb_iter_seek_to_first(iter);
  rocksdb_iter_get_error(iter, &error);
  check("positioned elsewhere");
  rocksdb_iter_destroy(iter);
  rocksdb_close(db);
}

static void sums(const char *folder) {
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t *db = rocksdb_open(options, below(folder, "sums"), &error);
  uint64_t five = 5, most = UINT64_MAX;
  rocksdb_merge(db, plain, "n", 1, (char *)&five, 8, &error);
  rocksdb_merge(db, plain, "n", 1, (char *)&most, 8, &error);
  rocksdb_merge(db, plain, "n", 1, "odd", 3, &error);
  check("sums");
  get(db, reads, "n");
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void maintenance(rocksdb_t *db) {
  char key[16], value[1000];
  memset(value, 'v', sizeof value);
  for (int i = 0; i < 3000; i++) {
    snprintf(key, sizeof key, "many%06d", i);
    rocksdb_put(db, plain, key, strlen(key), value, sizeof value, &error);
  }
  rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_flush_wal(db, 1, &error);
  check("flush");
  rocksdb_compactoptions_t *compact = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_exclusive_manual_compaction(compact, 0);
  rocksdb_compact_range_opt(db, compact, "many", 4, "many999999", 10);
  rocksdb_compactoptions_destroy(compact);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_wait_for_compact_options_t *wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, wait, &error);
  check("wait");
  rocksdb_wait_for_compact_options_destroy(wait);
  const char *starts[] = {"many", "nothing"}, *limits[] = {"many999999", "nothing after"};
  size_t start_lens[] = {4, 7}, limit_lens[] = {10, 13};
  uint64_t sizes[2] = {1, 1};
  rocksdb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes, &error);
  check("sizes");
  printf("sizes: many %d, none %d\n", sizes[0] > 10000 && sizes[0] < 4000000, sizes[1] == 0);
  const char *names[] = {"rocksdb.num-files-at-level0", "rocksdb.num-files-at-level6", "rocksdb.num-files-at-level",
                         "rocksdb.stats", "rocksdb.levelstats", "rocksdb.sstables", "rocksdb.dbstats",
                         "rocksdb.num-immutable-mem-table", "rocksdb.mem-table-flush-pending",
                         "rocksdb.compaction-pending", "rocksdb.num-running-compactions", "rocksdb.num-running-flushes",
                         "rocksdb.cur-size-active-mem-table", "rocksdb.cur-size-all-mem-tables",
                         "rocksdb.size-all-mem-tables", "rocksdb.num-entries-active-mem-table",
                         "rocksdb.estimate-num-keys", "rocksdb.total-sst-files-size", "rocksdb.live-sst-files-size",
                         "rocksdb.estimate-live-data-size", "rocksdb.estimate-pending-compaction-bytes",
                         "rocksdb.num-snapshots", "rocksdb.estimate-table-readers-mem", "rocksdb.block-cache-usage",
                         "rocksdb.block-cache-capacity", "rocksdb.background-errors", "rocksdb.is-write-stopped",
                         "rocksdb.actual-delayed-write-rate", "rocksdb.nothing", "leveldb.stats", ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char *text = rocksdb_property_value(db, names[i]);
    uint64_t number = 0;
    int known = rocksdb_property_int(db, names[i], &number);
    printf("%s: %s, a number: %d\n", names[i], text ? "known" : "unknown", known);
    rocksdb_free(text);
  }
  const char *exact[] = {"rocksdb.num-files-at-level0", "rocksdb.num-immutable-mem-table",
                         "rocksdb.mem-table-flush-pending", "rocksdb.compaction-pending",
                         "rocksdb.num-running-compactions", "rocksdb.num-running-flushes", "rocksdb.num-snapshots",
                         "rocksdb.background-errors", "rocksdb.is-write-stopped"};
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
    char *text = rocksdb_property_value(db, exact[i]);
    printf("%s: %s\n", exact[i], text);
    rocksdb_free(text);
  }
  const char *options[] = {"write_buffer_size", "disable_auto_compactions"}, *values[] = {"1048576", "true"};
  rocksdb_set_options(db, 2, options, values, &error);
  check("set options");
  const char *wrong[] = {"no_such_option"};
  rocksdb_set_options(db, 1, wrong, values, &error);
  check("set no option");
  rocksdb_pause_background_work(db, &error);
  rocksdb_continue_background_work(db, &error);
  check("pause and go on");
}

int main(int count, char **arguments) {
  const char *folder = count > 1 ? arguments[1] : ".";
  setvbuf(stdout, NULL, _IOLBF, 0);
  plain = rocksdb_writeoptions_create();
  synced = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(synced, 1);
  unlogged = rocksdb_writeoptions_create();
  rocksdb_writeoptions_disable_WAL(unlogged, 1);
  reads = rocksdb_readoptions_create();
  opening(folder);

  rocksdb_env_t *env = rocksdb_create_default_env();
  rocksdb_env_set_background_threads(env, 2);
  rocksdb_cache_t *cache = rocksdb_cache_create_lru(8 << 20);
  rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_block_size(table, 8192);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_ratelimiter_t *limiter = rocksdb_ratelimiter_create(1 << 30, 100000, 10);
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_env(options, env);
  rocksdb_options_set_write_buffer_size(options, 1 << 20);
  rocksdb_options_set_max_open_files(options, 100);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_options_set_compression(options, 0);
  rocksdb_options_set_ratelimiter(options, limiter);
  rocksdb_options_increase_parallelism(options, 4);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, nothing_destroyed, full_merge, partial_merge, delete_value, merge_name));
  rocksdb_options_set_use_fsync(options, 0);
  rocksdb_t *db = rocksdb_open(options, below(folder, "main"), &error);
  check("open");
  printf("capacity: %zu\n", rocksdb_cache_get_capacity(cache));
  rocksdb_column_family_handle_t *family = rocksdb_create_column_family(db, options, "family", &error);
  rows(db);
  merges(db);
  batches(db, family);
  snapshots(db);
  bounds(db);
  several(db, family);
  maintenance(db);
  printf("cache in use: %d\n", rocksdb_cache_get_usage(cache) > 0);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);
  families(folder, options);
  secondaries(folder);
  orders(folder);
  prefixes(folder);
  sums(folder);
  failing_merges(folder, options);
  char path[4096], current[4200];
  snprintf(path, sizeof path, "%s", below(folder, "main"));
  snprintf(current, sizeof current, "%s/CURRENT", path);
  printf("CURRENT is gone: %d\n", remove(current) == 0);
  rocksdb_repair_db(options, path, &error);
  check("repair");
  size_t names_count = 0;
  char **names = rocksdb_list_column_families(options, path, &names_count, &error);
  check("families after the repair");
  for (size_t i = 0; i < names_count; i++) printf("%s\n", names[i]);
  rocksdb_list_column_families_destroy(names, names_count);
  rocksdb_destroy_db(options, below(folder, "sums"), &error);
  check("destroy");
  rocksdb_options_destroy(options);
  rocksdb_block_based_options_destroy(table);
  rocksdb_ratelimiter_destroy(limiter);
  rocksdb_cache_destroy(cache);
  rocksdb_env_destroy(env);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(plain);
  rocksdb_writeoptions_destroy(synced);
  rocksdb_writeoptions_destroy(unlogged);
  printf("done\n");
  return 0;
}
