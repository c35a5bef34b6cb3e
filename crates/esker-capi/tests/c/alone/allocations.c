/* What is called for every row allocates nothing, with objects that are used again. Usage: program FOLDER */
#include "../check.h"

#include <errno.h>

/* The C library's own, and what the program puts before them: it counts those of this thread. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *data, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Thread_local volatile size_t allocations;

void *malloc(size_t size) {
  allocations += 1;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  allocations += 1;
  return __libc_calloc(count, size);
}

void *realloc(void *data, size_t size) {
  allocations += 1;
  return __libc_realloc(data, size);
}

int posix_memalign(void **data, size_t alignment, size_t size) {
  allocations += 1;
  *data = __libc_memalign(alignment, size);
  return *data == NULL ? ENOMEM : 0;
}

enum { ROWS = 1000 };

static esker_slice key(int i) {
  static char text[16];
  snprintf(text, sizeof text, "key%06d", i);
  return bytes(text);
}

/* How many allocations 1000 calls make. */
#define COUNT(what, most, call)                                                       \
  do {                                                                                \
    size_t before = allocations;                                                      \
    for (int i = 0; i < ROWS; i++) OK(call);                                          \
    size_t made = allocations - before;                                               \
    printf("%s: %zu\n", what, made);                                                  \
    CHECK(made <= (most));                                                            \
  } while (0)

int main(int argc, char **argv) {
  CHECK(argc == 2);
  size_t before = allocations;
  void *volatile counted = malloc(1);
  free(counted);
  CHECK(allocations == before + 1);
  esker_db *db;
  OK(esker_db_open_transactional(argv[1], NULL, NULL, &db));
  for (int i = 0; i < ROWS; i++) OK(esker_db_put(db, NULL, key(i), bytes("value"), NULL));
  OK(esker_db_flush(db));
  esker_value *value = esker_value_create();
  esker_slice slice;
  esker_row row;
  for (int i = 0; i < ROWS; i++) OK(esker_db_get(db, NULL, key(i), NULL, value, &slice));
  COUNT("get", 0, esker_db_get(db, NULL, key(i), NULL, value, &slice));
  esker_read_options *read = esker_read_options_create();
  esker_snapshot *snapshot;
  OK(esker_snapshot_create(db, &snapshot));
  esker_read_options_set_snapshot(read, snapshot);
  COUNT("get with options", 0, esker_db_get(db, NULL, key(i), read, value, &slice));
  esker_iterator *iterator;
  OK(esker_iterator_create(db, NULL, NULL, &iterator));
  OK(esker_iterator_seek_to_first(iterator, &row));
  while (row.key.data != NULL) OK(esker_iterator_next(iterator, &row));
  OK(esker_iterator_seek_to_first(iterator, &row));
  COUNT("next", ROWS / 50, esker_iterator_next(iterator, &row));
  esker_iterator_free(iterator);

  /* Writes: memtables take memory now and then. */
  esker_batch *batch = esker_batch_create();
  esker_write_options *write = esker_write_options_create();
  esker_write_options_set_unlocked(write, true);
  for (int i = 0; i < ROWS; i++) OK(esker_db_put(db, NULL, key(i), bytes("other"), write));
  COUNT("put", ROWS / 50, esker_db_put(db, NULL, key(i), bytes("other"), write));
  OK(esker_batch_put(batch, NULL, key(1), bytes("batched")));
  esker_batch_clear(batch);
  COUNT("put into a batch", 64, esker_batch_put(batch, NULL, key(i), bytes("batched")));
  esker_batch_clear(batch);
  COUNT("put into a batch that was used before", 0, esker_batch_put(batch, NULL, key(i), bytes("batched")));
  esker_write_options_free(write);
  esker_batch_free(batch);

  /* A transaction that is used again. */
  esker_transaction *transaction;
  OK(esker_transaction_begin(db, NULL, &transaction));
  for (int i = 0; i < ROWS; i++) {
    OK(esker_transaction_put(transaction, NULL, key(i), bytes("1")));
    OK(esker_transaction_commit(transaction));
    OK(esker_transaction_restart(transaction, NULL));
  }
  before = allocations;
  for (int i = 0; i < ROWS; i++) {
    OK(esker_transaction_put(transaction, NULL, key(i), bytes("1")));
    OK(esker_transaction_commit(transaction));
    OK(esker_transaction_restart(transaction, NULL));
  }
  printf("transaction: %zu\n", allocations - before);
  CHECK(allocations - before <= ROWS / 50);
  esker_transaction_free(transaction);
  esker_read_options_free(read);
  esker_snapshot_free(snapshot);
  esker_value_free(value);
  OK(esker_db_close(db));
  puts("done");
  return 0;
}
