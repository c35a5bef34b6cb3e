/* Flushes, compactions, checkpoints, checks, figures; tables from outside; two-phase commit. */
#include "check.h"

typedef struct {
  char table[512];
  char damage[512];
  size_t files;
} verdicts;

static void see(void *state, const esker_file_report *report) {
  verdicts *all = state;
  all->files++;
  if (is(report->role, "sst")) {
    CHECK(report->path.len < sizeof all->table && report->size_bytes > 0);
    memcpy(all->table, report->path.data, report->path.len);
    all->table[report->path.len] = '\0';
  }
  if (report->damage_count > 0) {
    esker_slice text = report->damages[0];
    snprintf(all->damage, sizeof all->damage, "%.*s", (int)text.len, (const char *)text.data);
  }
}

void test_maintenance(const char *dir) {
  char path[512], copy[512];
  join(path, sizeof path, dir, "maintained");
  join(copy, sizeof copy, dir, "copy");
  esker_db *db;
  OK(esker_db_open(path, NULL, &db));
  char key[16];
  for (int i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "key%06d", i);
    OK(esker_db_put(db, NULL, bytes(key), bytes("a value that takes some room"), NULL));
  }
  OK(esker_db_flush_family(db, NULL));
  OK(esker_db_compact_range(db, NULL, none(), none()));
  OK(esker_db_pause_background_work(db));
  OK(esker_db_resume_background_work(db));
  OK(esker_db_set_background_bytes_per_second(db, 0));
  OK(esker_db_wait_idle(db));
  bool idle = false;
  OK(esker_db_is_idle(db, &idle));
  CHECK(idle);

  /* Figures. */
  uint64_t figure = 0;
  OK(esker_db_approximate_count(db, NULL, range("key000000", "key000500"), &figure));
  CHECK(figure > 300 && figure < 700);
  OK(esker_db_approximate_size(db, NULL, range("key", "kez"), &figure));
  CHECK(figure > 1000);
  esker_buffer *text = esker_buffer_create();
  OK(esker_db_property(db, NULL, "estimate-keys", text));
  CHECK(is(esker_buffer_slice(text), "1000"));
  FAILS(ESKER_INVALID_ARGUMENT, "estimate-keys", esker_db_property(db, NULL, "mood", text));
  esker_names *names = esker_property_names();
  size_t count = 0;
  const esker_slice *items = esker_names_items(names, &count);
  CHECK(count > 10);
  for (size_t i = 0; i < count; i++) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)items[i].len, (const char *)items[i].data);
    OK(esker_db_property(db, NULL, name, text));
    CHECK(esker_buffer_slice(text).len > 0);
  }
  esker_names_free(names);
  esker_buffer_free(text);
  esker_stats stats;
  OK(esker_db_stats(db, &stats));
  CHECK(stats.table_bytes > 1000 && stats.snapshots == 0 && stats.cache_capacity_bytes > 0);
  esker_counters *counters;
  OK(esker_db_counters(db, &counters));
  const esker_counter *counter = esker_counters_items(counters, &count);
  uint64_t writes = 0;
  for (size_t i = 0; i < count; i++) {
    if (is(counter[i].name, "writes")) writes = counter[i].value;
  }
  CHECK(writes == 1000);
  esker_counters_free(counters);
  esker_levels *levels;
  OK(esker_db_levels(db, NULL, &levels));
  const esker_level *level = esker_levels_items(levels, &count);
  CHECK(count == 7);
  uint64_t files = 0;
  for (size_t i = 0; i < count; i++) files += level[i].files;
  CHECK(files >= 1 && level[0].score < 1.0);
  esker_levels_free(levels);
  CHECK(esker_db_trouble(db) == NULL);

  /* A copy, as it was. */
  esker_checkpoint_options *options = esker_checkpoint_options_create();
  esker_checkpoint_options_set_wal_bytes_max(options, 0);
  OK(esker_db_put(db, NULL, bytes("late"), bytes("1"), NULL));
  esker_checkpoint checkpoint;
  OK(esker_db_checkpoint(db, copy, options, &checkpoint));
  CHECK(checkpoint.sequence == 1001 && checkpoint.linked_files >= 1 && checkpoint.written_bytes > 0);
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_db_checkpoint(db, copy, NULL, NULL));
  esker_checkpoint_options_free(options);

  /* Whole tables go at once. */
  esker_range ranges[] = {range("key", "kez")};
  esker_deleted_files deleted;
  OK(esker_db_delete_files_in_ranges(db, NULL, ranges, 1, &deleted));
  CHECK(deleted.tables >= 1 && deleted.bytes > 1000 && holds(db, NULL, "key000001", NULL));
  CHECK(holds(db, NULL, "late", "1"));
  OK(esker_db_close(db));
  OK(esker_destroy(NULL, path));

  /* Every byte is read; a byte that changed is found. */
  verdicts all = {"", "", 0};
  esker_verified verified;
  OK(esker_verify(NULL, copy, NULL, see, &all, &verified));
  CHECK(verified.damaged == 0 && verified.files == all.files && verified.size_bytes > 1000 && all.table[0] != '\0');
  FILE *file = fopen(all.table, "r+b");
  CHECK(file != NULL && fseek(file, 200, SEEK_SET) == 0);
  int byte = fgetc(file);
  CHECK(byte != EOF && fseek(file, 200, SEEK_SET) == 0 && fputc(byte ^ 0x40, file) != EOF && fclose(file) == 0);
  OK(esker_verify(NULL, copy, NULL, see, &all, &verified));
  CHECK(verified.damaged == 1 && all.damage[0] != '\0');
  OK(esker_db_open(copy, NULL, &db));
  esker_iterator *iterator;
  OK(esker_iterator_create(db, NULL, NULL, &iterator));
  esker_row row;
  esker_error *error = esker_iterator_seek_to_first(iterator, &row);
  while (error == NULL && row.key.data != NULL) error = esker_iterator_next(iterator, &row);
  CHECK(esker_error_get_kind(error) == ESKER_CORRUPTION && row.key.data == NULL);
  CHECK(has(esker_error_file(error), ".sst") && esker_error_offset(error, &figure));
  esker_error_free(error);
  esker_iterator_free(iterator);
  esker_value *value = esker_value_create();
  snprintf(key, sizeof key, "key%06d", 1);
  error = esker_db_get(db, NULL, bytes(key), NULL, value, NULL);
  CHECK(esker_error_get_kind(error) == ESKER_CORRUPTION && is(esker_error_family(error), "default"));
  esker_error_free(error);
  esker_value_free(value);
  OK(esker_db_close(db));
  OK(esker_destroy(NULL, copy));
}

void test_tables(const char *dir) {
  char path[512], table[512];
  join(path, sizeof path, dir, "ingests");
  join(table, sizeof table, dir, "table");
  esker_db *db;
  esker_options *options = esker_options_create();
  esker_family_options *family = esker_family_options_create();
  OK(esker_family_options_set_builtin_merge_operator(family, "esker.append"));
  OK(esker_options_set_family(options, "default", family));
  OK(esker_db_open(path, options, &db));
  esker_options_free(options);
  OK(esker_db_put(db, NULL, bytes("b"), bytes("old"), NULL));
  OK(esker_db_put(db, NULL, bytes("c"), bytes("old"), NULL));
  OK(esker_db_put(db, NULL, bytes("x"), bytes("old"), NULL));

  esker_table_writer *writer;
  OK(esker_table_writer_create(NULL, table, family, &writer));
  OK(esker_table_writer_put(writer, bytes("a"), bytes("new")));
  OK(esker_table_writer_merge(writer, bytes("b"), bytes("er")));
  OK(esker_table_writer_delete(writer, bytes("c")));
  FAILS(ESKER_INVALID_ARGUMENT, "order", esker_table_writer_put(writer, bytes("b1"), bytes("late")));
  OK(esker_table_writer_delete_range(writer, bytes("w"), bytes("y")));
  CHECK(esker_table_writer_estimated_bytes(writer) > 0);
  esker_table_file file;
  OK(esker_table_writer_finish(writer, &file));
  CHECK(file.entries == 3 && file.range_deletions == 1 && file.file_bytes > 0);
  FAILS(ESKER_INVALID_ARGUMENT, "finished", esker_table_writer_put(writer, bytes("z"), bytes("late")));
  FAILS(ESKER_INVALID_ARGUMENT, "finished", esker_table_writer_finish(writer, NULL));
  CHECK(esker_table_writer_estimated_bytes(writer) == 0);
  esker_table_writer_free(writer);

  esker_ingestion *ingestion = esker_ingestion_create();
  FAILS(ESKER_INVALID_ARGUMENT, "no files", esker_db_ingest(db, ingestion, NULL));
  OK(esker_ingestion_add(ingestion, db, NULL, table));
  esker_ingestion_set_move_files(ingestion, true);
  esker_ingested ingested;
  OK(esker_db_ingest(db, ingestion, &ingested));
  CHECK(ingested.tables == 1 && ingested.bytes == file.file_bytes && ingested.sequence == esker_db_last_sequence(db));
  esker_ingestion_free(ingestion);
  CHECK(holds(db, NULL, "a", "new") && holds(db, NULL, "b", "older") && holds(db, NULL, "c", NULL));
  CHECK(holds(db, NULL, "x", NULL) && fopen(table, "rb") == NULL);

  /* One that was not finished leaves nothing. */
  OK(esker_table_writer_create(NULL, table, family, &writer));
  OK(esker_table_writer_put(writer, bytes("a"), bytes("1")));
  esker_table_writer_free(writer);
  CHECK(fopen(table, "rb") == NULL);
  esker_family_options_free(family);
  OK(esker_db_close(db));
}

static bool count_one(void *state, const esker_mutation *mutation) {
  CHECK(mutation->kind == ESKER_PUT);
  ++*(int *)state;
  return true;
}

void test_prepared(const char *dir) {
  char path[512];
  join(path, sizeof path, dir, "prepares");
  esker_db *db;
  OK(esker_db_open(path, NULL, &db));
  esker_batch *batch = esker_batch_create();
  esker_write_options *write = esker_write_options_create();
  OK(esker_write_options_set_durability(write, ESKER_NO_LOG));
  OK(esker_batch_put(batch, NULL, bytes("a"), bytes("1")));
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_db_prepare(db, bytes("one"), batch, write));
  OK(esker_write_options_set_durability(write, ESKER_SYNC));
  OK(esker_db_prepare(db, bytes("one"), batch, write));
  CHECK(esker_batch_count(batch) == 0);
  OK(esker_batch_put(batch, NULL, bytes("b"), bytes("2")));
  FAILS(ESKER_INVALID_ARGUMENT, "one", esker_db_prepare(db, bytes("one"), batch, write));
  CHECK(esker_batch_count(batch) == 1);
  OK(esker_db_prepare(db, bytes("two"), batch, write));
  CHECK(holds(db, NULL, "a", NULL));
  OK(esker_db_close(db));

  OK(esker_db_open(path, NULL, &db));
  esker_prepared_list *list;
  OK(esker_db_prepared(db, &list));
  size_t count = 0;
  const esker_prepared *prepared = esker_prepared_items(list, &count);
  CHECK(count == 2 && is(prepared[0].name, "one") && is(prepared[1].name, "two"));
  CHECK(prepared[0].count == 1 && prepared[0].size_bytes > 1);
  int seen = 0;
  OK(esker_prepared_visit(list, 1, count_one, &seen));
  CHECK(seen == 1);
  FAILS(ESKER_INVALID_ARGUMENT, "item", esker_prepared_visit(list, 2, count_one, &seen));
  esker_prepared_free(list);

  OK(esker_batch_put(batch, NULL, bytes("with"), bytes("it")));
  OK(esker_db_commit_prepared(db, bytes("one"), batch, write));
  CHECK(holds(db, NULL, "a", "1") && holds(db, NULL, "with", "it") && esker_batch_count(batch) == 0);
  FAILS(ESKER_NOT_FOUND, "one", esker_db_commit_prepared(db, bytes("one"), NULL, write));
  OK(esker_db_prepared_named(db, bytes("two"), &list));
  esker_prepared_items(list, &count);
  CHECK(count == 1);
  esker_prepared_free(list);
  OK(esker_db_roll_back_prepared(db, bytes("two"), write));
  OK(esker_db_prepared_named(db, bytes("two"), &list));
  esker_prepared_items(list, &count);
  CHECK(count == 0 && holds(db, NULL, "b", NULL));
  esker_prepared_free(list);
  OK(esker_batch_put(batch, NULL, bytes("c"), bytes("3")));
  OK(esker_db_prepare(db, bytes("three"), batch, write));
  OK(esker_db_commit_prepared(db, bytes("three"), NULL, NULL));
  CHECK(holds(db, NULL, "c", "3"));
  esker_write_options_free(write);
  esker_batch_free(batch);
  OK(esker_db_close(db));
}
