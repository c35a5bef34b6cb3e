/* Options, opening and closing, families, writes, batches. */
#include "check.h"

static esker_db *open_in(esker_env *env, const char *path) {
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  esker_db *db;
  OK(esker_db_open(path, options, &db));
  esker_options_free(options);
  return db;
}

void test_options(void) {
  esker_options *options = esker_options_create();
  OK(esker_options_set(options, "memory_budget_bytes", "64MiB"));
  OK(esker_options_set(options, "block_bytes", "8KiB"));
  FAILS(ESKER_INVALID_ARGUMENT, "no_such_setting", esker_options_set(options, "no_such_setting", "1"));
  FAILS(ESKER_INVALID_ARGUMENT, "durability", esker_options_set(options, "durability", "brave"));

  esker_family_options *family = esker_family_options_create();
  OK(esker_family_options_set(family, "levels", "5"));
  OK(esker_family_options_set_text(family, "memtables_max=3;aging=rewrite:3600"));
  OK(esker_family_options_set_key_order(family, "esker.reverse-bytewise"));
  FAILS(ESKER_INVALID_ARGUMENT, "alphabetical", esker_family_options_set_key_order(family, "alphabetical"));
  OK(esker_family_options_set_builtin_merge_operator(family, "esker.u64-add"));
  OK(esker_family_options_set_builtin_merge_operator(family, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "subtract", esker_family_options_set_builtin_merge_operator(family, "subtract"));
  esker_buffer *text = esker_buffer_create();
  OK(esker_family_options_text(family, text));
  CHECK(has(esker_buffer_slice(text), "levels=5;") && has(esker_buffer_slice(text), "aging=rewrite:3600;"));
  esker_family_options *copy = esker_family_options_clone(family);
  esker_family_options_free(family);
  OK(esker_family_options_text(copy, text));
  CHECK(has(esker_buffer_slice(text), "memtables_max=3;"));

  esker_env *env = esker_env_create_in_memory();
  esker_options_set_env(options, env);
  OK(esker_options_set_family(options, "backwards", copy));
  esker_db *db = NULL;
  FAILS(ESKER_NOT_FOUND, "backwards", esker_db_open("/db", options, &db));
  CHECK(db == NULL);
  esker_options_create_missing_families(options, true);
  OK(esker_db_open("/db", options, &db));
  esker_db *second;
  FAILS(ESKER_LOCKED, "", esker_db_open("/db", options, &second));
  CHECK(second == NULL);

  esker_family *backwards;
  OK(esker_family_open(db, "backwards", &backwards));
  OK(esker_db_put(db, backwards, bytes("a"), bytes("1"), NULL));
  OK(esker_db_put(db, backwards, bytes("b"), bytes("2"), NULL));
  esker_iterator *iterator;
  OK(esker_iterator_create(db, backwards, NULL, &iterator));
  esker_row row;
  OK(esker_iterator_seek_to_first(iterator, &row));
  CHECK(is(row.key, "b") && is(row.value, "2"));
  esker_iterator_free(iterator);

  OK(esker_db_change_family_settings(db, backwards, "memtable_bytes=1MiB;file_bytes=2MiB"));
  OK(esker_db_family_settings(db, backwards, text));
  CHECK(has(esker_buffer_slice(text), "memtable_bytes=1048576;") && has(esker_buffer_slice(text), "file_bytes=2097152;"));
  FAILS(ESKER_INVALID_ARGUMENT, "levels", esker_db_change_family_settings(db, backwards, "levels=7"));
  FAILS(ESKER_INVALID_ARGUMENT, "name=value", esker_db_change_family_settings(db, NULL, "levels"));
  OK(esker_db_family_settings(db, NULL, text));
  CHECK(has(esker_buffer_slice(text), "block_bytes=8192;"));

  esker_family_free(backwards);
  OK(esker_db_close(db));
  esker_buffer_free(text);
  esker_env_free(env);
  esker_family_options_free(copy);
  esker_options_free(options);
}

void test_database(void) {
  esker_env *env = esker_env_create_in_memory();
  esker_db *db = open_in(env, "/db");
  CHECK(esker_db_last_sequence(db) == 0);
  OK(esker_db_put(db, NULL, bytes("key"), bytes("value"), NULL));
  CHECK(esker_db_last_sequence(db) == 1);
  CHECK(holds(db, NULL, "key", "value") && holds(db, NULL, "other", NULL));
  OK(esker_db_put(db, NULL, bytes("empty"), none(), NULL));
  CHECK(holds(db, NULL, "empty", ""));
  OK(esker_db_delete(db, NULL, bytes("key"), NULL));
  CHECK(holds(db, NULL, "key", NULL));
  OK(esker_db_single_delete(db, NULL, bytes("empty"), NULL));
  CHECK(holds(db, NULL, "empty", NULL));
  uint32_t kind = 9;
  OK(esker_db_transaction_kind(db, &kind));
  CHECK(kind == ESKER_NO_TRANSACTIONS);

  /* Families. */
  esker_family_options *adding = esker_family_options_create();
  OK(esker_family_options_set_builtin_merge_operator(adding, "esker.append:,"));
  esker_family *list, *again;
  OK(esker_family_create(db, "list", adding, &list));
  FAILS(ESKER_INVALID_ARGUMENT, "list", esker_family_create(db, "list", adding, &again));
  FAILS(ESKER_NOT_FOUND, "nowhere", esker_family_open(db, "nowhere", &again));
  OK(esker_family_open(db, "list", &again));
  CHECK(esker_family_id(again) == esker_family_id(list) && esker_family_id(NULL) == 0);
  CHECK(is(esker_family_name(again), "list") && is(esker_family_name(NULL), "default"));
  esker_family_options_free(adding);
  OK(esker_db_merge(db, list, bytes("k"), bytes("a"), NULL));
  OK(esker_db_merge(db, again, bytes("k"), bytes("b"), NULL));
  CHECK(holds(db, list, "k", "a,b"));
  OK(esker_db_delete_range(db, list, bytes("a"), bytes("z"), NULL));
  CHECK(holds(db, list, "k", NULL));
  esker_names *names;
  OK(esker_db_family_names(db, &names));
  size_t count = 0;
  const esker_slice *items = esker_names_items(names, &count);
  CHECK(count == 2 && is(items[0], "default") && is(items[1], "list"));
  esker_names_free(names);

  /* How safe a write is. */
  esker_write_options *write = esker_write_options_create();
  OK(esker_write_options_set_durability(write, ESKER_SYNC));
  FAILS(ESKER_INVALID_ARGUMENT, "durability 7", esker_write_options_set_durability(write, 7));
  esker_write_options_set_no_wait(write, true);
  esker_write_options_set_unlocked(write, true);
  OK(esker_db_put(db, NULL, bytes("sync"), bytes("1"), write));
  OK(esker_db_delete(db, NULL, bytes("sync"), write));
  OK(esker_db_sync(db));
  OK(esker_db_set_durability(db, ESKER_BUFFERED));
  FAILS(ESKER_INVALID_ARGUMENT, "durability", esker_db_set_durability(db, ESKER_DURABILITY_DEFAULT));
  esker_write_options_free(write);

  /* Errors. */
  char *long_key = calloc(1, 70000);
  esker_slice too_long = {(const uint8_t *)long_key, 70000};
  esker_error *error = esker_db_put(db, NULL, too_long, none(), NULL);
  CHECK(esker_error_get_kind(error) == ESKER_INVALID_ARGUMENT && !esker_error_is_retryable(error));
  CHECK(strstr(esker_error_message(error), "65536") != NULL);
  uint64_t offset = 7;
  CHECK(is(esker_error_file(error), NULL) && is(esker_error_family(error), NULL));
  CHECK(!esker_error_offset(error, &offset) && offset == 0 && esker_error_deadlock(error) == NULL);
  esker_error_free(error);
  free(long_key);

  /* A family that is gone can be read. */
  OK(esker_db_put(db, list, bytes("left"), bytes("1"), NULL));
  OK(esker_family_drop(db, list));
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_db_put(db, list, bytes("k"), bytes("1"), NULL));
  CHECK(holds(db, again, "left", "1"));
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_family_drop(db, list));
  esker_family_free(list);
  OK(esker_db_close(db));
  esker_family_free(again);

  /* Opened again, and looked at from outside. */
  db = open_in(env, "/db");
  esker_recovery_report *report;
  OK(esker_db_recovery_report(db, &report));
  const esker_recovery *found = esker_recovery_report_get(report);
  CHECK(found->batches > 0 && found->damages == 0 && found->kept_aside_count == 0 && found->given_up_count == 0);
  esker_recovery_report_free(report);
  FAILS(ESKER_LOCKED, "", esker_destroy(env, "/db"));
  OK(esker_db_close(db));
  OK(esker_list_families(env, "/db", &names));
  items = esker_names_items(names, &count);
  CHECK(count == 1 && is(items[0], "default"));
  esker_names_free(names);
  OK(esker_destroy(env, "/db"));
  FAILS(ESKER_NOT_FOUND, "", esker_list_families(env, "/db", &names));
  CHECK(names == NULL);
  esker_env_free(env);
}

typedef struct {
  size_t count;
  char text[256];
} shown;

static bool show(void *state, const esker_mutation *mutation) {
  shown *all = state;
  size_t at = strlen(all->text);
  snprintf(all->text + at, sizeof all->text - at, "%u:%u:%.*s=%.*s ", (unsigned)mutation->family, (unsigned)mutation->kind,
           (int)mutation->key.len, (const char *)mutation->key.data, (int)mutation->value.len,
           (const char *)mutation->value.data);
  return ++all->count < 5;
}

void test_batches(void) {
  esker_env *env = esker_env_create_in_memory();
  esker_db *db = open_in(env, "/db");
  esker_family *family;
  OK(esker_family_create(db, "more", NULL, &family));
  esker_batch *batch = esker_batch_create(), *other = esker_batch_create();
  OK(esker_batch_put(batch, NULL, bytes("a"), bytes("1")));
  OK(esker_batch_put(batch, family, bytes("b"), bytes("2")));
  OK(esker_batch_set_save_point(batch));
  OK(esker_batch_delete(batch, NULL, bytes("a")));
  CHECK(esker_batch_count(batch) == 3 && esker_batch_size_bytes(batch) > 10);
  CHECK(esker_batch_roll_back_to_save_point(batch) && !esker_batch_roll_back_to_save_point(batch));
  OK(esker_batch_set_save_point(batch));
  CHECK(esker_batch_pop_save_point(batch) && !esker_batch_pop_save_point(batch));
  OK(esker_batch_single_delete(other, NULL, bytes("c")));
  OK(esker_batch_delete_range(other, family, bytes("x"), bytes("z")));
  OK(esker_batch_merge(other, family, bytes("m"), bytes("+")));
  OK(esker_batch_delete(other, NULL, bytes("never shown")));
  OK(esker_batch_append(batch, other));
  shown all = {0, ""};
  OK(esker_batch_visit(batch, show, &all));
  CHECK(all.count == 5);
  CHECK(strcmp(all.text, "0:0:a=1 1:0:b=2 0:2:c= 1:4:x=z 1:3:m=+ ") == 0);
  OK(esker_batch_append(batch, batch));
  CHECK(esker_batch_count(batch) == 12);
  esker_batch_clear(other);
  CHECK(esker_batch_count(other) == 0);

  OK(esker_batch_put(other, NULL, bytes("kept"), bytes("1")));
  OK(esker_db_write_and_keep(db, other, NULL));
  CHECK(esker_batch_count(other) == 1 && holds(db, NULL, "kept", "1"));
  OK(esker_db_delete(db, NULL, bytes("kept"), NULL));
  OK(esker_db_write(db, other, NULL));
  CHECK(esker_batch_count(other) == 0 && holds(db, NULL, "kept", "1"));

  /* A batch fails as a whole, and is as it was. */
  OK(esker_family_drop(db, family));
  OK(esker_batch_put(other, NULL, bytes("kept"), bytes("2")));
  OK(esker_batch_put(other, family, bytes("gone"), bytes("2")));
  FAILS(ESKER_INVALID_ARGUMENT, "", esker_db_write(db, other, NULL));
  CHECK(esker_batch_count(other) == 2 && holds(db, NULL, "kept", "1"));
  esker_batch_free(batch);
  esker_batch_free(other);
  esker_family_free(family);
  OK(esker_db_close(db));
  esker_env_free(env);
}
