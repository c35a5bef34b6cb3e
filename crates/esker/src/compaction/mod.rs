//! Compaction: what to compact next ([`picker`]).

pub mod picker;
