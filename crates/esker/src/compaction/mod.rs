//! Compaction: what to compact next ([`picker`]) and which rows survive ([`rows`]).

pub mod picker;
pub mod rows;
