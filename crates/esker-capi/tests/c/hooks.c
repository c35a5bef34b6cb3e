/* Code of the program's own: comparators, merge operators, compaction filters, property collectors. */
#include "check.h"

#include <stdatomic.h>

/* Destroyed once each. */
static atomic_int destroyed, filters, collectors;

static void count_destroyed(void *state) {
  (void)state;
  atomic_fetch_add(&destroyed, 1);
}

/* Shorter keys first. */
static int by_length(void *state, esker_slice a, esker_slice b) {
  CHECK(strcmp(state, "state") == 0);
  if (a.len != b.len) return a.len < b.len ? -1 : 1;
  return a.len == 0 ? 0 : memcmp(a.data, b.data, a.len);
}

static void keep_separator(void *state, esker_buffer *key, esker_slice limit) {
  (void)state;
  CHECK(limit.len >= esker_buffer_slice(key).len);
}

static void keep_successor(void *state, esker_buffer *key) {
  (void)state;
  /* The same bytes again, which are the buffer's own. */
  OK(esker_buffer_set(key, esker_buffer_slice(key)));
}

/* Keeps the longest. */
static bool longest(void *state, esker_slice key, esker_slice base, const esker_slice *operands, size_t count,
                    esker_buffer *value) {
  (void)state;
  if (is(key, "bad")) return false;
  esker_slice best = base;
  for (size_t i = 0; i < count; i++) {
    if (operands[i].len > best.len) best = operands[i];
  }
  OK(esker_buffer_append(value, best));
  return true;
}

static bool longest_operand(void *state, esker_slice key, const esker_slice *operands, size_t count, esker_buffer *operand) {
  return longest(state, key, none(), operands, count, operand);
}

/* A filter counts what it has seen. */
static bool make_filter(void *state, const esker_filter_context *context, void **filter) {
  CHECK(strcmp(state, "state") == 0);
  CHECK(context->cause == ESKER_CAUSE_MANUAL || context->cause == ESKER_CAUSE_COMPACTION);
  CHECK(context->cause != ESKER_CAUSE_FLUSH && context->level < 16);
  if (!context->bottommost) return false;
  atomic_fetch_add(&filters, 1);
  *filter = calloc(1, sizeof(int));
  return true;
}

static void free_filter(void *filter) {
  atomic_fetch_sub(&filters, 1);
  free(filter);
}

static uint32_t filter_key(void *filter, esker_slice key, esker_buffer *out) {
  ++*(int *)filter;
  if (is(key, "kkk")) return ESKER_KEEP;
  if (is(key, "ssss")) {
    OK(esker_buffer_set(out, bytes("uuuu")));
    return ESKER_SKIP_UNTIL;
  }
  return ESKER_NEED_VALUE;
}

static uint32_t filter_row(void *filter, esker_slice key, esker_slice value, esker_buffer *out) {
  CHECK(*(int *)filter > 0 && key.len > 0);
  if (is(value, "remove")) return ESKER_REMOVE;
  if (is(value, "change")) {
    OK(esker_buffer_set(out, bytes("changed")));
    return ESKER_CHANGE;
  }
  return ESKER_KEEP;
}

/* A collector counts puts. */
static void *make_collector(void *state) {
  CHECK(strcmp(state, "state") == 0);
  atomic_fetch_add(&collectors, 1);
  return calloc(1, sizeof(unsigned));
}

static void free_collector(void *collector) {
  atomic_fetch_sub(&collectors, 1);
  free(collector);
}

static void collect(void *collector, const esker_collected_row *row) {
  if (row->kind == ESKER_PUT && row->key.len > 0) ++*(unsigned *)collector;
}

static void finish_collector(void *collector, esker_collected *collected) {
  char text[16];
  snprintf(text, sizeof text, "%u", *(unsigned *)collector);
  OK(esker_collected_add(collected, "puts", bytes(text)));
  FAILS(ESKER_INVALID_ARGUMENT, "puts", esker_collected_add(collected, "puts", bytes(text)));
}

void test_hooks(void) {
  static char state[] = "state";
  esker_comparator comparator = {state, count_destroyed, "test.by-length", by_length, keep_separator, keep_successor};
  esker_merge_operator merge = {state, count_destroyed, "test.longest", longest, longest_operand};
  esker_compaction_filter filter = {state, count_destroyed, make_filter, free_filter, filter_key, filter_row, false};
  esker_collector collector = {state,           count_destroyed, "test", make_collector, free_collector, collect,
                               finish_collector};
  esker_family_options *family = esker_family_options_create();

  /* What is not whole stays the program's. */
  esker_comparator nameless = comparator;
  nameless.name = NULL;
  FAILS(ESKER_INVALID_ARGUMENT, "name", esker_family_options_set_comparator(family, &nameless));
  nameless.name = "\xff";
  FAILS(ESKER_INVALID_ARGUMENT, "UTF-8", esker_family_options_set_comparator(family, &nameless));
  esker_merge_operator idle = merge;
  idle.full_merge = NULL;
  FAILS(ESKER_INVALID_ARGUMENT, "full_merge", esker_family_options_set_merge_operator(family, &idle));
  CHECK(destroyed == 0);

  OK(esker_family_options_set_comparator(family, &comparator));
  OK(esker_family_options_set_merge_operator(family, &merge));
  OK(esker_family_options_set_compaction_filter(family, &filter));
  OK(esker_family_options_add_collector(family, &collector));

  esker_env *env = esker_env_create_in_memory();
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  OK(esker_options_set_family(options, "default", family));
  esker_family_options_free(family);
  esker_db *db;
  OK(esker_db_open("/db", options, &db));
  esker_options_free(options);
  CHECK(destroyed == 0);

  /* Of "m" one operand is left, of "bad" the delete. */
  const char *rows[][2] = {{"zz", "1"},        {"aaa", "2"},       {"b", "remove"},    {"cc", "change"},
                           {"kkk", "remove"},  {"ssss", "skipped"}, {"tttt", "skipped"}, {"uuuu", "3"}};
  for (size_t i = 0; i < 8; i++) OK(esker_db_put(db, NULL, bytes(rows[i][0]), bytes(rows[i][1]), NULL));
  OK(esker_db_merge(db, NULL, bytes("m"), bytes("xx"), NULL));
  OK(esker_db_merge(db, NULL, bytes("m"), bytes("x"), NULL));
  OK(esker_db_merge(db, NULL, bytes("bad"), bytes("x"), NULL));
  CHECK(holds(db, NULL, "m", "xx"));
  esker_value *value = esker_value_create();
  FAILS(ESKER_CORRUPTION, "test.longest", esker_db_get(db, NULL, bytes("bad"), NULL, value, NULL));
  esker_value_free(value);
  OK(esker_db_delete(db, NULL, bytes("bad"), NULL));

  OK(esker_db_flush(db));
  esker_tables *tables;
  OK(esker_db_tables(db, NULL, none(), none(), &tables));
  size_t count = 0;
  const esker_table *table = esker_tables_items(tables, &count);
  CHECK(count == 1 && table->entries == 10 && table->deletions == 1 && table->property_count == 1);
  CHECK(is(table->smallest, "b") && is(table->largest, "uuuu") && table->level == 0 && table->number > 0);
  CHECK(is(table->properties[0].name, "test.puts") && is(table->properties[0].value, "8"));
  esker_tables_free(tables);

  OK(esker_db_compact_range(db, NULL, none(), none()));
  CHECK(filters == 0 && collectors == 0);
  CHECK(holds(db, NULL, "b", NULL) && holds(db, NULL, "cc", "changed") && holds(db, NULL, "kkk", "remove"));
  CHECK(holds(db, NULL, "ssss", NULL) && holds(db, NULL, "tttt", NULL) && holds(db, NULL, "uuuu", "3"));
  CHECK(holds(db, NULL, "zz", "1") && holds(db, NULL, "aaa", "2") && holds(db, NULL, "m", "xx"));
  OK(esker_db_close(db));
  CHECK(destroyed == 4);

  /* Without them it does not open; `state` itself can be the filter. */
  options = esker_options_create();
  esker_options_set_env(options, env);
  FAILS(ESKER_INVALID_ARGUMENT, "test.longest", esker_db_open("/db", options, &db));
  family = esker_family_options_create();
  filter.create = NULL;
  filter.destroy_filter = NULL;
  filter.decide_by_key = NULL;
  int seen = 1;
  filter.state = &seen;
  OK(esker_family_options_set_comparator(family, &comparator));
  OK(esker_family_options_set_merge_operator(family, &merge));
  OK(esker_family_options_set_compaction_filter(family, &filter));
  OK(esker_options_set_family(options, "default", family));
  esker_family_options_free(family);
  OK(esker_db_open("/db", options, &db));
  esker_options_free(options);
  OK(esker_db_put(db, NULL, bytes("zz"), bytes("remove"), NULL));
  OK(esker_db_compact_range(db, NULL, none(), none()));
  CHECK(holds(db, NULL, "zz", NULL) && holds(db, NULL, "aaa", "2"));
  OK(esker_db_close(db));
  CHECK(destroyed == 7);
  esker_env_free(env);
}
