//! Entry points for fuzz targets: bytes in, no panic and no wrong claim out.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use esker_env::RandomFile;

use super::block::{Block, BlockBuilder};
use super::filter::{build_filter, filter_hash, filter_may_contain, is_filter};
use super::format::{FOOTER_LEN, Footer, mend_block, mend_ends};
use super::options::{CursorOptions, Purpose, TableOpenOptions, TableReadOptions};
use super::table::Table;
use crate::cache::{BlockCache, SharedBytes};
use crate::codec::{Compressor, decompress};
use crate::key::{Cursor, KeyOrder, SEQUENCE_MAX, ValueKind, internal_key};
use crate::metrics::Metrics;
use crate::options::Compression;

/// Takes the bytes for a block: parses them and uses everything of what passes.
pub fn fuzz_block(bytes: &[u8]) {
    let Some(block) = Block::parse(SharedBytes::from(bytes)) else {
        return;
    };
    let mut builder = BlockBuilder::new();
    let (mut out, mut key) = (Vec::new(), Vec::new());
    for i in 0..block.len() {
        key.clear();
        block.append_key(i, &mut key);
        builder.add(&mut out, &key, block.value(i));
        let found = block.search(&KeyOrder::Bytewise, &key[..key.len() - 8], 0, &mut Vec::new());
        assert!(found.index <= block.len());
    }
    // Keys may lie about their order here, so the builder must not trust the first and the last.
    builder.finish(&mut out, false);
    let again = Block::parse(SharedBytes::from(out));
    assert!(
        again.is_some_and(|again| again.len() == block.len()),
        "what was read can be written"
    );
}

/// Takes the first byte for a method, and the rest both for raw and for compressed bytes.
pub fn fuzz_compression(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let Some(kind) = Compression::from_u8(kind % 5) else {
        return;
    };
    let _ = decompress(kind, rest);
    if let Some((stored, kind)) = Compressor::new(kind).compress(rest) {
        assert_eq!(decompress(kind, stored).as_deref(), Some(rest));
    }
}

/// Takes the bytes for a filter, and their pieces for keys of a good one.
pub fn fuzz_filter(bytes: &[u8]) {
    let _ = (is_filter(bytes), filter_may_contain(bytes, filter_hash(bytes)));
    let bits = u32::from(bytes.first().copied().unwrap_or(10)) % 32 + 1;
    let hashes: Vec<u64> = bytes.chunks(3).map(filter_hash).collect();
    let mut filter = Vec::new();
    build_filter(&hashes, bits, &mut filter);
    assert!(hashes.iter().all(|&hash| filter_may_contain(&filter, hash)));
}

/// Takes the bytes for a table: opens it and reads what can be read, in every way. With `mend`, the checksums of its
/// ends and of the blocks that its footer names are made right first, so that the parsers behind them are reached.
pub fn fuzz_table(bytes: &[u8], mend: bool) {
    let mut bytes = bytes.to_vec();
    if mend {
        mend_table(&mut bytes);
    }
    let file = Arc::new(Bytes(bytes));
    let salvaged = super::salvage::fuzz_salvage(file.clone());
    let cache = Arc::new(BlockCache::new(1 << 20));
    let table = Table::open(
        file,
        Path::new("fuzz.sst"),
        1,
        KeyOrder::Bytewise,
        cache,
        Arc::new(Metrics::default()),
        &TableOpenOptions::default(),
    );
    let Ok(table) = table.map(Arc::new) else {
        return;
    };
    if table.verify().is_ok() {
        let entries = table.properties().entries;
        assert!(
            salvaged == Some((entries, 0)),
            "of {entries} whole rows, {salvaged:?}"
        );
    }
    let _ = (table.key_ranges(4), table.may_contain(b"key"));
    let _ = table.approximate_bytes(Some(&internal_key(b"key", 1, ValueKind::Put)), None);
    let options = TableReadOptions {
        verify_checksums: false,
        fill_cache: true,
    };
    let _ = table.get(b"key", SEQUENCE_MAX, options, |_, _, value| {
        let _ = value.pin();
        ControlFlow::Continue(())
    });
    for purpose in [Purpose::User, Purpose::Compaction] {
        let mut cursor = table.cursor(CursorOptions {
            purpose,
            read: options,
            ..CursorOptions::default()
        });
        let _ = cursor.seek_to_first();
        for _ in 0..1000 {
            if !cursor.valid() || cursor.next().is_err() {
                break;
            }
        }
        let _ = cursor.seek_to_last();
        for _ in 0..1000 {
            if !cursor.valid() || cursor.prev().is_err() {
                break;
            }
        }
    }
}

fn mend_table(bytes: &mut [u8]) {
    mend_ends(bytes);
    let footer = bytes.len().saturating_sub(FOOTER_LEN);
    let Ok(footer) = Footer::decode(&bytes[footer..]) else {
        return;
    };
    for block in [
        footer.index,
        footer.filter,
        footer.range_tombstones,
        footer.properties,
    ] {
        let range = block.end().map(|end| block.offset as usize..end as usize);
        if let Some(stored) = range.and_then(|range| bytes.get_mut(range)) {
            mend_block(stored, footer.file_id, block.offset);
        }
    }
}

/// A file in memory.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl RandomFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let len = buf.len().min(self.0.len() - from);
        buf[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}
