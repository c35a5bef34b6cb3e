//! Snapshots: the database as it was at one moment.

use std::mem::MaybeUninit;

use esker::Snapshot;

use crate::boundary::{given, made, release};
use crate::database::esker_db;
use crate::error::esker_error;

/// The database as it was at one moment. What it sees is kept until it and all that share it are freed.
pub struct esker_snapshot(pub Snapshot);

/// Takes a snapshot of now.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_snapshot_create(
    db: Option<&esker_db>,
    snapshot: Option<&mut MaybeUninit<Option<Box<esker_snapshot>>>>,
) -> Option<Box<esker_error>> {
    made(snapshot, || Ok(esker_snapshot(given(db, "db")?.db.snapshot())))
}

/// The last sequence number that it sees; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_snapshot_sequence(snapshot: Option<&esker_snapshot>) -> u64 {
    snapshot.map_or(0, |snapshot| snapshot.0.sequence())
}

/// Frees a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn esker_snapshot_free(snapshot: Option<Box<esker_snapshot>>) {
    release(snapshot);
}
