/* LevelDB's C interface as a program sees it: the names and types that both libraries have to have. */
#ifndef ESKER_TEST_LEVELDB_H
#define ESKER_TEST_LEVELDB_H

#include <stddef.h>
#include <stdint.h>

typedef struct leveldb_t leveldb_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_env_t leveldb_env_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

leveldb_t *leveldb_open(const leveldb_options_t *, const char *name, char **errptr);
void leveldb_close(leveldb_t *);
void leveldb_put(leveldb_t *, const leveldb_writeoptions_t *, const char *key, size_t, const char *val, size_t,
                 char **errptr);
void leveldb_delete(leveldb_t *, const leveldb_writeoptions_t *, const char *key, size_t, char **errptr);
void leveldb_write(leveldb_t *, const leveldb_writeoptions_t *, leveldb_writebatch_t *, char **errptr);
char *leveldb_get(leveldb_t *, const leveldb_readoptions_t *, const char *key, size_t, size_t *vallen, char **errptr);
leveldb_iterator_t *leveldb_create_iterator(leveldb_t *, const leveldb_readoptions_t *);
const leveldb_snapshot_t *leveldb_create_snapshot(leveldb_t *);
void leveldb_release_snapshot(leveldb_t *, const leveldb_snapshot_t *);
char *leveldb_property_value(leveldb_t *, const char *propname);
void leveldb_approximate_sizes(leveldb_t *, int num_ranges, const char *const *starts, const size_t *start_lens,
                               const char *const *limits, const size_t *limit_lens, uint64_t *sizes);
void leveldb_compact_range(leveldb_t *, const char *start, size_t, const char *limit, size_t);

void leveldb_destroy_db(const leveldb_options_t *, const char *name, char **errptr);
void leveldb_repair_db(const leveldb_options_t *, const char *name, char **errptr);

void leveldb_iter_destroy(leveldb_iterator_t *);
uint8_t leveldb_iter_valid(const leveldb_iterator_t *);
void leveldb_iter_seek_to_first(leveldb_iterator_t *);
void leveldb_iter_seek_to_last(leveldb_iterator_t *);
void leveldb_iter_seek(leveldb_iterator_t *, const char *, size_t);
void leveldb_iter_next(leveldb_iterator_t *);
void leveldb_iter_prev(leveldb_iterator_t *);
const char *leveldb_iter_key(const leveldb_iterator_t *, size_t *);
const char *leveldb_iter_value(const leveldb_iterator_t *, size_t *);
void leveldb_iter_get_error(const leveldb_iterator_t *, char **errptr);

leveldb_writebatch_t *leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t *);
void leveldb_writebatch_clear(leveldb_writebatch_t *);
void leveldb_writebatch_put(leveldb_writebatch_t *, const char *key, size_t, const char *val, size_t);
void leveldb_writebatch_delete(leveldb_writebatch_t *, const char *key, size_t);
void leveldb_writebatch_iterate(const leveldb_writebatch_t *, void *state,
                                void (*put)(void *, const char *, size_t, const char *, size_t),
                                void (*deleted)(void *, const char *, size_t));
void leveldb_writebatch_append(leveldb_writebatch_t *destination, const leveldb_writebatch_t *source);

leveldb_options_t *leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t *);
void leveldb_options_set_comparator(leveldb_options_t *, leveldb_comparator_t *);
void leveldb_options_set_filter_policy(leveldb_options_t *, leveldb_filterpolicy_t *);
void leveldb_options_set_create_if_missing(leveldb_options_t *, uint8_t);
void leveldb_options_set_error_if_exists(leveldb_options_t *, uint8_t);
void leveldb_options_set_paranoid_checks(leveldb_options_t *, uint8_t);
void leveldb_options_set_env(leveldb_options_t *, leveldb_env_t *);
void leveldb_options_set_info_log(leveldb_options_t *, leveldb_logger_t *);
void leveldb_options_set_write_buffer_size(leveldb_options_t *, size_t);
void leveldb_options_set_max_open_files(leveldb_options_t *, int);
void leveldb_options_set_cache(leveldb_options_t *, leveldb_cache_t *);
void leveldb_options_set_block_size(leveldb_options_t *, size_t);
void leveldb_options_set_block_restart_interval(leveldb_options_t *, int);
void leveldb_options_set_max_file_size(leveldb_options_t *, size_t);
void leveldb_options_set_compression(leveldb_options_t *, int);

leveldb_comparator_t *leveldb_comparator_create(void *state, void (*destructor)(void *),
                                                int (*compare)(void *, const char *, size_t, const char *, size_t),
                                                const char *(*name)(void *));
void leveldb_comparator_destroy(leveldb_comparator_t *);

leveldb_filterpolicy_t *leveldb_filterpolicy_create(
    void *state, void (*destructor)(void *),
    char *(*create_filter)(void *, const char *const *keys, const size_t *key_lens, int num_keys, size_t *filter_len),
    uint8_t (*key_may_match)(void *, const char *key, size_t, const char *filter, size_t),
    const char *(*name)(void *));
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *);
leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);

leveldb_readoptions_t *leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t *);
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t *, uint8_t);
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t *, uint8_t);
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t *, const leveldb_snapshot_t *);

leveldb_writeoptions_t *leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t *);
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t *, uint8_t);

leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);
void leveldb_cache_destroy(leveldb_cache_t *);

leveldb_env_t *leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t *);
char *leveldb_env_get_test_directory(leveldb_env_t *);

void leveldb_free(void *);
int leveldb_major_version(void);
int leveldb_minor_version(void);

#endif
