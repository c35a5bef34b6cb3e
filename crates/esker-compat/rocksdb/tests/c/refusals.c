/* What this library refuses, or does otherwise than RocksDB. Usage: refusals FOLDER */
#include "rocksdb.h"
#include "show.h"

static char *error = NULL;

/* The whole text: it is the library's own. */
static void check(const char *what) {
  printf("%s: %s\n", what, error ? error : "ok");
  rocksdb_free(error);
  error = NULL;
}

static char *below(const char *folder, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static unsigned char drop_all(void *state, int level, const char *key, size_t key_len, const char *value,
                              size_t value_len, char **new_value, size_t *new_len, unsigned char *changed) {
  (void)state, (void)level, (void)key, (void)key_len, (void)value, (void)value_len, (void)new_value, (void)new_len;
  *changed = 0;
  return 1;
}

static const char *name(void *state) {
  (void)state;
  return "test";
}

static void nothing(void *state) { (void)state; }

static char *first(void *state, const char *key, size_t len, size_t *prefix_len) {
  (void)state;
  *prefix_len = len ? 1 : 0;
  return (char *)key;
}

static unsigned char any(void *state, const char *key, size_t len) {
  (void)state, (void)key, (void)len;
  return 1;
}

static rocksdb_options_t *fresh(void) {
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  return options;
}

static void open_with(const char *folder, rocksdb_options_t *options, const char *what) {
  rocksdb_t *db = rocksdb_open(options, below(folder, "db"), &error);
  check(what);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

int main(int count, char **arguments) {
  const char *folder = count > 1 ? arguments[1] : ".";
  setvbuf(stdout, NULL, _IOLBF, 0);
  rocksdb_options_t *options = fresh();
  rocksdb_options_set_atomic_flush(options, 1);
  open_with(folder, options, "atomic flush");
  options = fresh();
  rocksdb_options_set_compaction_style(options, 2);
  open_with(folder, options, "FIFO");
  options = fresh();
  rocksdb_options_set_compression(options, 3);
  open_with(folder, options, "bzip2");
  options = fresh();
  rocksdb_compactionfilter_t *filter = rocksdb_compactionfilter_create(NULL, nothing, drop_all, name);
  rocksdb_options_set_compaction_filter(options, filter);
  open_with(folder, options, "compaction filter");
  rocksdb_compactionfilter_destroy(filter);

  options = fresh();
  rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create(NULL, nothing, first, any, name));
  rocksdb_t *db = rocksdb_open(options, below(folder, "db"), &error);
  check("a prefix of the program's own");
  rocksdb_writeoptions_t *writes = rocksdb_writeoptions_create();
  rocksdb_put(db, writes, "key", 3, "value", 5, &error);
  check("put");
  rocksdb_put(db, writes, "key", 3, "value", 5, NULL);
  char *long_key = calloc(1, 70000);
  rocksdb_put(db, writes, long_key, 70000, "value", 5, &error);
  check("a long key");
  rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "other", 5, "value", 5);
  rocksdb_writebatch_put(batch, long_key, 70000, "value", 5);
  rocksdb_write(db, writes, batch, &error);
  check("a batch with a long key");
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_merge(batch, "key", 3, "x", 1);
  rocksdb_write(db, writes, batch, &error);
  check("a batch with a merge and no operator");
  rocksdb_writebatch_destroy(batch);
  batch = rocksdb_writebatch_create_from("\0\0\0\0\0\0\0\0\1\0\0\0\1\5ab", 16);
  rocksdb_write(db, writes, batch, &error);
  check("a batch of bad bytes");
  rocksdb_writebatch_destroy(batch);
  free(long_key);
  rocksdb_column_family_handle_t *family = rocksdb_get_default_column_family_handle(db);
  rocksdb_delete_range_cf(db, writes, family, "z", 1, "a", 1, &error);
  check("a range that ends before it starts");
  rocksdb_column_family_handle_destroy(family);

  rocksdb_readoptions_t *reads = rocksdb_readoptions_create();
  size_t len;
  rocksdb_readoptions_set_read_tier(reads, 1);
  rocksdb_free(rocksdb_get(db, reads, "key", 3, &len, &error));
  check("read tier");
  rocksdb_iterator_t *iter = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek_to_first(iter);
  printf("valid: %d\n", rocksdb_iter_valid(iter));
  rocksdb_iter_get_error(iter, &error);
  check("its iterator");
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_read_tier(reads, 0);
  rocksdb_readoptions_set_ignore_range_deletions(reads, 1);
  rocksdb_free(rocksdb_get(db, reads, "key", 3, &len, &error));
  check("ignored range deletions");
  rocksdb_readoptions_set_ignore_range_deletions(reads, 0);
  rocksdb_readoptions_set_prefix_same_as_start(reads, 1);
  iter = rocksdb_create_iterator(db, reads);
  rocksdb_iter_get_error(iter, &error);
  check("same prefix of the program's own");
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_prefix_same_as_start(reads, 0);
  char *value = rocksdb_get(db, reads, "key", 3, &len, &error);
  show_value("key", value, len, rocksdb_free);
  char *version = rocksdb_property_value(db, "esker.version");
  printf("%.6s\n", version);
  rocksdb_free(version);

  /* Kept longer than the database, which RocksDB forbids. */
  iter = rocksdb_create_iterator(db, reads);
  const rocksdb_snapshot_t *snapshot = rocksdb_create_snapshot(db);
  rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(db, reads, "key", 3, &error);
  rocksdb_close(db);
  rocksdb_iter_seek_to_first(iter);
  printf("valid: %d\n", rocksdb_iter_valid(iter));
  rocksdb_iter_get_error(iter, &error);
  check("an iterator of a closed database");
  rocksdb_iter_destroy(iter);
  rocksdb_release_snapshot(NULL, snapshot);
  printf("%.5s\n", rocksdb_pinnableslice_value(pinned, &len));
  rocksdb_pinnableslice_destroy(pinned);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);

  char command[5000];
  snprintf(command, sizeof command, "mkdir %s && printf 'MANIFEST-000004\\n' > %s/CURRENT", below(folder, "theirs"),
           below(folder, "theirs"));
  if (system(command) != 0) return 1;
  rocksdb_open(options, below(folder, "theirs"), &error);
  printf("a database of RocksDB's: %.17s\n", error);
  rocksdb_free(error);
  rocksdb_options_destroy(options);
  return 0;
}
