//! The place in a file's metadata where its open table is kept.

/// Holds the open table of one file, so that a reader that has the file's metadata needs no lookup by number.
#[derive(Default, Debug)]
pub struct TableSlot;
