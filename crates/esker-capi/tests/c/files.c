/* Families as files, rows from behind, followers, repairs, databases without background work. */
#include "check.h"

static esker_db *open_in(esker_env *env, const char *path, esker_options *options) {
  esker_options *own = options == NULL ? esker_options_create() : options;
  esker_options_set_env(own, env);
  esker_db *db;
  OK(esker_db_open(path, own, &db));
  esker_options_free(own);
  return db;
}

static void families(esker_env *env) {
  esker_db *from = open_in(env, "/from", NULL), *into = open_in(env, "/into", NULL);
  esker_family_options *family = esker_family_options_create();
  OK(esker_family_options_set(family, "blob_value_bytes_min", "1000"));
  OK(esker_family_options_set_key_order(family, "esker.reverse-bytewise"));
  esker_family *source, *copy;
  OK(esker_family_create(from, "source", family, &source));
  char value[2000];
  memset(value, 'v', sizeof value - 1);
  value[sizeof value - 1] = '\0';
  OK(esker_db_put(from, source, bytes("a"), bytes("1"), NULL));
  OK(esker_db_put(from, source, bytes("b"), bytes(value), NULL));
  esker_exported exported;
  OK(esker_family_export(from, source, "/export", &exported));
  CHECK(exported.sequence == 2 && exported.tables == 1 && exported.blob_files == 1 && exported.bytes > 2000);
  FAILS(ESKER_INVALID_ARGUMENT, "export", esker_family_export(from, source, "/export", NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "null", esker_family_export(from, source, NULL, NULL));

  esker_imported imported;
  OK(esker_family_import(into, "copy", "/export", NULL, &copy, &imported));
  CHECK(imported.tables == 1 && imported.blob_files == 1 && imported.bytes == exported.bytes && imported.sequence >= 2);
  CHECK(holds(into, copy, "a", "1") && holds(into, copy, "b", value) && holds(into, NULL, "a", NULL));
  CHECK(is(esker_family_key_order(copy), "esker.reverse-bytewise") && is(esker_family_key_order(NULL), NULL));
  int order = 7;
  OK(esker_family_compare(into, copy, bytes("a"), bytes("b"), &order));
  CHECK(order == 1);
  OK(esker_family_compare(into, NULL, bytes("a"), bytes("b"), &order));
  CHECK(order == -1);
  OK(esker_family_compare(into, NULL, bytes("a"), bytes("a"), &order));
  CHECK(order == 0);
  uint32_t id = esker_family_id(copy);
  esker_family_free(copy);
  OK(esker_family_open_by_id(into, id, &copy));
  CHECK(is(esker_family_name(copy), "copy"));
  esker_family *absent;
  FAILS(ESKER_NOT_FOUND, "7", esker_family_open_by_id(into, 777, &absent));
  CHECK(absent == NULL);
  FAILS(ESKER_INVALID_ARGUMENT, "copy", esker_family_import(into, "copy", "/export", NULL, &absent, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_family_import(into, "other", "/nowhere", NULL, &absent, NULL));

  /* Other settings, but no other order of keys; the export goes. */
  esker_import_options *options = esker_import_options_create();
  esker_family_options *other = esker_family_options_create();
  esker_import_options_set_family_options(options, other);
  FAILS(ESKER_INVALID_ARGUMENT, "order", esker_family_import(into, "other", "/export", options, &absent, NULL));
  CHECK(absent == NULL);
  OK(esker_family_options_set(family, "memtable_bytes", "1MiB"));
  esker_import_options_set_family_options(options, family);
  esker_import_options_set_move_files(options, true);
  esker_family *moved;
  OK(esker_family_import(into, "moved", "/export", options, &moved, NULL));
  esker_buffer *text = esker_buffer_create();
  OK(esker_db_family_settings(into, moved, text));
  CHECK(has(esker_buffer_slice(text), "memtable_bytes=1048576;") && holds(into, moved, "b", value));
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_family_import(into, "again", "/export", NULL, &absent, NULL));
  esker_import_options_set_family_options(options, NULL);
  esker_buffer_free(text);
  esker_import_options_free(options);
  esker_family_options_free(family);
  esker_family_options_free(other);
  esker_family_free(source);
  esker_family_free(copy);
  esker_family_free(moved);
  OK(esker_db_close(from));
  OK(esker_db_close(into));
}

static void behind(esker_env *env) {
  esker_db *db = open_in(env, "/behind", NULL);
  OK(esker_db_put(db, NULL, bytes("b"), bytes("own"), NULL));
  esker_table_writer *writer;
  OK(esker_table_writer_create(env, "/table", NULL, &writer));
  OK(esker_table_writer_put(writer, bytes("a"), bytes("file")));
  OK(esker_table_writer_put(writer, bytes("b"), bytes("file")));
  OK(esker_table_writer_finish(writer, NULL));
  esker_table_writer_free(writer);
  esker_ingestion *ingestion = esker_ingestion_create();
  OK(esker_ingestion_add(ingestion, db, NULL, "/table"));
  esker_ingestion_set_behind(ingestion, true);
  esker_ingested ingested;
  OK(esker_db_ingest(db, ingestion, &ingested));
  CHECK(ingested.left_out == 1 && holds(db, NULL, "a", "file") && holds(db, NULL, "b", "own"));
  esker_ingestion_free(ingestion);

  OK(esker_table_writer_create(env, "/deletes", NULL, &writer));
  OK(esker_table_writer_delete(writer, bytes("a")));
  OK(esker_table_writer_finish(writer, NULL));
  esker_table_writer_free(writer);
  ingestion = esker_ingestion_create();
  OK(esker_ingestion_add(ingestion, db, NULL, "/deletes"));
  esker_ingestion_set_behind(ingestion, true);
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_db_ingest(db, ingestion, NULL));
  CHECK(holds(db, NULL, "a", "file"));
  esker_ingestion_free(ingestion);
  OK(esker_db_close(db));
}

static void follow(esker_env *env) {
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  esker_db *absent;
  FAILS(ESKER_NOT_FOUND, "", esker_db_follow("/followed", options, &absent));
  FAILS(ESKER_INVALID_ARGUMENT, "path", esker_db_follow(NULL, options, &absent));
  CHECK(absent == NULL);
  esker_db *db = open_in(env, "/followed", NULL), *follower;
  OK(esker_db_put(db, NULL, bytes("a"), bytes("1"), NULL));
  OK(esker_db_follow("/followed", options, &follower));
  CHECK(holds(follower, NULL, "a", "1"));
  esker_snapshot *snapshot;
  OK(esker_snapshot_create(follower, &snapshot));
  esker_family *family, *seen;
  OK(esker_family_create(db, "more", NULL, &family));
  OK(esker_db_put(db, family, bytes("b"), bytes("2"), NULL));
  OK(esker_db_flush(db));
  OK(esker_db_put(db, NULL, bytes("a"), bytes("3"), NULL));
  CHECK(holds(follower, NULL, "a", "1"));
  FAILS(ESKER_NOT_FOUND, "more", esker_family_open(follower, "more", &seen));
  esker_caught_up caught;
  OK(esker_db_catch_up(follower, &caught));
  CHECK(caught.sequence == esker_db_last_sequence(db) && caught.batches >= 1 && caught.edit_groups >= 1);
  CHECK(esker_db_last_sequence(follower) == caught.sequence);
  OK(esker_family_open(follower, "more", &seen));
  CHECK(holds(follower, NULL, "a", "3") && holds(follower, seen, "b", "2"));

  /* A snapshot keeps its moment. */
  esker_read_options *read = esker_read_options_create();
  esker_read_options_set_snapshot(read, snapshot);
  esker_value *value = esker_value_create();
  esker_slice slice;
  OK(esker_db_get(follower, NULL, bytes("a"), read, value, &slice));
  CHECK(is(slice, "1"));
  esker_value_free(value);
  esker_read_options_free(read);
  esker_snapshot_free(snapshot);

  /* Nothing can be written there, and only followers catch up. */
  FAILS(ESKER_READ_ONLY, "", esker_db_put(follower, NULL, bytes("a"), bytes("4"), NULL));
  esker_batch *batch = esker_batch_create();
  OK(esker_batch_put(batch, NULL, bytes("a"), bytes("4")));
  FAILS(ESKER_READ_ONLY, "", esker_db_write(follower, batch, NULL));
  FAILS(ESKER_READ_ONLY, "", esker_db_write_and_keep(follower, batch, NULL));
  esker_batch_free(batch);
  FAILS(ESKER_READ_ONLY, "", esker_db_checkpoint(follower, "/copy", NULL, NULL));
  FAILS(ESKER_READ_ONLY, "", esker_family_export(follower, NULL, "/copy", NULL));
  esker_transaction *transaction;
  FAILS(ESKER_INVALID_ARGUMENT, "transactions", esker_transaction_begin(follower, NULL, &transaction));
  uint32_t kind = 9;
  OK(esker_db_transaction_kind(follower, &kind));
  CHECK(kind == ESKER_NO_TRANSACTIONS);
  FAILS(ESKER_INVALID_ARGUMENT, "follower", esker_db_catch_up(db, &caught));
  OK(esker_db_close(db));
  OK(esker_db_catch_up(follower, NULL));
  OK(esker_db_close(follower));
  esker_family_free(seen);
  esker_family_free(family);
  esker_options_free(options);
}

static void without_background_work(esker_env *env) {
  esker_options *options = esker_options_create();
  OK(esker_options_set(options, "memtable_bytes", "64KiB"));
  OK(esker_options_set(options, "memtables_max", "2"));
  esker_options_set_background_work(options, false);
  esker_db *db = open_in(env, "/idle", options);
  char value[1000] = {1}, key[16];
  esker_slice big = {(const uint8_t *)value, sizeof value};
  esker_error *error = NULL;
  int rows = 0;
  for (; rows < 100000 && error == NULL; rows++) {
    snprintf(key, sizeof key, "key%06d", rows);
    error = esker_db_put(db, NULL, bytes(key), big, NULL);
  }
  CHECK(esker_error_get_kind(error) == ESKER_RETRY && esker_error_is_retryable(error));
  CHECK(strstr(esker_error_message(error), "without background work") != NULL);
  esker_error_free(error);
  esker_stats stats;
  OK(esker_db_stats(db, &stats));
  CHECK(stats.table_bytes == 0 && stats.prepared_bytes == 0 && stats.compactions_running == 0);
  OK(esker_db_start_background_work(db));
  OK(esker_db_put(db, NULL, bytes(key), big, NULL));
  OK(esker_db_wait_idle(db));
  OK(esker_db_stats(db, &stats));
  CHECK(stats.table_bytes > 0 && stats.writers_waiting == 0 && stats.write_pressure >= 0);

  /* Figures by family, and how long things took. */
  esker_family_stats_list *families;
  OK(esker_db_family_stats(db, &families));
  size_t count = 0;
  const esker_family_stats *family = esker_family_stats_items(families, &count);
  CHECK(count == 1 && is(family->name, "default") && family->estimated_keys == (uint64_t)rows);
  CHECK(family->blob_files > 0 && family->blob_bytes > 64 << 10 && family->memtables_waiting == 0 && family->write_pressure >= 0);
  esker_family_stats_free(families);
  esker_histograms *histograms;
  OK(esker_db_histograms(db, &histograms));
  const esker_histogram *times = esker_histograms_items(histograms, &count);
  CHECK(count >= 2);
  uint64_t flushes = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t sum = 0;
    for (size_t b = 0; b < times[i].bucket_count; b++) {
      CHECK(b == 0 || times[i].buckets[b].end_us > times[i].buckets[b - 1].end_us);
      sum += times[i].buckets[b].count;
    }
    CHECK(sum == times[i].count && times[i].buckets[times[i].bucket_count - 1].end_us == UINT64_MAX);
    if (has(times[i].name, "flush")) flushes += times[i].count;
  }
  CHECK(flushes >= 1);
  esker_histograms_free(histograms);
  esker_buffer *text = esker_buffer_create();
  OK(esker_db_metrics_text(db, text));
  CHECK(has(esker_buffer_slice(text), "# EOF") && has(esker_buffer_slice(text), "family=\"default\""));
  FAILS(ESKER_INVALID_ARGUMENT, "buffer", esker_db_metrics_text(db, NULL));
  esker_buffer_free(text);
  OK(esker_db_close(db));
}

static int backwards(void *state, esker_slice a, esker_slice b) {
  (void)state;
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len == 0 ? 0 : memcmp(b.data, a.data, len);
  return order != 0 ? order : (a.len < b.len) - (a.len > b.len);
}

static void count_destroyed(void *state) { ++*(int *)state; }

/* The first table that a check names. */
static void see_table(void *state, const esker_file_report *report) {
  char *path = state;
  if (!is(report->role, "sst")) return;
  CHECK(report->path.len < 512);
  memcpy(path, report->path.data, report->path.len);
  path[report->path.len] = '\0';
}

static void repair(const char *dir) {
  char path[512], table[512] = "";
  join(path, sizeof path, dir, "broken");
  int destroyed = 0;
  esker_comparator comparator = {&destroyed, count_destroyed, "test.backwards", backwards, NULL, NULL};
  esker_repaired *repaired;
  FAILS(ESKER_NOT_FOUND, "", esker_repair(NULL, path, NULL, &repaired));
  CHECK(repaired == NULL && esker_repaired_report(NULL) == NULL);

  esker_options *options = esker_options_create();
  esker_family_options *family = esker_family_options_create();
  OK(esker_family_options_set_comparator(family, &comparator));
  OK(esker_family_options_set(family, "block_bytes", "1KiB"));
  OK(esker_options_set_family(options, "default", family));
  esker_family_options_free(family);
  esker_db *db;
  OK(esker_db_open(path, options, &db));
  char key[16];
  for (int i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "key%06d", i);
    OK(esker_db_put(db, NULL, bytes(key), bytes("a value that takes some room"), NULL));
  }
  OK(esker_db_flush(db));
  esker_batch *batch = esker_batch_create();
  OK(esker_batch_put(batch, NULL, bytes("a"), bytes("1")));
  OK(esker_db_prepare(db, bytes("one"), batch, NULL));
  esker_batch_free(batch);
  FAILS(ESKER_LOCKED, "", esker_repair(NULL, path, NULL, &repaired));
  OK(esker_db_close(db));
  esker_verified verified;
  OK(esker_verify(NULL, path, NULL, see_table, table, &verified));
  FILE *file = fopen(table, "r+b");
  CHECK(file != NULL && fseek(file, 200, SEEK_SET) == 0);
  int byte = fgetc(file);
  CHECK(byte != EOF && fseek(file, 200, SEEK_SET) == 0 && fputc(byte ^ 0x40, file) != EOF && fclose(file) == 0);

  /* An order of keys that is not built in must be given. */
  esker_verify_options *orders = esker_verify_options_create();
  FAILS(ESKER_INVALID_ARGUMENT, "comparator", esker_verify_options_add_comparator(orders, NULL));
  OK(esker_verify(NULL, path, orders, NULL, NULL, &verified));
  CHECK(verified.damaged == 0);
  OK(esker_verify_options_add_comparator(orders, &comparator));
  OK(esker_verify(NULL, path, orders, NULL, NULL, &verified));
  CHECK(verified.damaged == 1);
  esker_verify_options_free(orders);
  FAILS(ESKER_INVALID_ARGUMENT, "test.backwards", esker_repair(NULL, path, NULL, &repaired));
  esker_repair_options *how = esker_repair_options_create();
  esker_comparator nameless = comparator;
  nameless.name = NULL;
  FAILS(ESKER_INVALID_ARGUMENT, "name", esker_repair_options_add_comparator(how, &nameless));
  OK(esker_repair_options_add_comparator(how, &comparator));
  esker_repair_options_set_dry_run(how, true);
  OK(esker_repair(NULL, path, how, &repaired));
  const esker_repair_report *report = esker_repaired_report(repaired);
  CHECK(report->damaged_count == 1 && report->tables_written == 0 && !report->is_lossless);
  esker_repaired_free(repaired);
  file = fopen(table, "rb");
  CHECK(file != NULL && fclose(file) == 0);

  esker_repair_options_set_dry_run(how, false);
  OK(esker_repair(NULL, path, how, &repaired));
  esker_repair_options_free(how);
  report = esker_repaired_report(repaired);
  CHECK(!report->is_lossless && report->manifest == ESKER_MANIFEST_WHOLE && report->manifest_damage_count == 0);
  CHECK(report->family_count == 1 && is(report->families[0], "default") && report->unplaced_count == 0 &&
        report->imported_count == 0);
  CHECK(report->prepared_count == 1 && is(report->prepared[0], "one") && report->tables_written >= 1);
  CHECK(report->log_damages == 0 && report->log_lost_bytes == 0 && !report->log_begins_late);
  CHECK(report->set_aside_count >= 1 && report->damaged_count == 1);
  const esker_damaged_file *damaged = report->damaged;
  CHECK(is(damaged->path, table) && is(damaged->family, "default") && damaged->damage.len > 0 && damaged->is_loss);
  CHECK(damaged->rows_kept > 800 && damaged->rows_kept + damaged->rows_lost == 1000 && damaged->rows_lost > 0);
  CHECK(damaged->lost_range_count == 1 && damaged->lost_bytes > 0 && !damaged->range_deletions_lost);
  /* The first block, in descending order. */
  CHECK(is(damaged->lost_ranges[0].after, NULL) && has(damaged->lost_ranges[0].before, "key000"));
  esker_repaired_free(repaired);
  CHECK(destroyed == 2);

  OK(esker_db_open(path, options, &db));
  esker_options_free(options);
  CHECK(holds(db, NULL, "key000001", "a value that takes some room") && holds(db, NULL, "key000999", NULL));
  OK(esker_db_roll_back_prepared(db, bytes("one"), NULL));
  OK(esker_db_close(db));
  CHECK(destroyed == 3);

  /* There is nothing left to repair. */
  OK(esker_destroy(NULL, path));
}

void test_files(const char *dir) {
  esker_env *env = esker_env_create_in_memory();
  families(env);
  behind(env);
  follow(env);
  without_background_work(env);
  esker_env_free(env);
  repair(dir);
}
