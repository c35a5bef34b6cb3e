//! Reads the live manifest back into a state.

use std::path::Path;

use esker_env::Fs;

use super::{
    FLAGS_KNOWN, FORMAT_VERSION, HEADER_LEN, MAGIC, PAYLOAD_LEN_MAX, RECORD_HEADER_LEN, RecordKind, current,
    record_checksum, salvage,
};
use crate::codec::{checksum, take_bytes, take_slice, take_u8, take_u32, take_u64, take_varint};
use crate::error::{Error, ErrorKind, Result};
use crate::version::edit::VersionEdit;
use crate::version::names::FileKind;
use crate::version::state::VersionState;

/// Bytes that may be checksummed in search of a record behind a bad one. Only a crafted file needs more.
const SEARCH_BYTES_MAX: u64 = 4 << 30;

/// The end of a manifest that a crash cut: edits that were never acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Where the torn record starts.
    pub offset: u64,
    /// Bytes from there to the end of the file.
    pub len_bytes: u64,
}

/// What a manifest says.
#[derive(Debug)]
pub struct Recovered {
    /// The state after its last whole group of edits.
    pub state: VersionState,
    /// Its number.
    pub manifest_number: u64,
    /// Whether it ends in a record that a crash cut.
    pub torn_tail: Option<TornTail>,
    /// Groups of edits behind the snapshot.
    pub groups: u64,
    /// Where its last whole record ends.
    pub end_offset: u64,
}

/// Reads the state of the database in `dir`. Changes nothing.
///
/// # Errors
/// `NotFound`: there is no database. `InvalidArgument`: the folder holds something else. `Unsupported`: it was
/// written by a newer version. `Corruption`, with file and offset: the manifest is missing or damaged anywhere but
/// in a torn last record.
pub fn recover(fs: &dyn Fs, dir: &Path) -> Result<Recovered> {
    read(fs, dir, &mut |_, _, _| {})
}

/// Gives every edit of the live manifest to `visitor`, with its record's offset and kind. Edits in front of a damage
/// are given before its error; errors as for [`recover`].
pub fn visit(fs: &dyn Fs, dir: &Path, visitor: Visitor<'_>) -> Result<()> {
    read(fs, dir, visitor).map(|_| ())
}

type Visitor<'a> = &'a mut dyn FnMut(u64, RecordKind, &VersionEdit);

fn read(fs: &dyn Fs, dir: &Path, visitor: Visitor<'_>) -> Result<Recovered> {
    let mut number = current::read(fs, dir)?;
    let (path, bytes) = loop {
        let path = FileKind::Manifest(number).path(dir);
        match fs.read_all(&path) {
            Ok(bytes) => break (path, bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // The process that has the database open may have gone on to the next one.
                let now = current::read(fs, dir)?;
                if now == number {
                    let missing = Error::corruption("the manifest that CURRENT names is missing");
                    return Err(missing.in_file(&path));
                }
                number = now;
            }
            Err(error) => return Err(Error::io("can't read the manifest", error).in_file(&path)),
        }
    };
    parse(&bytes, number, visitor).map_err(|error| error.in_file(&path))
}

/// The state that the bytes of manifest `number` describe.
fn parse(bytes: &[u8], number: u64, visitor: Visitor<'_>) -> Result<Recovered> {
    let database_id = parse_header(bytes, number)?;
    let mut state = VersionState::new(database_id);
    let mut offset = HEADER_LEN;
    let (mut in_snapshot, mut groups, mut torn_tail) = (true, 0, None);
    while offset < bytes.len() {
        let Some(payload) = record_in(&bytes[offset..], number, offset as u64) else {
            torn_tail = Some(judge_tail(&bytes[offset..], number, offset as u64)?);
            break;
        };
        let kind = apply(&mut state, payload, in_snapshot, &mut |kind, edit| {
            visitor(offset as u64, kind, edit);
        })
        .map_err(|error| error.at_offset(offset as u64))?;
        match kind {
            RecordKind::Snapshot => {}
            RecordKind::SnapshotEnd => in_snapshot = false,
            RecordKind::Group => groups += 1,
        }
        offset += RECORD_HEADER_LEN + payload.len();
    }
    if in_snapshot {
        // CURRENT named it, so its snapshot was whole once.
        return Err(Error::corruption("the manifest ends within its snapshot").at_offset(offset as u64));
    }
    state.next_file_number = state.next_file_number.max(number.saturating_add(1));
    Ok(Recovered {
        state,
        manifest_number: number,
        torn_tail,
        groups,
        end_offset: offset as u64,
    })
}

/// Checks the header and gives the database's id.
pub(super) fn parse_header(bytes: &[u8], number: u64) -> Result<u128> {
    let damaged = |what: &str| Error::corruption(what).at_offset(0);
    let mut input = bytes;
    if !bytes.starts_with(&MAGIC) {
        return Err(damaged("the file is no manifest"));
    }
    let header = take_bytes(&mut input, HEADER_LEN).ok_or_else(|| damaged("the manifest's header is cut"))?;
    let (covered, mut crc) = header.split_at(HEADER_LEN - 4);
    // A newer format may have a longer header, so its version is judged before the checksum.
    let mut fields = &covered[MAGIC.len()..];
    let cut = || damaged("the manifest's header is cut");
    let version = take_u32(&mut fields).ok_or_else(cut)?;
    let checked = take_u32(&mut crc) == Some(checksum(&[covered]));
    if version > FORMAT_VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the manifest has format version {version}; this engine reads up to {FORMAT_VERSION}"),
        ));
    }
    if !checked || version == 0 {
        return Err(damaged("the manifest's header is damaged"));
    }
    let flags = take_u32(&mut fields).ok_or_else(cut)?;
    if flags & !FLAGS_KNOWN != 0 {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the manifest has flags {flags:#x}, which this engine does not know"),
        ));
    }
    let low = take_u64(&mut fields).ok_or_else(cut)?;
    let high = take_u64(&mut fields).ok_or_else(cut)?;
    let stored = take_u64(&mut fields).ok_or_else(cut)?;
    if stored != number {
        return Err(damaged(&format!("the file is manifest {stored}, not {number}")));
    }
    Ok(u128::from(high) << 64 | u128::from(low))
}

/// The payload of the record at `offset`, if there is a whole one.
pub(super) fn record_at(bytes: &[u8], number: u64, offset: usize) -> Option<&[u8]> {
    record_in(bytes.get(offset..)?, number, offset as u64)
}

/// The payload of the record at the front of `bytes`, which stand at `offset`, if there is a whole one.
pub(super) fn record_in(bytes: &[u8], number: u64, offset: u64) -> Option<&[u8]> {
    let mut input = bytes;
    let len = take_u32(&mut input)? as usize;
    let crc = take_u32(&mut input)?;
    if len == 0 || len > PAYLOAD_LEN_MAX {
        return None;
    }
    let payload = take_bytes(&mut input, len)?;
    (record_checksum(number, offset, payload) == crc).then_some(payload)
}

/// Decides what a bad record at `offset` means, where `bytes` stand. Every group is synced before the next is written, so a
/// torn one is the last one: a good record anywhere behind it shows that stored bytes went bad.
pub(super) fn judge_tail(bytes: &[u8], number: u64, offset: u64) -> Result<TornTail> {
    let mut budget = SEARCH_BYTES_MAX;
    for at in 1..bytes.len().saturating_sub(RECORD_HEADER_LEN) {
        let mut head = &bytes[at..];
        let len = take_u32(&mut head).unwrap_or(0) as usize;
        if len == 0 || len > head.len().saturating_sub(4) {
            continue;
        }
        let Some(left) = budget.checked_sub(len as u64) else {
            return Err(Error::corruption("the manifest is damaged beyond judgement").at_offset(offset));
        };
        budget = left;
        let found = offset + at as u64;
        if record_in(&bytes[at..], number, found).is_some() {
            return Err(Error::corruption(format!(
                "a record of the manifest is damaged, and a good one follows at offset {found}"
            ))
            .at_offset(offset));
        }
    }
    Ok(TornTail {
        offset,
        len_bytes: bytes.len() as u64,
    })
}

pub(super) fn apply(
    state: &mut VersionState,
    mut payload: &[u8],
    in_snapshot: bool,
    visitor: &mut dyn FnMut(RecordKind, &VersionEdit),
) -> Result<RecordKind> {
    let malformed = || Error::corruption("a record of the manifest is malformed");
    let kind = match take_u8(&mut payload).ok_or_else(malformed)? {
        1 => RecordKind::Snapshot,
        2 => RecordKind::SnapshotEnd,
        3 => RecordKind::Group,
        unknown => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("a record of kind {unknown} was written by a newer version of the engine"),
            ));
        }
    };
    if (kind == RecordKind::Group) == in_snapshot {
        return Err(Error::corruption("a record of the manifest is out of place"));
    }
    let count = take_varint(&mut payload).ok_or_else(malformed)?;
    for _ in 0..count {
        let edit = VersionEdit::decode(take_slice(&mut payload).ok_or_else(malformed)?)?;
        visitor(kind, &edit);
        state.apply(&edit)?;
    }
    if payload.is_empty() {
        Ok(kind)
    } else {
        Err(malformed())
    }
}

/// Fuzz entry point: any bytes are a state or an error, never a panic. With `fix`, the checksums of header and
/// records are made right first, so that the parser behind them is reached.
pub fn fuzz_manifest(bytes: &[u8], fix: bool) {
    const NUMBER: u64 = 3;
    let mut bytes = bytes.to_vec();
    if fix {
        let mut whole = super::header(1, NUMBER);
        while bytes.len() > RECORD_HEADER_LEN {
            let len = usize::from(bytes[0]).clamp(1, bytes.len() - RECORD_HEADER_LEN);
            let payload = &bytes[RECORD_HEADER_LEN..][..len];
            let crc = record_checksum(NUMBER, whole.len() as u64, payload);
            whole.extend_from_slice(&(len as u32).to_le_bytes());
            whole.extend_from_slice(&crc.to_le_bytes());
            whole.extend_from_slice(payload);
            bytes.drain(..RECORD_HEADER_LEN + len);
        }
        bytes = whole;
    }
    if let Ok(recovered) = parse(&bytes, NUMBER, &mut |_, _, _| {}) {
        assert!(
            recovered.manifest_number == NUMBER,
            "a manifest of another number was read"
        );
        // Read in two steps it says the same.
        let mut first = usize::try_from(recovered.end_offset).unwrap_or(bytes.len());
        if recovered.groups > 0 {
            first = first_group_offset(&bytes, NUMBER);
        }
        if let Ok(before) = parse(&bytes[..first], NUMBER, &mut |_, _, _| {}) {
            let groups = before.groups;
            let mut tail = super::tail::ManifestTail::new(before);
            let changes = tail.advance(&bytes[first..]);
            assert!(changes.is_ok_and(|changes| groups + changes.groups == recovered.groups));
            assert_eq!(
                format!("{:?}", tail.state().snapshot_edits()),
                format!("{:?}", recovered.state.snapshot_edits())
            );
        }
        let facts = salvage::parse(&bytes, NUMBER);
        let known = |number: &u64| {
            let mut families = recovered.state.families();
            families.any(|family| family.file_numbers().any(|file| file == *number))
        };
        assert!(
            facts.is_ok_and(|facts| facts.whole && facts.tables.keys().all(known)),
            "a whole manifest was salvaged as another"
        );
    } else {
        let _ = salvage::parse(&bytes, NUMBER);
    }
}

/// Where the snapshot of a manifest that can be read ends.
fn first_group_offset(bytes: &[u8], number: u64) -> usize {
    let mut end = 0;
    let _ = parse(bytes, number, &mut |offset, kind, _| {
        if end == 0 && kind == RecordKind::Group {
            end = offset as usize;
        }
    });
    end
}
