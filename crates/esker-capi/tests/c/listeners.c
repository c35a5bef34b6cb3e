/* Listeners: each event once, lost events, calls from a listener, and databases that a listener closes. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a listener has been told, by the thread that calls it. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  esker_db *db;
  unsigned told[17];
  uint64_t last_number, flush_job, compaction_job, created_tables, created_bytes, lost;
  bool is_flushing, is_compacting, is_closer, destroyed, failed, recovered;
} seen;

enum { FLUSH_BEGUN, FLUSH_ENDED, COMPACTION_BEGUN, COMPACTION_ENDED, FILE_CREATED, FILE_DELETED, SEALED, STALL, ERROR_, OVER,
       INGESTED, DROPPED, CHECKPOINT, FAMILY_CREATED, FAMILY_DROPPED, SNAPSHOT, LOST };

/* Notes an event; they come in the order of their numbers. */
static seen *note(void *state, const esker_moment *moment, int event) {
  seen *all = state;
  pthread_mutex_lock(&all->lock);
  CHECK(moment->number > all->last_number && moment->unix_seconds > 0);
  all->last_number = moment->number;
  all->told[event]++;
  pthread_cond_signal(&all->changed);
  pthread_mutex_unlock(&all->lock);
  return all;
}

static void flush_begun(void *state, const esker_moment *moment, const esker_flush_begun *event) {
  seen *all = note(state, moment, FLUSH_BEGUN);
  CHECK(!all->is_flushing && event->job > 0 && event->memtables > 0 && event->rows > 0 && event->bytes > 0);
  CHECK(is(event->family.name, "default") || is(event->family.name, "more"));
  all->is_flushing = true;
  all->flush_job = event->job;
}

static void flush_ended(void *state, const esker_moment *moment, const esker_flush_ended *event) {
  seen *all = note(state, moment, FLUSH_ENDED);
  CHECK(all->is_flushing && event->job == all->flush_job);
  all->is_flushing = false;
  if (event->outcome == ESKER_JOB_FAILED) {
    CHECK(esker_error_get_kind(event->error) == ESKER_IO && event->written.tables == 0);
    return;
  }
  CHECK(event->outcome == ESKER_JOB_DONE && event->error == NULL && event->written.tables == 1);
  CHECK(event->written.rows > 0 && event->written.bytes > 0);
}

static void compaction_begun(void *state, const esker_moment *moment, const esker_compaction_begun *event) {
  seen *all = note(state, moment, COMPACTION_BEGUN);
  CHECK(event->input.tables > 0 && event->input.bytes > 0 && event->input.level_to >= event->input.level_from);
  CHECK(event->input.reason <= ESKER_MANUAL && is(event->input.family.name, "default"));
  all->is_compacting = true;
  all->compaction_job = event->input.job;
}

static void compaction_ended(void *state, const esker_moment *moment, const esker_compaction_ended *event) {
  seen *all = note(state, moment, COMPACTION_ENDED);
  CHECK(all->is_compacting && event->input.job == all->compaction_job && event->error == NULL);
  CHECK(event->outcome == ESKER_JOB_DONE && (event->input.is_move || event->written.tables > 0));
  all->is_compacting = false;
}

static void file_created(void *state, const esker_moment *moment, const esker_file_created *event) {
  seen *all = note(state, moment, FILE_CREATED);
  CHECK(event->number > 0 && event->bytes > 0 && event->rows > 0 && event->family.name.len > 0);
  CHECK((event->kind == ESKER_TABLE_FILE) == (event->level != SIZE_MAX));
  if (event->cause == ESKER_BY_FLUSH) CHECK(all->is_flushing && event->job == all->flush_job);
  if (event->cause == ESKER_BY_COMPACTION) CHECK(all->is_compacting && event->job == all->compaction_job);
  if (event->cause == ESKER_BY_INGESTION) CHECK(event->job == 0);
  all->created_tables += event->kind == ESKER_TABLE_FILE;
  all->created_bytes += event->bytes;
}

static void file_deleted(void *state, const esker_moment *moment, const esker_file_deleted *event) {
  seen *all = note(state, moment, FILE_DELETED);
  CHECK(event->number > 0 && event->kind == ESKER_TABLE_FILE && event->bytes > 0 && all->created_tables > 0);
}

static void memtable_sealed(void *state, const esker_moment *moment, const esker_memtable_sealed *event) {
  note(state, moment, SEALED);
  CHECK(event->rows > 0 && event->bytes > 0 && event->family.name.len > 0);
}

static void write_stall_changed(void *state, const esker_moment *moment, const esker_write_stall_changed *event) {
  note(state, moment, STALL);
  CHECK(event->before != event->now && event->now <= ESKER_STALL_STOPPED && event->pressure >= 0);
  CHECK(event->now != ESKER_STALL_NONE || is(event->family.name, NULL));
}

static void background_error(void *state, const esker_moment *moment, const esker_background_error *event) {
  seen *all = note(state, moment, ERROR_);
  CHECK(event->task == ESKER_TASK_FLUSH && !event->is_final && esker_error_get_kind(event->error) == ESKER_IO);
  CHECK(strlen(esker_error_message(event->error)) > 0);
  all->failed = true;
}

static void background_error_over(void *state, const esker_moment *moment, const esker_background_error_over *event) {
  seen *all = note(state, moment, OVER);
  CHECK(all->failed && event->task == ESKER_TASK_FLUSH);
  all->recovered = true;
}

static void tables_ingested(void *state, const esker_moment *moment, const esker_tables_ingested *event) {
  note(state, moment, INGESTED);
  CHECK(event->tables == 1 && event->bytes > 0 && event->sequence > 0);
}

static void tables_dropped(void *state, const esker_moment *moment, const esker_tables_dropped *event) {
  note(state, moment, DROPPED);
  CHECK(event->tables >= 1 && event->bytes > 0 && is(event->family.name, "default") && event->family.id == 0);
}

static void checkpoint_made(void *state, const esker_moment *moment, const esker_checkpoint_made *event) {
  seen *all = note(state, moment, CHECKPOINT);
  CHECK(has(event->path, "checkpoint") && event->sequence > 0 && event->linked_files >= 1);
  /* It may call the database, but not wait for itself. */
  CHECK(holds(all->db, NULL, "row1", "value"));
  OK(esker_db_put(all->db, NULL, bytes("told"), bytes("1"), NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "listener", esker_db_wait_for_listeners(all->db));
}

static void family_created(void *state, const esker_moment *moment, const esker_family_created *event) {
  note(state, moment, FAMILY_CREATED);
  CHECK(is(event->family.name, "more") && event->family.id == 1);
}

static void family_dropped(void *state, const esker_moment *moment, const esker_family_dropped *event) {
  seen *all = note(state, moment, FAMILY_DROPPED);
  CHECK(is(event->family.name, "more"));
  if (all->is_closer) OK(esker_db_close(all->db));
}

static void snapshot_freed(void *state, const esker_moment *moment, const esker_snapshot_freed *event) {
  note(state, moment, SNAPSHOT);
  CHECK(!event->is_any_left || event->oldest_left <= event->sequence);
}

static void events_lost(void *state, const esker_moment *moment, const esker_events_lost *event) {
  seen *all = note(state, moment, LOST);
  CHECK(event->count > 0);
  all->lost += event->count;
}

static void destroy(void *state) {
  seen *all = state;
  pthread_mutex_lock(&all->lock);
  all->destroyed = true;
  pthread_cond_signal(&all->changed);
  pthread_mutex_unlock(&all->lock);
}

static esker_listener listener(seen *all) {
  memset(all, 0, sizeof *all);
  pthread_mutex_init(&all->lock, NULL);
  pthread_cond_init(&all->changed, NULL);
  esker_listener all_of_it = {all,
                              destroy,
                              flush_begun,
                              flush_ended,
                              compaction_begun,
                              compaction_ended,
                              file_created,
                              file_deleted,
                              memtable_sealed,
                              write_stall_changed,
                              background_error,
                              background_error_over,
                              tables_ingested,
                              tables_dropped,
                              checkpoint_made,
                              family_created,
                              family_dropped,
                              snapshot_freed,
                              events_lost};
  return all_of_it;
}

/* Waits until an event was told so often. */
static void wait_told(seen *all, int event, unsigned count) {
  pthread_mutex_lock(&all->lock);
  while (all->told[event] < count) pthread_cond_wait(&all->changed, &all->lock);
  pthread_mutex_unlock(&all->lock);
}

/* Folders with the names that the next tables would have, or none any more. */
static void block_tables(const char *dir, bool block) {
  for (unsigned number = 1; number < 300; number++) {
    char path[600];
    snprintf(path, sizeof path, "%s/%06u.sst", dir, number);
    if (block) (void)mkdir(path, 0700);
    else (void)rmdir(path);
  }
}

static void every_event(const char *dir) {
  char path[512], table[512], copy[512];
  join(path, sizeof path, dir, "told");
  join(table, sizeof table, dir, "told.table");
  join(copy, sizeof copy, dir, "told.checkpoint");
  seen all, other;
  esker_listener full = listener(&all), none_of_it = {0};
  esker_options *options = esker_options_create();
  FAILS(ESKER_INVALID_ARGUMENT, "listener", esker_options_add_listener(options, NULL));
  OK(esker_options_add_listener(options, &full));
  OK(esker_options_add_listener(options, &none_of_it));
  esker_db *db;
  OK(esker_db_open(path, options, &db));
  esker_options_free(options);
  all.db = db;

  OK(esker_db_put(db, NULL, bytes("row1"), bytes("value"), NULL));
  OK(esker_db_flush(db));
  OK(esker_db_put(db, NULL, bytes("row2"), bytes("value"), NULL));
  OK(esker_db_flush(db));
  OK(esker_db_compact_range(db, NULL, none(), none()));
  OK(esker_db_checkpoint(db, copy, NULL, NULL));
  esker_family *family;
  OK(esker_family_create(db, "more", NULL, &family));
  OK(esker_family_drop(db, family));
  esker_family_free(family);
  esker_table_writer *writer;
  OK(esker_table_writer_create(NULL, table, NULL, &writer));
  OK(esker_table_writer_put(writer, bytes("z"), bytes("1")));
  OK(esker_table_writer_finish(writer, NULL));
  esker_table_writer_free(writer);
  esker_ingestion *ingestion = esker_ingestion_create();
  OK(esker_ingestion_add(ingestion, db, NULL, table));
  OK(esker_db_ingest(db, ingestion, NULL));
  esker_ingestion_free(ingestion);
  esker_range ranges[] = {range("z", "zz")};
  OK(esker_db_delete_files_in_ranges(db, NULL, ranges, 1, NULL));
  esker_snapshot *snapshot;
  OK(esker_snapshot_create(db, &snapshot));
  esker_snapshot_free(snapshot);
  /* A thread of the database removes what compactions replaced. */
  wait_told(&all, FILE_DELETED, 3);
  OK(esker_db_wait_for_listeners(db));
  CHECK(all.told[FLUSH_BEGUN] >= 2 && all.told[FLUSH_ENDED] == all.told[FLUSH_BEGUN]);
  CHECK(all.told[COMPACTION_BEGUN] >= 1 && all.told[COMPACTION_ENDED] == all.told[COMPACTION_BEGUN]);
  CHECK(all.told[FILE_CREATED] >= 4 && all.told[SEALED] >= 2);
  CHECK(all.told[INGESTED] == 1 && all.told[DROPPED] == 1 && all.told[CHECKPOINT] == 1);
  CHECK(all.told[FAMILY_CREATED] == 1 && all.told[FAMILY_DROPPED] == 1 && all.told[SNAPSHOT] == 1);
  CHECK(holds(db, NULL, "told", "1"));

  /* A flush fails while something stands where its table should, and works again once that is gone. */
  OK(esker_db_put(db, NULL, bytes("row3"), bytes("value"), NULL));
  block_tables(path, true);
  FAILS(ESKER_IO, ".sst", esker_db_flush(db));
  FAILS(ESKER_IO, ".sst", esker_db_trouble(db));
  block_tables(path, false);
  wait_told(&all, OVER, 1);
  OK(esker_db_flush(db));
  OK(esker_db_wait_for_listeners(db));
  CHECK(all.told[ERROR_] >= 1 && all.recovered && esker_db_trouble(db) == NULL);
  CHECK(!all.destroyed && all.told[STALL] == 0 && all.lost == 0);
  OK(esker_db_close(db));
  CHECK(all.destroyed);

  /* Without a database the options let it go; one that is opened read-only has nothing to tell. */
  full = listener(&other);
  options = esker_options_create();
  OK(esker_options_add_listener(options, &full));
  OK(esker_options_set(options, "read_only", "true"));
  OK(esker_db_open(path, options, &db));
  OK(esker_db_wait_for_listeners(db));
  OK(esker_db_close(db));
  CHECK(!other.destroyed && other.last_number == 0);
  esker_options_free(options);
  CHECK(other.destroyed);
}

static void *put_one(void *state) {
  OK(esker_db_put(state, NULL, bytes("room"), bytes("1"), NULL));
  return NULL;
}

/* More happens than may wait while the listener is busy. */
static void lost(esker_env *env) {
  seen all;
  esker_listener full = listener(&all);
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  OK(esker_options_add_listener(options, &full));
  OK(esker_options_set(options, "memtable_bytes", "64KiB"));
  OK(esker_options_set(options, "memtables_max", "2"));
  esker_db *db;
  OK(esker_db_open("/lost", options, &db));
  esker_options_free(options);
  pthread_mutex_lock(&all.lock);
  for (int i = 0; i < 140000; i++) {
    esker_snapshot *snapshot;
    OK(esker_snapshot_create(db, &snapshot));
    esker_snapshot_free(snapshot);
  }
  pthread_mutex_unlock(&all.lock);
  OK(esker_db_wait_for_listeners(db));
  CHECK(all.told[LOST] >= 1 && all.lost + all.told[SNAPSHOT] == 140000);

  /* A writer that finds no room waits, and is told of. */
  OK(esker_db_pause_background_work(db));
  esker_write_options *write = esker_write_options_create();
  esker_write_options_set_no_wait(write, true);
  char value[1000] = {1};
  esker_slice big = {(const uint8_t *)value, sizeof value};
  esker_error *error = NULL;
  for (int i = 0; i < 1000 && error == NULL; i++) {
    char key[16];
    snprintf(key, sizeof key, "key%06d", i);
    error = esker_db_put(db, NULL, bytes(key), big, write);
  }
  esker_write_options_free(write);
  CHECK(esker_error_get_kind(error) == ESKER_RETRY && esker_error_is_retryable(error));
  esker_error_free(error);
  pthread_t writer;
  CHECK(pthread_create(&writer, NULL, put_one, db) == 0);
  wait_told(&all, STALL, 1);
  esker_stats stats;
  OK(esker_db_stats(db, &stats));
  CHECK(stats.write_stall == ESKER_STALL_STOPPED && stats.memtable_bytes > 64 << 10);
  OK(esker_db_resume_background_work(db));
  CHECK(pthread_join(writer, NULL) == 0);
  OK(esker_db_wait_for_listeners(db));
  CHECK(all.told[STALL] >= 2);
  OK(esker_db_close(db));
  CHECK(all.destroyed);
}

/* A listener closes the database: it is let go when it has been told the rest. */
static void closed_by_a_listener(esker_env *env) {
  seen all;
  esker_listener full = listener(&all);
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  OK(esker_options_add_listener(options, &full));
  esker_db *db;
  OK(esker_db_open("/closed", options, &db));
  esker_options_free(options);
  all.db = db;
  all.is_closer = true;
  esker_family *family;
  OK(esker_family_create(db, "more", NULL, &family));
  OK(esker_family_drop(db, family));
  pthread_mutex_lock(&all.lock);
  while (!all.destroyed) pthread_cond_wait(&all.changed, &all.lock);
  pthread_mutex_unlock(&all.lock);
  CHECK(all.told[FAMILY_DROPPED] == 1);
  esker_family_free(family);
}

void test_listeners(const char *dir) {
  every_event(dir);
  esker_env *env = esker_env_create_in_memory();
  lost(env);
  closed_by_a_listener(env);
  esker_env_free(env);
}
