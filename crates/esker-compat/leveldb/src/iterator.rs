//! Iterators: `leveldb_iter_*`.

esker_compat::iterator_functions!(
    leveldb_iter_destroy,
    leveldb_iter_valid,
    leveldb_iter_seek_to_first,
    leveldb_iter_seek_to_last,
    leveldb_iter_seek,
    leveldb_iter_next,
    leveldb_iter_prev,
    leveldb_iter_key,
    leveldb_iter_value,
    leveldb_iter_get_error
);
