/* Transactions of both kinds, their locks, and calls that make no sense. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

static esker_db *open_with(esker_env *env, bool optimistic) {
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  esker_family_options *family = esker_family_options_create();
  OK(esker_family_options_set_builtin_merge_operator(family, "esker.append"));
  OK(esker_options_set_family(options, "default", family));
  esker_family_options_free(family);
  esker_transaction_settings *settings = esker_transaction_settings_create();
  esker_transaction_settings_set_optimistic(settings, optimistic);
  OK(esker_transaction_settings_set(settings, "shards", 16));
  OK(esker_transaction_settings_set(settings, "max_locks", 1000));
  OK(esker_transaction_settings_set(settings, "lock_timeout_us", ESKER_TIMEOUT_NEVER));
  OK(esker_transaction_settings_set(settings, "deadlock_depth", 8));
  OK(esker_transaction_settings_set(settings, "deadlocks_kept", 4));
  OK(esker_transaction_settings_set(settings, "overtakes", 2));
  OK(esker_transaction_settings_set(settings, "max_write_set_bytes", 1 << 20));
  FAILS(ESKER_INVALID_ARGUMENT, "patience", esker_transaction_settings_set(settings, "patience", 1));
  esker_db *db;
  OK(esker_db_open_transactional("/db", options, settings, &db));
  esker_transaction_settings_free(settings);
  esker_options_free(options);
  return db;
}

static bool sees(esker_transaction *transaction, const char *key, const char *wanted) {
  esker_value *value = esker_value_create();
  esker_slice slice;
  OK(esker_transaction_get(transaction, NULL, bytes(key), NULL, value, &slice));
  bool same = is(slice, wanted);
  esker_value_free(value);
  return same;
}

static bool count_mutation(void *state, const esker_mutation *mutation) {
  (void)mutation;
  ++*(int *)state;
  return true;
}

static void every_write(esker_db *db, esker_transaction *transaction) {
  OK(esker_transaction_put(transaction, NULL, bytes("p"), bytes("1")));
  OK(esker_transaction_delete(transaction, NULL, bytes("d")));
  OK(esker_transaction_single_delete(transaction, NULL, bytes("s")));
  OK(esker_transaction_merge(transaction, NULL, bytes("m"), bytes("2")));
  OK(esker_transaction_delete_range(transaction, NULL, bytes("r"), bytes("rz")));
  OK(esker_transaction_put_untracked(transaction, NULL, bytes("up"), bytes("1")));
  OK(esker_transaction_delete_untracked(transaction, NULL, bytes("ud")));
  OK(esker_transaction_single_delete_untracked(transaction, NULL, bytes("us")));
  OK(esker_transaction_merge_untracked(transaction, NULL, bytes("um"), bytes("2")));
  OK(esker_transaction_delete_range_untracked(transaction, NULL, bytes("ur"), bytes("urz")));
  CHECK(esker_transaction_write_count(transaction) == 10 && esker_transaction_lock_count(transaction) >= 5);
  CHECK(esker_transaction_write_bytes(transaction) > 10 && esker_transaction_memory_bytes(transaction) > 10);
  bool written = false;
  OK(esker_transaction_has_written(transaction, NULL, bytes("p"), &written));
  CHECK(written);
  int count = 0;
  OK(esker_transaction_visit(transaction, count_mutation, &count));
  CHECK(count == 10);
  CHECK(sees(transaction, "p", "1") && sees(transaction, "m", "12") && sees(transaction, "r1", NULL));
  CHECK(holds(db, NULL, "p", NULL) && holds(db, NULL, "r1", "1"));
  OK(esker_transaction_commit(transaction));
  CHECK(!esker_transaction_is_active(transaction) && holds(db, NULL, "p", "1") && holds(db, NULL, "m", "12"));
  CHECK(holds(db, NULL, "um", "12") && holds(db, NULL, "ur1", NULL) && holds(db, NULL, "d", NULL));
}

static void both_kinds(bool optimistic) {
  esker_env *env = esker_env_create_in_memory();
  esker_db *db = open_with(env, optimistic);
  uint32_t kind = 9;
  OK(esker_db_transaction_kind(db, &kind));
  CHECK(kind == (optimistic ? ESKER_OPTIMISTIC : ESKER_LOCKING));
  const char *keys[] = {"d", "s", "m", "r1", "ud", "us", "um", "ur1"};
  for (size_t i = 0; i < 8; i++) OK(esker_db_put(db, NULL, bytes(keys[i]), bytes("1"), NULL));

  esker_write_options *write = esker_write_options_create();
  OK(esker_write_options_set_durability(write, ESKER_SYNC));
  esker_transaction_options *options = esker_transaction_options_create();
  OK(esker_transaction_options_set_isolation(options, ESKER_REPEATABLE_READ));
  FAILS(ESKER_INVALID_ARGUMENT, "isolation 5", esker_transaction_options_set_isolation(options, 5));
  esker_transaction_options_set_snapshot_at_begin(options, true);
  esker_transaction_options_set_lock_timeout_us(options, 0);
  esker_transaction_options_set_deadlock_detection(options, true);
  esker_transaction_options_set_write_options(options, write);
  OK(esker_transaction_options_set_label(options, "payday"));
  esker_transaction *transaction, *second;
  OK(esker_transaction_begin(db, options, &transaction));
  OK(esker_transaction_begin(db, NULL, &second));
  CHECK(is(esker_transaction_label(transaction), "payday") && is(esker_transaction_label(second), NULL));
  CHECK(esker_transaction_id(transaction) != esker_transaction_id(second) && esker_transaction_is_active(second));
  CHECK(esker_transaction_isolation(transaction) == ESKER_REPEATABLE_READ);
  CHECK(esker_transaction_isolation(second) == ESKER_READ_COMMITTED);
  esker_running_list *list;
  OK(esker_db_running(db, &list));
  size_t count = 0;
  const esker_running *running = esker_running_items(list, &count);
  CHECK(count == 2 && running[0].id == esker_transaction_id(transaction) && is(running[0].label, "payday"));
  CHECK(running[1].writes == 0 && running[1].locks == 0 && is(running[1].label, NULL));
  esker_running_free(list);

  every_write(db, transaction);
  FAILS(ESKER_INVALID_ARGUMENT, "restart", esker_transaction_put(transaction, NULL, bytes("p"), bytes("2")));

  /* Save points. */
  OK(esker_transaction_restart(transaction, options));
  OK(esker_transaction_put(transaction, NULL, bytes("p"), bytes("2")));
  OK(esker_transaction_set_save_point(transaction));
  OK(esker_transaction_put(transaction, NULL, bytes("q"), bytes("2")));
  bool done = false;
  OK(esker_transaction_roll_back_to_save_point(transaction, &done));
  CHECK(done && sees(transaction, "q", NULL) && sees(transaction, "p", "2"));
  OK(esker_transaction_set_save_point(transaction));
  OK(esker_transaction_pop_save_point(transaction, &done));
  CHECK(done);
  OK(esker_transaction_pop_save_point(transaction, &done));
  CHECK(!done);

  /* Iterators see what is not committed. */
  esker_iterator *iterator;
  esker_row row;
  OK(esker_transaction_iterator(transaction, NULL, NULL, &iterator));
  OK(esker_iterator_seek(iterator, bytes("p"), &row));
  CHECK(is(row.key, "p") && is(row.value, "2"));
  OK(esker_transaction_put(transaction, NULL, bytes("p1"), bytes("3")));
  OK(esker_iterator_next(iterator, &row));
  CHECK(!is(row.key, "p1"));
  OK(esker_transaction_refresh_iterator(transaction, iterator));
  OK(esker_iterator_seek_for_prev(iterator, bytes("p1"), &row));
  CHECK(is(row.key, "p1"));
  OK(esker_iterator_prev(iterator, &row));
  CHECK(is(row.key, "p"));
  OK(esker_iterator_seek_to_last(iterator, &row));
  OK(esker_iterator_seek_to_first(iterator, &row));
  FAILS(ESKER_INVALID_ARGUMENT, "transaction", esker_iterator_refresh(iterator));
  OK(esker_iterator_set_bounds(iterator, bytes("p1"), none()));
  CHECK(is(esker_iterator_row(iterator).key, NULL));
  OK(esker_iterator_seek_to_first(iterator, &row));
  CHECK(is(row.key, "p1"));
  esker_iterator_free(iterator);
  OK(esker_iterator_create(db, NULL, NULL, &iterator));
  FAILS(ESKER_INVALID_ARGUMENT, "database", esker_transaction_refresh_iterator(transaction, iterator));
  esker_iterator_free(iterator);

  /* Several keys, and reads for update. */
  esker_values *values = esker_values_create();
  esker_slice wanted[] = {bytes("p"), bytes("q")};
  OK(esker_transaction_multi_get(transaction, NULL, wanted, 2, NULL, values));
  const esker_slice *found = esker_values_items(values, &count);
  CHECK(count == 2 && is(found[0], "2") && is(found[1], NULL));
  esker_read_options *plain = esker_read_options_create();
  OK(esker_transaction_multi_get(transaction, NULL, wanted, 2, plain, values));
  found = esker_values_items(values, &count);
  CHECK(count == 2 && is(found[0], "2") && is(found[1], NULL));
  esker_read_options_free(plain);
  OK(esker_transaction_multi_get_for_update(transaction, NULL, wanted, 2, ESKER_SHARED, values));
  found = esker_values_items(values, &count);
  CHECK(count == 2 && is(found[0], "2") && is(found[1], NULL));
  esker_values_free(values);
  OK(esker_transaction_roll_back(transaction));
  CHECK(esker_transaction_lock_count(transaction) == 0 && holds(db, NULL, "p", "1"));

  /* Snapshots: what others wrote since is a conflict. */
  OK(esker_transaction_restart(transaction, NULL));
  CHECK(esker_transaction_snapshot(transaction) == NULL);
  OK(esker_transaction_set_snapshot(transaction));
  esker_snapshot *snapshot = esker_transaction_snapshot(transaction);
  CHECK(esker_snapshot_sequence(snapshot) == esker_db_last_sequence(db));
  esker_read_options *read = esker_read_options_create();
  esker_read_options_set_snapshot(read, snapshot);
  esker_snapshot_free(snapshot);
  OK(esker_transaction_put(second, NULL, bytes("p"), bytes("theirs")));
  OK(esker_transaction_commit(second));
  esker_value *value = esker_value_create();
  esker_slice slice;
  OK(esker_transaction_get(transaction, NULL, bytes("p"), read, value, &slice));
  CHECK(is(slice, "1") && sees(transaction, "p", "theirs"));
  esker_value_free(value);
  esker_read_options_free(read);
  esker_error *error = esker_transaction_put(transaction, NULL, bytes("p"), bytes("mine"));
  if (error == NULL) error = esker_transaction_commit(transaction);
  CHECK(esker_error_get_kind(error) == ESKER_CONFLICT && esker_error_is_retryable(error));
  esker_error_free(error);
  OK(esker_transaction_clear_snapshot(transaction));
  OK(esker_transaction_set_lock_timeout_us(transaction, ESKER_TIMEOUT_DEFAULT));

  /* Writes beside transactions. */
  OK(esker_db_put(db, NULL, bytes("x"), bytes("1"), write));
  OK(esker_db_merge(db, NULL, bytes("x"), bytes("2"), NULL));
  CHECK(holds(db, NULL, "x", "12"));
  OK(esker_db_single_delete(db, NULL, bytes("never"), NULL));
  OK(esker_db_delete(db, NULL, bytes("x"), NULL));
  OK(esker_db_delete_range(db, NULL, bytes("x"), bytes("y"), NULL));
  esker_write_options_set_unlocked(write, true);
  OK(esker_db_put(db, NULL, bytes("x"), bytes("3"), write));
  esker_batch *batch = esker_batch_create();
  OK(esker_batch_put(batch, NULL, bytes("y"), bytes("4")));
  OK(esker_db_write_and_keep(db, batch, NULL));
  CHECK(esker_batch_count(batch) == 1);
  OK(esker_db_write_and_keep(db, batch, write));
  OK(esker_db_write(db, batch, NULL));
  CHECK(holds(db, NULL, "x", "3") && holds(db, NULL, "y", "4"));
  esker_batch_free(batch);

  esker_transaction_options_free(options);
  esker_write_options_free(write);
  esker_transaction_free(second);
  OK(esker_db_close(db));
  OK(esker_transaction_put(transaction, NULL, bytes("late"), bytes("1")));
  FAILS(ESKER_CLOSED, "", esker_transaction_commit(transaction));
  esker_transaction_free(transaction);
  esker_env_free(env);
}

/* A transaction is prepared, outlives its object and an opening, and is decided on. */
static void two_phases(void) {
  esker_env *env = esker_env_create_in_memory();
  esker_db *db = open_with(env, false);
  esker_write_options *write = esker_write_options_create();
  OK(esker_write_options_set_durability(write, ESKER_SYNC));
  const char *names[] = {"one", "two"};
  esker_transaction *transaction;
  for (size_t i = 0; i < 2; i++) {
    OK(esker_transaction_begin(db, NULL, &transaction));
    OK(esker_transaction_set_write_options(transaction, write));
    OK(esker_transaction_put(transaction, NULL, bytes(names[i]), bytes("1")));
    FAILS(ESKER_INVALID_ARGUMENT, "name", esker_transaction_prepare(transaction));
    CHECK(is(esker_transaction_name(transaction), NULL));
    OK(esker_transaction_set_name(transaction, bytes(names[i])));
    CHECK(is(esker_transaction_name(transaction), names[i]) && !esker_transaction_is_prepared(transaction));
    OK(esker_transaction_prepare(transaction));
    CHECK(esker_transaction_is_prepared(transaction) && !esker_transaction_is_active(transaction));
    FAILS(ESKER_INVALID_ARGUMENT, "prepared", esker_transaction_put(transaction, NULL, bytes("k"), bytes("1")));
    esker_running_list *list;
    OK(esker_db_running(db, &list));
    const esker_running *running = esker_running_items(list, NULL);
    CHECK(is(running->name, names[i]) && running->is_prepared);
    esker_running_free(list);
    esker_transaction_free(transaction);
  }
  OK(esker_db_close(db));

  db = open_with(env, false);
  esker_prepared_transactions *prepared;
  OK(esker_db_prepared_transactions(db, &prepared));
  size_t count = 0;
  const esker_prepared_transaction *items = esker_prepared_transactions_items(prepared, &count);
  CHECK(count == 2 && is(items[0].name, "one") && items[0].writes == 1 && items[0].size_bytes > 3 && !items[0].is_open);
  esker_prepared_transactions_free(prepared);
  esker_transaction *other;
  OK(esker_transaction_begin(db, NULL, &other));
  OK(esker_transaction_set_lock_timeout_us(other, 0));
  FAILS(ESKER_TIMED_OUT, "", esker_transaction_put(other, NULL, bytes("one"), bytes("theirs")));
  OK(esker_transaction_take_prepared(db, bytes("one"), &transaction));
  esker_transaction *second;
  FAILS(ESKER_RETRY, "", esker_transaction_take_prepared(db, bytes("one"), &second));
  FAILS(ESKER_NOT_FOUND, "", esker_transaction_take_prepared(db, bytes("three"), &second));
  CHECK(second == NULL && holds(db, NULL, "one", NULL));
  OK(esker_transaction_commit(transaction));
  CHECK(holds(db, NULL, "one", "1"));
  OK(esker_transaction_put(other, NULL, bytes("one"), bytes("theirs")));
  OK(esker_transaction_commit(other));
  esker_transaction_free(transaction);
  OK(esker_transaction_take_prepared(db, bytes("two"), &transaction));
  OK(esker_transaction_roll_back(transaction));
  CHECK(holds(db, NULL, "two", NULL));
  esker_transaction_free(transaction);
  esker_transaction_free(other);
  esker_write_options_free(write);
  OK(esker_db_close(db));
  esker_env_free(env);
}

void test_transactions(void) {
  both_kinds(false);
  both_kinds(true);
  two_phases();
}

/* One that waits for a lock on a thread of its own. */
typedef struct {
  esker_transaction *transaction;
  const char *key;
  esker_error *error;
} waiter;

static void *wait_for(void *argument) {
  waiter *self = argument;
  self->error = esker_transaction_lock_key(self->transaction, NULL, bytes(self->key), ESKER_EXCLUSIVE);
  return NULL;
}

static size_t waiting(esker_db *db) {
  esker_waits *waits;
  OK(esker_db_waits(db, &waits));
  size_t count = 0;
  const esker_wait *wait = esker_waits_items(waits, &count);
  if (count == 1) {
    CHECK(is(wait->target.start, "b") && wait->target.mode == ESKER_EXCLUSIVE && !wait->target.is_range);
    CHECK(wait->waits_for_count == 1 && wait->waits_for[0] != wait->transaction && wait->waited_us < 3600000000u);
  }
  esker_waits_free(waits);
  return count;
}

void test_locks(void) {
  esker_env *env = esker_env_create_in_memory();
  esker_db *db = open_with(env, false);
  esker_transaction *first, *second;
  OK(esker_transaction_begin(db, NULL, &first));
  OK(esker_transaction_begin(db, NULL, &second));
  esker_value *value = esker_value_create();
  esker_slice slice;
  OK(esker_transaction_get_for_update(first, NULL, bytes("a"), ESKER_EXCLUSIVE, value, &slice));
  CHECK(is(slice, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "lock mode 2",
        esker_transaction_get_for_update(first, NULL, bytes("a"), 2, value, &slice));
  esker_range open_end = {bytes("r"), none()};
  OK(esker_transaction_lock_range(first, NULL, open_end, ESKER_SHARED));
  FAILS(ESKER_INVALID_ARGUMENT, "range", esker_transaction_lock_range(first, NULL, range("b", "a"), ESKER_SHARED));
  esker_locks *locks;
  OK(esker_db_locks(db, &locks));
  size_t count = 0;
  const esker_lock *lock = esker_locks_items(locks, &count);
  CHECK(count == 2 && is(lock[0].target.start, "a") && lock[0].target.mode == ESKER_EXCLUSIVE);
  CHECK(lock[0].holder_count == 1 && lock[0].holders[0] == esker_transaction_id(first) && lock[0].target.family == 0);
  CHECK(lock[1].target.is_range && is(lock[1].target.start, "r") && is(lock[1].target.end, NULL));
  esker_locks_free(locks);

  /* A lock that is not free. */
  OK(esker_transaction_set_lock_timeout_us(second, 0));
  FAILS(ESKER_TIMED_OUT, "", esker_transaction_put(second, NULL, bytes("a"), bytes("2")));
  FAILS(ESKER_TIMED_OUT, "", esker_transaction_put(second, NULL, bytes("rr"), bytes("2")));
  OK(esker_transaction_lock_key(second, NULL, bytes("b"), ESKER_EXCLUSIVE));
  OK(esker_transaction_lock_key(second, NULL, bytes("c"), ESKER_SHARED));
  bool undone = false;
  OK(esker_transaction_undo_get_for_update(second, NULL, bytes("c"), &undone));
  CHECK(undone && esker_transaction_lock_count(second) == 1);

  /* Two that wait for each other. */
  waiter other = {first, "b", NULL};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for, &other) == 0);
  while (waiting(db) == 0) sched_yield();
  OK(esker_transaction_set_lock_timeout_us(second, ESKER_TIMEOUT_NEVER));
  esker_error *error = esker_transaction_lock_key(second, NULL, bytes("a"), ESKER_EXCLUSIVE);
  CHECK(esker_error_get_kind(error) == ESKER_DEADLOCK && esker_error_is_retryable(error));
  esker_deadlocks *deadlocks = esker_error_deadlock(error);
  esker_error_free(error);
  const esker_deadlock *deadlock = esker_deadlocks_items(deadlocks, &count);
  CHECK(count == 1 && deadlock->step_count == 2);
  CHECK(deadlock->steps[0].transaction == esker_transaction_id(second) && is(deadlock->steps[0].target.start, "a"));
  CHECK(deadlock->steps[0].waits_for == deadlock->steps[1].transaction);
  esker_deadlocks_free(deadlocks);
  OK(esker_db_deadlocks(db, &deadlocks));
  deadlock = esker_deadlocks_items(deadlocks, &count);
  CHECK(count == 1 && deadlock->step_count == 2 && is(deadlock->steps[1].target.start, "b"));
  esker_deadlocks_free(deadlocks);
  OK(esker_transaction_roll_back(second));
  CHECK(pthread_join(thread, NULL) == 0);
  OK(other.error);
  CHECK(waiting(db) == 0);

  /* One that waits is interrupted from another thread. */
  OK(esker_transaction_roll_back(first));
  OK(esker_transaction_restart(first, NULL));
  OK(esker_transaction_restart(second, NULL));
  OK(esker_transaction_lock_key(second, NULL, bytes("b"), ESKER_EXCLUSIVE));
  esker_interrupter *interrupter = esker_transaction_interrupter(first);
  CHECK(interrupter != NULL && !esker_interrupter_is_requested(interrupter));
  waiter given_up = {first, "b", NULL};
  CHECK(pthread_create(&thread, NULL, wait_for, &given_up) == 0);
  while (waiting(db) == 0) sched_yield();
  esker_interrupter_request(interrupter);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(esker_error_get_kind(given_up.error) == ESKER_INTERRUPTED && waiting(db) == 0);
  esker_error_free(given_up.error);
  CHECK(esker_interrupter_is_requested(interrupter));
  esker_interrupter_clear(interrupter);
  CHECK(!esker_interrupter_is_requested(interrupter));
  esker_interrupter_free(interrupter);

  /* One that has written as much as it may. */
  static const uint8_t large[2 << 20];
  esker_slice much = {large, sizeof large};
  FAILS(ESKER_WRITE_LIMIT, "max_write_set_bytes", esker_transaction_put(first, NULL, bytes("w"), much));
  OK(esker_transaction_roll_back(second));
  esker_value_free(value);
  /* An active one is rolled back when it is freed. */
  esker_transaction_free(first);
  OK(esker_db_locks(db, &locks));
  esker_locks_items(locks, &count);
  CHECK(count == 0);
  esker_locks_free(locks);
  esker_transaction_free(second);
  OK(esker_db_close(db));
  esker_env_free(env);
}

/* Calls that make no sense are errors. */
void test_misuse(void) {
  esker_env *env = esker_env_create_in_memory();
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  esker_db *db = NULL;
  FAILS(ESKER_INVALID_ARGUMENT, "path", esker_db_open(NULL, options, &db));
  FAILS(ESKER_INVALID_ARGUMENT, "place", esker_db_open("/db", options, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "null", esker_options_set(NULL, "levels", "3"));
  FAILS(ESKER_INVALID_ARGUMENT, "null", esker_options_set(options, NULL, "3"));
  FAILS(ESKER_INVALID_ARGUMENT, "UTF-8", esker_options_set(options, "\xff\xfe", "3"));
  OK(esker_db_open("/db", options, &db));
  esker_options_free(options);
  esker_slice broken = {NULL, 3};
  FAILS(ESKER_INVALID_ARGUMENT, "3 bytes without data", esker_db_put(db, NULL, broken, none(), NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "db", esker_db_put(NULL, NULL, none(), none(), NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "batch", esker_db_write(db, NULL, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "value", esker_db_get(db, NULL, bytes("k"), NULL, NULL, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "values", esker_db_multi_get(db, NULL, NULL, 0, NULL, NULL));
  esker_values *values = esker_values_create();
  FAILS(ESKER_INVALID_ARGUMENT, "without data", esker_db_multi_get(db, NULL, NULL, 2, NULL, values));
  esker_values_free(values);
  esker_row row;
  FAILS(ESKER_INVALID_ARGUMENT, "iterator", esker_iterator_next(NULL, &row));
  CHECK(is(row.key, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "null", esker_iterator_create_many(db, NULL, 1, NULL, NULL));
  FAILS(ESKER_INVALID_ARGUMENT, "null", esker_db_delete_files_in_ranges(db, NULL, NULL, 1, NULL));
  esker_transaction *transaction = NULL;
  FAILS(ESKER_INVALID_ARGUMENT, "without transactions", esker_transaction_begin(db, NULL, &transaction));
  FAILS(ESKER_INVALID_ARGUMENT, "transaction", esker_transaction_commit(NULL));
  CHECK(transaction == NULL && esker_transaction_snapshot(NULL) == NULL && esker_transaction_id(NULL) == 0);

  /* A plain database has no locks to show. */
  size_t count = 9;
  esker_locks *locks;
  OK(esker_db_locks(db, &locks));
  esker_locks_items(locks, &count);
  CHECK(count == 0);
  esker_locks_free(locks);

  CHECK(esker_error_get_kind(NULL) == ESKER_OK && strcmp(esker_error_message(NULL), "") == 0);
  CHECK(is(esker_slice_of(NULL), NULL) && is(esker_buffer_slice(NULL), NULL));
  esker_error_free(NULL);
  esker_batch_free(NULL);
  esker_batch_clear(NULL);
  esker_transaction_free(NULL);
  OK(esker_db_close(NULL));
  OK(esker_db_close(db));
  esker_env_free(env);
}
