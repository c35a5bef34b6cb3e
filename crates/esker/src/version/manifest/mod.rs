//! The manifest: the database's state and its changes on disk.
//!
//! ```text
//! MANIFEST-NNNNNN := header record*
//! header  := magic 8 | format version u32 | flags u32 | database id 16 | manifest number u64 | crc32c u32
//! record  := length u32 | crc32c u32 | payload of `length` bytes
//! payload := kind u8 | count varint | (length varint | edit) * count
//! ```
//! All fixed-width integers are little-endian. A record's checksum covers the manifest's number, the record's
//! offset, its length and its payload: a stale block of another manifest, or of another place in this one, is
//! never read as a record. The first records are a snapshot of the state; every further one is a group of edits
//! that takes effect as a whole.
//!
//! A manifest counts only once `CURRENT` names it, and `CURRENT` is switched (written aside, synced, renamed,
//! folder synced) only once the snapshot is synced. So there is always exactly one live manifest, and it is whole.
//! An edit group is durable when [`ManifestWriter::append`] returns; a crash before that leaves at most one torn
//! record at the very end, which was acknowledged to nobody.

mod current;
mod reader;
mod salvage;
mod tail;
mod writer;

#[cfg(test)]
pub(crate) mod test_fs;
#[cfg(test)]
mod tests;

pub use reader::{Recovered, TornTail, fuzz_manifest, recover, visit};
pub use salvage::{Facts, FamilyFacts, ListedTable, salvage};
pub use tail::{ManifestTail, Next};
pub use writer::ManifestWriter;

use super::edit::VersionEdit;
use crate::codec::{checksum, put_slice, put_varint};
use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"ESKERMAN";
const FORMAT_VERSION: u32 = 1;
/// Flags that this version of the engine understands: none yet.
const FLAGS_KNOWN: u32 = 0;
const HEADER_LEN: usize = 44;
const RECORD_HEADER_LEN: usize = 8;
/// The longest payload, in bytes. A group that removes a million tables is a tenth of it.
const PAYLOAD_LEN_MAX: usize = 256 << 20;

/// What a record's edits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// A part of the snapshot, with more to come.
    Snapshot = 1,
    /// The last part of the snapshot.
    SnapshotEnd = 2,
    /// An atomic group of edits.
    Group = 3,
}

fn header(database_id: u128, number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&FLAGS_KNOWN.to_le_bytes());
    bytes.extend_from_slice(&database_id.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    let crc = checksum(&[&bytes]);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn record_checksum(number: u64, offset: u64, payload: &[u8]) -> u32 {
    checksum(&[
        &number.to_le_bytes(),
        &offset.to_le_bytes(),
        &(payload.len() as u64).to_le_bytes(),
        payload,
    ])
}

/// A whole record of `edits` for offset `offset` of manifest `number`.
fn record(kind: RecordKind, edits: &[VersionEdit], number: u64, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; RECORD_HEADER_LEN];
    bytes.push(kind as u8);
    put_varint(&mut bytes, edits.len() as u64);
    let mut edit_bytes = Vec::new();
    for edit in edits {
        edit_bytes.clear();
        edit.encode(&mut edit_bytes);
        put_slice(&mut bytes, &edit_bytes);
    }
    let (head, payload) = bytes.split_at_mut(RECORD_HEADER_LEN);
    let len = u32::try_from(payload.len())
        .ok()
        .filter(|&len| len as usize <= PAYLOAD_LEN_MAX)
        .ok_or_else(|| {
            Error::invalid(format!(
                "a group of edits takes {} bytes in the manifest; {PAYLOAD_LEN_MAX} is the limit",
                payload.len()
            ))
        })?;
    head[..4].copy_from_slice(&len.to_le_bytes());
    head[4..].copy_from_slice(&record_checksum(number, offset, payload).to_le_bytes());
    Ok(bytes)
}
