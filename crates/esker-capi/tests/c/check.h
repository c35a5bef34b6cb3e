/* What the test programs check with: the first thing that is not as it should be ends the program and says where. */
#ifndef ESKER_TEST_CHECK_H
#define ESKER_TEST_CHECK_H

#include <esker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

/* The call succeeds. */
#define OK(call)                                                                               \
  do {                                                                                         \
    esker_error *error_ = (call);                                                              \
    if (error_ != NULL) {                                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, esker_error_message(error_)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* The call fails with an error of this kind, the message of which has these words in it. */
#define FAILS(kind, words, call)                                                                \
  do {                                                                                          \
    esker_error *error_ = (call);                                                               \
    if (esker_error_get_kind(error_) != (kind) || strstr(esker_error_message(error_), words) == NULL) { \
      fprintf(stderr, "%s:%d: %s: kind %u: %s\n", __FILE__, __LINE__, #call,                    \
              (unsigned)esker_error_get_kind(error_), esker_error_message(error_));             \
      exit(1);                                                                                  \
    }                                                                                           \
    esker_error_free(error_);                                                                   \
  } while (0)

static inline esker_slice bytes(const char *string) { return esker_slice_of(string); }

/* No bytes: an open end, no value. */
static inline esker_slice none(void) {
  esker_slice slice = {NULL, 0};
  return slice;
}

static inline esker_range range(const char *start, const char *end) {
  esker_range range = {bytes(start), bytes(end)};
  return range;
}

/* Whether a slice has the bytes of the string; null: whether it has no data at all. */
static inline bool is(esker_slice slice, const char *string) {
  if (string == NULL) return slice.data == NULL;
  return slice.data != NULL && slice.len == strlen(string) && memcmp(slice.data, string, slice.len) == 0;
}

/* Whether a slice has the string in it. */
static inline bool has(esker_slice slice, const char *string) {
  size_t len = strlen(string);
  for (size_t i = 0; i + len <= slice.len; i++) {
    if (memcmp(slice.data + i, string, len) == 0) return true;
  }
  return false;
}

/* Whether the database has this value for the key; null: none. */
static inline bool holds(const esker_db *db, const esker_family *family, const char *key, const char *wanted) {
  esker_value *value = esker_value_create();
  esker_slice slice;
  OK(esker_db_get(db, family, bytes(key), NULL, value, &slice));
  bool same = is(slice, wanted);
  esker_value_free(value);
  return same;
}

/* A path below a folder. */
static inline void join(char *path, size_t size, const char *dir, const char *name) {
  CHECK((size_t)snprintf(path, size, "%s/%s", dir, name) < size);
}

void test_options(void);
void test_database(void);
void test_batches(void);
void test_reads(void);
void test_hooks(void);
void test_listeners(const char *dir);
void test_maintenance(const char *dir);
void test_files(const char *dir);
void test_tables(const char *dir);
void test_prepared(const char *dir);
void test_transactions(void);
void test_locks(void);
void test_misuse(void);

#endif
