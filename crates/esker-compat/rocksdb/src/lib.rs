//! The core of RocksDB's C interface over Esker.
