//! A batch as bytes, in RocksDB's form, so that batches travel between programs over this library and over RocksDB.
//!
//! ```text
//! sequence u64 | count u32 | entry *                                  numbers are little-endian
//! entry = tag u8 | [family varint] | key slice | [value slice]        a slice is a varint length and the bytes
//! ```
//!
//! | tag | tag with a family | entry |
//! |---|---|---|
//! | 0 | 4 | delete |
//! | 1 | 5 | put |
//! | 2 | 6 | merge |
//! | 7 | 8 | single delete |
//! | 15 | 14 | range delete; the value is the end |
//! | 3 | | log data, which is passed over |

use std::ffi::c_char;

use esker::Mutation;
use esker_compat::bytes;

use super::Batch;

/// The id of the family `default`, in RocksDB and here.
const DEFAULT_COLUMN_FAMILY: u32 = 0;

const HEADER_LEN: usize = 12;
const LOG_DATA: u8 = 3;

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_varint(input: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return u32::try_from(number).ok();
        }
    }
    None
}

fn take_slice<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_varint(input)? as usize;
    let (slice, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(slice)
}

/// Appends an entry with its tag for the default family or, with an id behind it, for another.
fn put_entry(out: &mut Vec<u8>, family: u32, tags: (u8, u8), key: &[u8], value: Option<&[u8]>) {
    if family == DEFAULT_COLUMN_FAMILY {
        out.push(tags.0);
    } else {
        out.push(tags.1);
        put_varint(out, u64::from(family));
    }
    put_slice(out, key);
    if let Some(value) = value {
        put_slice(out, value);
    }
}

fn encode(batch: &Batch, out: &mut Vec<u8>) {
    let mutations = batch.inner.mutations();
    out.clear();
    out.extend_from_slice(&[0; HEADER_LEN]);
    out[8..].copy_from_slice(&(mutations.len() as u32).to_le_bytes());
    for mutation in mutations.mutations() {
        match mutation {
            Mutation::Delete { family, key } => put_entry(out, family, (0, 4), key, None),
            Mutation::Put { family, key, value } => put_entry(out, family, (1, 5), key, Some(value)),
            Mutation::Merge { family, key, operand } => put_entry(out, family, (2, 6), key, Some(operand)),
            Mutation::SingleDelete { family, key } => put_entry(out, family, (7, 8), key, None),
            Mutation::DeleteRange { family, start, end } => {
                put_entry(out, family, (15, 14), start, Some(end))
            }
            // There are no others; one that came to the engine without coming here would be left out.
            _ => {}
        }
    }
}

/// Adds the entries that `input` holds; what can't be read fails the batch's commit, like all that it can't take.
fn decode(input: &[u8], batch: &mut Batch) {
    let whole = (|| {
        let mut input = input.get(HEADER_LEN..)?;
        while let Some((&tag, rest)) = input.split_first() {
            input = rest;
            take_entry(tag, &mut input, batch)?;
        }
        Some(())
    })();
    if whole.is_none() {
        batch
            .inner
            .change(|_| Err(esker::Error::corruption("bad WriteBatch: an entry can't be read")));
    }
}

fn take_entry(tag: u8, input: &mut &[u8], batch: &mut Batch) -> Option<()> {
    let family = match tag {
        4 | 5 | 6 | 8 | 14 => take_varint(input)?,
        _ => DEFAULT_COLUMN_FAMILY,
    };
    let key = take_slice(input)?;
    let mutation = match tag {
        0 | 4 => Mutation::Delete { family, key },
        1 | 5 => Mutation::Put {
            family,
            key,
            value: take_slice(input)?,
        },
        2 | 6 => Mutation::Merge {
            family,
            key,
            operand: take_slice(input)?,
        },
        7 | 8 => Mutation::SingleDelete { family, key },
        15 | 14 => Mutation::DeleteRange {
            family,
            start: key,
            end: take_slice(input)?,
        },
        LOG_DATA => return Some(()),
        _ => return None,
    };
    batch.has_merges |= matches!(mutation, Mutation::Merge { .. });
    batch.inner.change(|batch| batch.push(mutation));
    Some(())
}

/// Good until the batch changes.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_data(batch: *mut Batch, len: *mut usize) -> *const c_char {
    // SAFETY: the contract; a batch is used by one thread at a time, `len` is writable.
    unsafe {
        let batch = &mut *batch;
        let mut wire = std::mem::take(&mut batch.wire);
        encode(batch, &mut wire);
        batch.wire = wire;
        *len = batch.wire.len();
        batch.wire.as_ptr().cast()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_create_from(data: *const c_char, len: usize) -> *mut Batch {
    let mut batch = Batch::default();
    // SAFETY: the contract.
    decode(unsafe { bytes::slice(data, len) }, &mut batch);
    Box::into_raw(Box::new(batch))
}
