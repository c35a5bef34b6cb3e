//! Settings: plain data, validated when a database or column family is opened.
//!
//! Every setting has a default that is right for flash on a small machine. Units are in the names.

mod aging;
mod column_family;
mod database;
mod database_text;
mod operation;
mod text;

pub use aging::Aging;
pub use column_family::{ColumnFamilyOptions, CompactionStyle, Compression, MemtableKind, PrefixExtractor};
pub use database::{Options, RecoveryMode};
pub use operation::{Durability, WriteOptions};
pub use text::{CHANGEABLE, fuzz_options_text};
