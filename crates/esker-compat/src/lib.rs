//! What the drop-in C libraries for LevelDB and RocksDB share: memory, errors and callbacks as C has them.
//!
//! | file | what it does |
//! |---|---|
//! | `bytes` | slices and strings out of C's pointers |
//! | `memory` | answers in memory that the caller frees by `free` |
//! | `status` | the engine's errors as the originals word them |
//! | `guard` | errors into `char** errptr`; no panic leaves the library |
//! | `batch` | a write batch whose calls can't fail, so that its commit does |
//! | `cursor` | an iterator that keeps its error until it is asked |
//! | `comparator` | an order of keys by a C function |
//! | `folder` | databases of others are recognised; a database is listed or destroyed |
//! | `properties` | figures of an open database |
//!
//! Esker's own C interface (`crates/esker-capi/`) uses `bytes`, `guard::caught` and `folder::remove`, which know nothing of the originals.
//!
//! **The contract** of every function here and in the two libraries that is `unsafe`, as the originals' headers state
//! it: pointers to objects come from the matching `create` or `open` and were not destroyed; data pointers are readable
//! for the length beside them; an error slot holds null or a string that `malloc` gave. What is more than that is said
//! where it is needed.
#![deny(missing_docs)]

pub mod batch;
pub mod bytes;
pub mod comparator;
pub mod cursor;
pub mod folder;
pub mod guard;
pub mod memory;
pub mod properties;
pub mod status;

pub use guard::{report, survive};
pub use status::{Result, Status};
