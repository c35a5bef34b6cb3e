//! Esker's C interface: all that the engine and its transactions offer, as `libesker.so`, `libesker.a` and `esker.h`.
//!
//! The header is generated from these files (`scripts/header.sh`; a test fails when it has drifted), so what stands above a function
//! here is what a C programmer reads. The conventions stand at the head of the header, which is `cbindgen.toml`, and in
//! `docs/capi.md`.
//!
//! | file | functions |
//! |---|---|
//! | `boundary` | no panic leaves the library; handles, and where answers are put |
//! | `slice` `text` `buffer` `list` | bytes, strings, owned bytes, lists of things |
//! | `error` | `esker_error_*`: what went wrong |
//! | `environment` `options` `family_options` `call_options` | what can be chosen |
//! | `comparator` `merge_operator` `compaction_filter` `collector` `listener` | code of the program's own |
//! | `event` `shown` | what listeners are told, and how it is made of what the engine tells |
//! | `database` `follower` `family` `snapshot` | open, close, remove; follow another process; column families; snapshots |
//! | `write` `batch` `read` `iterator` `table_file` | what programs do with an open database |
//! | `maintenance` `family_files` `verify` `repair` | flushes, compactions, checkpoints; families exported and imported; checks, repairs |
//! | `figures` `family_figures` `tables` | what is told about a database |
//! | `prepared` | two-phase commit of batches |
//! | `transaction_options` `transaction` `transaction_reads` `transaction_writes` `transaction_two_phase` `locks` | transactions, and what they hold |
//!
//! **What C promises**, and what the types of parameters say to Rust: a pointer to an object (`Option<&T>`, `Option<Box<T>>`) is
//! null or came from this library and was not freed; an exclusive one (`Option<&mut T>`) is used by one thread at a time; a slice or
//! an array is readable for the length beside it; a string ends with a NUL; a place for an answer is writable. `SAFETY` notes call
//! that the contract. Null pointers, lengths without data, bad UTF-8 and numbers out of range are no breach of it: they become errors.
// The names are C's.
#![allow(non_camel_case_types)]

mod batch;
mod boundary;
mod buffer;
mod call_options;
mod collector;
mod compaction_filter;
mod comparator;
mod database;
mod environment;
mod error;
mod event;
mod family;
mod family_figures;
mod family_files;
mod family_options;
mod figures;
mod follower;
mod iterator;
mod list;
mod listener;
mod locks;
mod maintenance;
mod merge_operator;
mod options;
mod prepared;
mod read;
mod repair;
mod shown;
mod slice;
mod snapshot;
mod table_file;
mod tables;
mod text;
mod transaction;
mod transaction_options;
mod transaction_reads;
mod transaction_two_phase;
mod transaction_writes;
mod verify;
mod write;
