/* Point reads, iterators, snapshots. */
#include "check.h"

static void all_rows(esker_iterator *iterator, const char *wanted) {
  char text[256] = "";
  esker_row row;
  esker_error *error = esker_iterator_seek_to_first(iterator, &row);
  for (; error == NULL && row.key.data != NULL; error = esker_iterator_next(iterator, &row)) {
    strncat(text, (const char *)row.key.data, row.key.len);
    strcat(text, "=");
    strncat(text, (const char *)row.value.data, row.value.len);
    strcat(text, " ");
  }
  OK(error);
  if (strcmp(text, wanted) != 0) fprintf(stderr, "%s\n", text);
  CHECK(strcmp(text, wanted) == 0);
}

void test_reads(void) {
  esker_env *env = esker_env_create_in_memory();
  esker_options *options = esker_options_create();
  esker_options_set_env(options, env);
  OK(esker_options_set(options, "prefix_extractor", "fixed:1"));
  esker_db *db;
  OK(esker_db_open("/db", options, &db));
  esker_options_free(options);
  const char *keys[] = {"a1", "a2", "b1", "b2", "c1"};
  for (size_t i = 0; i < 5; i++) OK(esker_db_put(db, NULL, bytes(keys[i]), bytes(keys[i] + 1), NULL));
  OK(esker_db_flush(db));

  /* A value is held until its holder is used again. */
  esker_value *value = esker_value_create();
  esker_slice slice;
  OK(esker_db_get(db, NULL, bytes("a1"), NULL, value, &slice));
  CHECK(is(slice, "1") && is(esker_value_slice(value), "1"));
  esker_value_reset(value);
  CHECK(is(esker_value_slice(value), NULL));
  OK(esker_db_get(db, NULL, bytes("a2"), NULL, value, NULL));
  CHECK(is(esker_value_slice(value), "2"));

  /* What is held may be the key of the next get, or the keys of the next gets. */
  OK(esker_db_put(db, NULL, bytes("first"), bytes("second"), NULL));
  OK(esker_db_put(db, NULL, bytes("second"), bytes("third"), NULL));
  OK(esker_db_get(db, NULL, bytes("first"), NULL, value, &slice));
  OK(esker_db_get(db, NULL, slice, NULL, value, &slice));
  CHECK(is(slice, "third"));
  esker_values *chain = esker_values_create();
  esker_slice start = bytes("first");
  OK(esker_db_multi_get(db, NULL, &start, 1, NULL, chain));
  OK(esker_db_multi_get(db, NULL, esker_values_items(chain, NULL), 1, NULL, chain));
  CHECK(is(esker_values_items(chain, NULL)[0], "third"));
  esker_values_free(chain);
  OK(esker_db_delete(db, NULL, bytes("first"), NULL));
  OK(esker_db_delete(db, NULL, bytes("second"), NULL));

  /* Snapshots. */
  esker_snapshot *snapshot;
  OK(esker_snapshot_create(db, &snapshot));
  CHECK(esker_snapshot_sequence(snapshot) == esker_db_last_sequence(db));
  OK(esker_db_put(db, NULL, bytes("a2"), bytes("new"), NULL));
  esker_read_options *read = esker_read_options_create();
  esker_read_options_set_snapshot(read, snapshot);
  OK(esker_db_get(db, NULL, bytes("a2"), read, value, &slice));
  CHECK(is(slice, "2"));
  OK(esker_db_get(db, NULL, bytes("a2"), NULL, value, &slice));
  CHECK(is(slice, "new"));
  bool changed = false;
  OK(esker_db_changed_since(db, NULL, bytes("a2"), snapshot, &changed));
  CHECK(changed);
  OK(esker_db_changed_since(db, NULL, bytes("a1"), snapshot, &changed));
  CHECK(!changed);
  OK(esker_db_range_changed_since(db, NULL, range("a", "b"), snapshot, &changed));
  CHECK(changed);
  OK(esker_db_range_changed_since(db, NULL, range("b", "z"), snapshot, &changed));
  CHECK(!changed);
  bool may = false;
  OK(esker_db_key_may_exist(db, NULL, bytes("a1"), &may));
  CHECK(may);

  /* Several keys at once. */
  esker_values *values = esker_values_create();
  esker_slice wanted[] = {bytes("c1"), bytes("nothing"), bytes("a2"), bytes("c1")};
  size_t count = 9;
  OK(esker_db_multi_get(db, NULL, wanted, 4, read, values));
  const esker_slice *found = esker_values_items(values, &count);
  CHECK(count == 4 && is(found[0], "1") && is(found[1], NULL) && is(found[2], "2") && is(found[3], "1"));
  OK(esker_db_multi_get(db, NULL, NULL, 0, NULL, values));
  esker_values_items(values, &count);
  CHECK(count == 0);
  esker_values_free(values);

  /* Iterators: both ways, within bounds, of one moment. */
  esker_iterator *iterator;
  OK(esker_iterator_create(db, NULL, read, &iterator));
  all_rows(iterator, "a1=1 a2=2 b1=1 b2=2 c1=1 ");
  esker_row row;
  OK(esker_iterator_seek_to_last(iterator, &row));
  CHECK(is(row.key, "c1"));
  OK(esker_iterator_prev(iterator, &row));
  CHECK(is(row.key, "b2"));
  OK(esker_iterator_seek(iterator, bytes("b"), &row));
  CHECK(is(row.key, "b1") && is(esker_iterator_row(iterator).key, "b1"));
  OK(esker_iterator_seek_for_prev(iterator, bytes("b"), NULL));
  CHECK(is(esker_iterator_row(iterator).key, "a2") && is(esker_iterator_row(iterator).value, "2"));
  /* To the key on which it stands. */
  OK(esker_iterator_seek(iterator, esker_iterator_row(iterator).key, &row));
  CHECK(is(row.key, "a2"));
  OK(esker_iterator_seek_for_prev(iterator, row.key, &row));
  CHECK(is(row.key, "a2"));
  /* Narrowed, and back. */
  OK(esker_iterator_set_bounds(iterator, bytes("a2"), bytes("b2")));
  all_rows(iterator, "a2=2 b1=1 ");
  OK(esker_iterator_set_bounds(iterator, none(), none()));
  OK(esker_iterator_seek(iterator, bytes("d"), &row));
  CHECK(is(row.key, NULL) && is(esker_iterator_row(iterator).key, NULL));
  esker_iterator_free(iterator);

  esker_read_options_set_snapshot(read, NULL);
  OK(esker_read_options_set_bounds(read, bytes("a2"), bytes("b2")));
  esker_read_options_set_fill_cache(read, false);
  esker_read_options_set_verify_checksums(read, false);
  esker_read_options_set_readahead_bytes(read, 4096);
  OK(esker_iterator_create(db, NULL, read, &iterator));
  all_rows(iterator, "a2=new b1=1 ");
  OK(esker_db_delete(db, NULL, bytes("a2"), NULL));
  all_rows(iterator, "a2=new b1=1 ");
  OK(esker_iterator_refresh(iterator));
  all_rows(iterator, "b1=1 ");
  esker_iterator_free(iterator);

  OK(esker_read_options_set_bounds(read, none(), none()));
  esker_read_options_set_prefix_same(read, true);
  OK(esker_iterator_create(db, NULL, read, &iterator));
  OK(esker_iterator_seek(iterator, bytes("b1"), &row));
  OK(esker_iterator_next(iterator, &row));
  CHECK(is(row.key, "b2"));
  OK(esker_iterator_next(iterator, &row));
  CHECK(is(row.key, NULL));
  esker_iterator_free(iterator);
  esker_read_options_free(read);

  /* Families at the same moment. */
  esker_family *family;
  OK(esker_family_create(db, "more", NULL, &family));
  OK(esker_db_put(db, family, bytes("k"), bytes("v"), NULL));
  const esker_family *families[] = {NULL, family};
  esker_iterator *both[2];
  OK(esker_iterator_create_many(db, families, 2, NULL, both));
  all_rows(both[0], "a1=1 b1=1 b2=2 c1=1 ");
  all_rows(both[1], "k=v ");
  esker_family_free(family);

  /* What was made from a database may outlive its handle. */
  OK(esker_iterator_seek(both[1], bytes("k"), &row));
  OK(esker_db_get(db, NULL, bytes("b1"), NULL, value, &slice));
  OK(esker_db_close(db));
  CHECK(is(slice, "1") && is(row.value, "v"));
  OK(esker_iterator_next(both[1], &row));
  FAILS(ESKER_CLOSED, "", esker_iterator_seek_to_first(both[1], &row));
  CHECK(is(row.key, NULL));
  esker_iterator_free(both[0]);
  esker_iterator_free(both[1]);
  esker_value_free(value);
  esker_snapshot_free(snapshot);
  esker_env_free(env);
}
