/* Calls every function of LevelDB's C interface and prints what it answers. Usage: everything FOLDER */
#include "leveldb.h"
#include "show.h"

static char *error = NULL;
static leveldb_writeoptions_t *plain, *synced;
static leveldb_readoptions_t *reads;
static int destroyed = 0;

static void check(const char *what) { show_error(what, &error, leveldb_free); }

static void put(leveldb_t *db, const char *key, const char *value) {
  leveldb_put(db, plain, key, strlen(key), value, strlen(value), &error);
  if (error) check("put");
}

static void get(leveldb_t *db, const leveldb_readoptions_t *options, const char *key) {
  size_t len = 99;
  char *value = leveldb_get(db, options, key, strlen(key), &len, &error);
  if (error) check("get");
  show_value(key, value, len, leveldb_free);
}

static void row(const char *what, leveldb_iterator_t *iter) {
  printf("%s: ", what);
  if (!leveldb_iter_valid(iter)) {
    printf("not valid\n");
    return;
  }
  size_t len;
  const char *data = leveldb_iter_key(iter, &len);
  show_bytes(data, len);
  printf(" = ");
  data = leveldb_iter_value(iter, &len);
  show_bytes(data, len);
  putchar('\n');
}

static void scan(const char *what, leveldb_t *db, const leveldb_readoptions_t *options) {
  leveldb_iterator_t *iter = leveldb_create_iterator(db, options);
  printf("%s before seek: %d\n", what, leveldb_iter_valid(iter));
  for (leveldb_iter_seek_to_first(iter); leveldb_iter_valid(iter); leveldb_iter_next(iter)) row(what, iter);
  for (leveldb_iter_seek_to_last(iter); leveldb_iter_valid(iter); leveldb_iter_prev(iter)) row(what, iter);
  leveldb_iter_get_error(iter, &error);
  check(what);
  leveldb_iter_destroy(iter);
}

static void on_put(void *state, const char *key, size_t key_len, const char *value, size_t value_len) {
  printf("%s put ", (const char *)state);
  show_bytes(key, key_len);
  printf(" ");
  show_bytes(value, value_len);
  printf("\n");
}

static void on_delete(void *state, const char *key, size_t key_len) {
  printf("%s delete ", (const char *)state);
  show_bytes(key, key_len);
  printf("\n");
}

static void count_destroyed(void *state) { destroyed += *(int *)state; }

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

static char *make_filter(void *state, const char *const *keys, const size_t *lens, int count, size_t *len) {
  (void)state, (void)keys, (void)lens, (void)count;
  *len = 4;
  char *filter = malloc(4);
  memcpy(filter, "fake", 4);
  return filter;
}

static uint8_t may_match(void *state, const char *key, size_t len, const char *filter, size_t filter_len) {
  (void)state, (void)key, (void)len, (void)filter, (void)filter_len;
  return 1;
}

static const char *filter_name(void *state) {
  (void)state;
  return "test.filter";
}

static char *below(const char *folder, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void opening(const char *folder) {
  leveldb_options_t *options = leveldb_options_create();
  leveldb_t *db = leveldb_open(options, below(folder, "a"), &error);
  printf("open of nothing: %d\n", db != NULL);
  error = realloc(error, 1 + strlen(error));
  char *first = strdup(error);
  leveldb_open(options, below(folder, "a"), &error);
  printf("the slot holds one error: %d\n", strcmp(first, error) == 0);
  free(first);
  check("open of nothing");
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_error_if_exists(options, 1);
  db = leveldb_open(options, below(folder, "a"), &error);
  check("create");
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_t *second = leveldb_open(options, below(folder, "a"), &error);
  printf("open twice: %d\n", second != NULL);
  check("open twice");
  put(db, "kept", "value");
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_open(options, below(folder, "a"), &error);
  check("exists");
  leveldb_options_set_error_if_exists(options, 0);
  db = leveldb_open(options, below(folder, "a"), &error);
  check("open again");
  get(db, reads, "kept");
  leveldb_close(db);
  leveldb_options_destroy(options);
}

static void rows(leveldb_t *db) {
  put(db, "apple", "red");
  put(db, "pear", "green");
  put(db, "empty", "");
  put(db, "", "the empty key");
  leveldb_put(db, synced, "bin\0ary", 7, "\0\xff\n", 3, &error);
  check("synced put");
  get(db, reads, "apple");
  get(db, reads, "empty");
  get(db, reads, "");
  get(db, reads, "missing");
  size_t len;
  char *value = leveldb_get(db, reads, "bin\0ary", 7, &len, &error);
  show_value("binary", value, len, leveldb_free);
  put(db, "apple", "yellow");
  get(db, reads, "apple");
  leveldb_delete(db, plain, "pear", 4, &error);
  check("delete");
  leveldb_delete(db, synced, "never there", 11, &error);
  check("delete of nothing");
  get(db, reads, "pear");
  scan("rows", db, reads);
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  leveldb_iter_seek(iter, "b", 1);
  row("seek b", iter);
  leveldb_iter_next(iter);
  row("next", iter);
  leveldb_iter_prev(iter);
  row("prev", iter);
  leveldb_iter_prev(iter);
  row("prev", iter);
  leveldb_iter_seek(iter, "zzz", 3);
  row("seek past the end", iter);
  leveldb_iter_seek(iter, NULL, 0);
  row("seek nothing", iter);
  leveldb_iter_prev(iter);
  row("before the first", iter);
  leveldb_iter_destroy(iter);
}

static void batches(leveldb_t *db) {
  leveldb_writebatch_t *batch = leveldb_writebatch_create(), *other = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "x", 1, "1", 1);
  leveldb_writebatch_put(batch, "y", 1, "2", 1);
  leveldb_writebatch_delete(batch, "x", 1);
  leveldb_writebatch_put(other, "z", 1, "", 0);
  leveldb_writebatch_append(batch, other);
  leveldb_writebatch_append(other, other);
  leveldb_writebatch_iterate(batch, "batch", on_put, on_delete);
  leveldb_writebatch_iterate(other, "other", on_put, on_delete);
  leveldb_write(db, plain, batch, &error);
  check("write");
  get(db, reads, "x");
  get(db, reads, "y");
  get(db, reads, "z");
  put(db, "y", "changed");
  leveldb_writebatch_iterate(batch, "after write", on_put, on_delete);
  leveldb_write(db, synced, batch, &error);
  check("write again");
  get(db, reads, "y");
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_iterate(batch, "cleared", on_put, on_delete);
  leveldb_write(db, plain, batch, &error);
  check("write of nothing");
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(other);
}

static void snapshots(leveldb_t *db) {
  put(db, "s", "before");
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_iterator_t *old = leveldb_create_iterator(db, reads);
  put(db, "s", "after");
  put(db, "t", "new");
  leveldb_readoptions_t *then = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(then, snapshot);
  leveldb_readoptions_set_fill_cache(then, 0);
  leveldb_readoptions_set_verify_checksums(then, 1);
  get(db, then, "s");
  get(db, then, "t");
  scan("then", db, then);
  leveldb_readoptions_set_snapshot(then, NULL);
  get(db, then, "s");
  leveldb_iter_seek(old, "s", 1);
  row("an iterator from before", old);
  leveldb_iter_destroy(old);
  leveldb_readoptions_destroy(then);
  leveldb_release_snapshot(db, snapshot);
}

static void maintenance(leveldb_t *db) {
  char key[16], value[1000];
  memset(value, 'v', sizeof value);
  for (int i = 0; i < 3000; i++) {
    snprintf(key, sizeof key, "many%06d", i);
    leveldb_put(db, plain, key, strlen(key), value, sizeof value, &error);
  }
  leveldb_compact_range(db, "many", 4, "many999999", 10);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  const char *starts[] = {"many", "nothing"}, *limits[] = {"many999999", "nothing after"};
  size_t start_lens[] = {4, 7}, limit_lens[] = {10, 13};
  uint64_t sizes[2] = {1, 1};
  leveldb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes);
  printf("sizes: many %d, none %d\n", sizes[0] > 10000 && sizes[0] < 4000000, sizes[1] == 0);
  const char *names[] = {"leveldb.num-files-at-level0", "leveldb.num-files-at-level7", "leveldb.num-files-at-level",
                         "leveldb.stats",               "leveldb.sstables",            "leveldb.approximate-memory-usage",
                         "leveldb.nothing",             "rocksdb.stats",               ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char *text = leveldb_property_value(db, names[i]);
    printf("%s: %s\n", names[i], text ? "known" : "unknown");
    if (strcmp(names[i], "leveldb.num-files-at-level0") == 0) printf("level 0: %s\n", text);
    if (strcmp(names[i], "leveldb.stats") == 0) printf("%d\n", strstr(text, "Level  Files Size(MB)") != NULL);
    leveldb_free(text);
  }
  get(db, reads, "many001234x");
  size_t len;
  value[999] = 0;
  char *found = leveldb_get(db, reads, "many001234", 10, &len, &error);
  printf("after compaction: %zu\n", len);
  leveldb_free(found);
}

static void orders(const char *folder) {
  static int one = 1, ten = 10;
  leveldb_comparator_t *comparator = leveldb_comparator_create(&one, count_destroyed, reversed, reversed_name);
  leveldb_filterpolicy_t *filter =
      leveldb_filterpolicy_create(&ten, count_destroyed, make_filter, may_match, filter_name);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_comparator(options, comparator);
  leveldb_options_set_filter_policy(options, filter);
  leveldb_t *db = leveldb_open(options, below(folder, "reversed"), &error);
  check("open reversed");
  put(db, "a", "1");
  put(db, "b", "2");
  put(db, "c", "3");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  put(db, "b", "4");
  put(db, "ab", "5");
  scan("reversed", db, reads);
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  leveldb_iter_seek(iter, "bb", 2);
  row("seek bb", iter);
  leveldb_iter_destroy(iter);
  leveldb_close(db);
  leveldb_options_t *other = leveldb_options_create();
  printf("another order: %d\n", leveldb_open(other, below(folder, "reversed"), &error) != NULL);
  check("another order");
  leveldb_options_destroy(other);
  db = leveldb_open(options, below(folder, "reversed"), &error);
  check("the same order");
  scan("reopened", db, reads);
  leveldb_close(db);
  printf("destroyed: %d\n", destroyed);
  leveldb_comparator_destroy(comparator);
  printf("destroyed: %d\n", destroyed);
  leveldb_filterpolicy_destroy(filter);
  printf("destroyed: %d\n", destroyed);
  leveldb_options_destroy(options);
}

static void destroying(const char *folder, leveldb_options_t *options, leveldb_t *db) {
  char path[4096];
  snprintf(path, sizeof path, "%s", below(folder, "main"));
  leveldb_destroy_db(options, path, &error);
  check("destroy while open");
  get(db, reads, "apple");
  leveldb_close(db);
  char current[4200];
  snprintf(current, sizeof current, "%s/CURRENT", path);
  printf("CURRENT is gone: %d\n", remove(current) == 0);
  leveldb_repair_db(options, path, &error);
  check("repair");
  db = leveldb_open(options, path, &error);
  check("open after repair");
  get(db, reads, "apple");
  leveldb_close(db);
  leveldb_destroy_db(options, path, &error);
  check("destroy");
  leveldb_destroy_db(options, path, &error);
  check("destroy of nothing");
  db = leveldb_open(options, path, &error);
  get(db, reads, "apple");
  leveldb_close(db);
  leveldb_destroy_db(options, below(folder, "a"), &error);
  check("destroy the other");
}

int main(int count, char **arguments) {
  const char *folder = count > 1 ? arguments[1] : ".";
  setvbuf(stdout, NULL, _IOLBF, 0);
  plain = leveldb_writeoptions_create();
  synced = leveldb_writeoptions_create();
  leveldb_writeoptions_set_sync(synced, 0);
  leveldb_writeoptions_set_sync(synced, 1);
  reads = leveldb_readoptions_create();
  opening(folder);

  leveldb_env_t *env = leveldb_create_default_env();
  char *directory = leveldb_env_get_test_directory(env);
  printf("a test directory: %d\n", directory != NULL && *directory == '/');
  leveldb_free(directory);
  leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
  leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_write_buffer_size(options, 1 << 20);
  leveldb_options_set_max_open_files(options, 100);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 3 << 20);
  leveldb_options_set_compression(options, 1);
  leveldb_options_set_compression(options, 0);
  leveldb_options_set_filter_policy(options, bloom);
  leveldb_t *db = leveldb_open(options, below(folder, "main"), &error);
  check("open with everything set");
  rows(db);
  batches(db);
  snapshots(db);
  maintenance(db);
  orders(folder);
  destroying(folder, options, db);

  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(bloom);
  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(plain);
  leveldb_writeoptions_destroy(synced);
  printf("version: %d\n", leveldb_major_version() == 1 && leveldb_minor_version() >= 22);
  return 0;
}
