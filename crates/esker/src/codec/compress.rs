//! Compression of blocks and values, with contexts that are kept between them and bounds against decompression bombs.
//!
//! A compressed block is `varint raw length | compressed bytes`.

use std::cell::RefCell;
use std::sync::Arc;

use flate2::{Decompress, FlushCompress, FlushDecompress, Status};
use lz4_flex::block::CompressTable;

use super::{put_varint, take_varint, varint_len};
use crate::options::Compression;

/// Blocks larger than this are stored as they are, and none is decompressed to more: the bound on what a damaged or
/// hostile file can make the reader allocate for one block.
pub const RAW_LEN_MAX: usize = 64 << 20;

const ZLIB_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

enum Codec {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zlib(Box<flate2::Compress>),
    Lz4(CompressTable),
    Zstd(zstd::bulk::Compressor<'static>),
}

/// Compresses blocks by one method. Reuses its tables and its output buffer.
pub struct Compressor {
    kind: Compression,
    codec: Codec,
    out: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compressor({:?})", self.kind)
    }
}

impl Compressor {
    /// A compressor of this kind. Where its context can't be made (out of memory), blocks stay as they are.
    pub fn new(kind: Compression) -> Self {
        let codec = match kind {
            Compression::None => Codec::None,
            Compression::Snappy => Codec::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Zlib => Codec::Zlib(Box::new(flate2::Compress::new(
                flate2::Compression::new(ZLIB_LEVEL),
                true,
            ))),
            Compression::Lz4 => Codec::Lz4(CompressTable::default()),
            Compression::Zstd => zstd::bulk::Compressor::new(ZSTD_LEVEL).map_or(Codec::None, Codec::Zstd),
        };
        Self {
            kind,
            codec,
            out: Vec::new(),
        }
    }

    /// The compressed form of `raw` with its method, or `None` if the block is better stored as it is: when
    /// compression saves less than an eighth.
    pub fn compress(&mut self, raw: &[u8]) -> Option<(&[u8], Compression)> {
        if matches!(self.codec, Codec::None) || raw.len() > RAW_LEN_MAX {
            return None;
        }
        let head = varint_len(raw.len() as u64);
        let budget = (raw.len() - raw.len() / 8).checked_sub(head + 1)?;
        // LZ4 and Snappy want room for the worst case; the others stop at the budget.
        let room = match self.codec {
            Codec::Snappy(_) => snap::raw::max_compress_len(raw.len()),
            Codec::Lz4(_) => lz4_flex::block::get_maximum_output_size(raw.len()),
            _ => budget,
        };
        self.out.clear();
        put_varint(&mut self.out, raw.len() as u64);
        self.out.resize(head + room, 0);
        let out = &mut self.out[head..];
        let len = match &mut self.codec {
            Codec::None => None,
            Codec::Snappy(encoder) => encoder.compress(raw, out).ok(),
            Codec::Lz4(table) => lz4_flex::block::compress_into_with_table(raw, out, table).ok(),
            Codec::Zstd(encoder) => encoder.compress_to_buffer(raw, out).ok(),
            Codec::Zlib(encoder) => {
                encoder.reset();
                match encoder.compress(raw, out, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => usize::try_from(encoder.total_out()).ok(),
                    _ => None,
                }
            }
        }?;
        (len <= budget).then(|| (&self.out[..head + len], self.kind))
    }
}

thread_local! {
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    static ZLIB: RefCell<Option<Decompress>> = const { RefCell::new(None) };
}

/// Decompresses a block's stored bytes; `None` if they are not what `kind` would have written.
pub fn decompress(kind: Compression, stored: &[u8]) -> Option<Arc<[u8]>> {
    let mut input = stored;
    let raw_len = take_raw_len(kind, &mut input)?;
    let mut raw: Arc<[u8]> = std::iter::repeat_n(0, raw_len).collect();
    decompress_exact(kind, input, Arc::get_mut(&mut raw)?)?;
    Some(raw)
}

/// As [`decompress`], into a buffer that is used again. What it holds afterwards is undefined if this gives `None`.
pub fn decompress_into(kind: Compression, stored: &[u8], raw: &mut Vec<u8>) -> Option<()> {
    let mut input = stored;
    let raw_len = take_raw_len(kind, &mut input)?;
    raw.resize(raw_len, 0);
    decompress_exact(kind, input, raw)
}

/// The length that [`decompress`] would give, if it could; `None` if it could not reach that.
pub fn raw_len(kind: Compression, mut stored: &[u8]) -> Option<usize> {
    match kind {
        Compression::None => Some(stored.len()),
        _ => take_raw_len(kind, &mut stored),
    }
}

/// Reads the raw length at the front, and refuses one that the bytes behind it can't reach.
fn take_raw_len(kind: Compression, input: &mut &[u8]) -> Option<usize> {
    let raw_len = usize::try_from(take_varint(input)?).ok()?;
    // The densest that each format can be, so that a small block can't claim to be a large one. zstd has no such
    // bound.
    let ratio_max = match kind {
        Compression::None | Compression::Zstd => usize::MAX,
        Compression::Snappy => 64,
        Compression::Lz4 => 256,
        Compression::Zlib => 1040,
    };
    let reachable = input.len().saturating_mul(ratio_max).saturating_add(64);
    (raw_len <= RAW_LEN_MAX.min(reachable)).then_some(raw_len)
}

/// Decompresses `input` into all of `out`.
fn decompress_exact(kind: Compression, input: &[u8], out: &mut [u8]) -> Option<()> {
    let raw_len = out.len();
    let written = match kind {
        Compression::None => return None,
        Compression::Snappy => {
            if snap::raw::decompress_len(input).ok()? != raw_len {
                return None;
            }
            snap::raw::Decoder::new().decompress(input, out).ok()?
        }
        Compression::Lz4 => lz4_flex::block::decompress_into(input, out).ok()?,
        Compression::Zstd => ZSTD.with(|slot| {
            let mut slot = slot.try_borrow_mut().ok()?;
            if slot.is_none() {
                *slot = Some(zstd::bulk::Decompressor::new().ok()?);
            }
            slot.as_mut()?.decompress_to_buffer(input, out).ok()
        })?,
        Compression::Zlib => ZLIB.with(|slot| {
            let mut slot = slot.try_borrow_mut().ok()?;
            let inflate = slot.get_or_insert_with(|| Decompress::new(true));
            inflate.reset(true);
            match inflate.decompress(input, out, FlushDecompress::Finish) {
                Ok(Status::StreamEnd) => usize::try_from(inflate.total_out()).ok(),
                _ => None,
            }
        })?,
    };
    (written == raw_len).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Compression; 4] = [
        Compression::Snappy,
        Compression::Zlib,
        Compression::Lz4,
        Compression::Zstd,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_is_compressed_comes_back(words in prop::collection::vec(0_u8..20, 1..3000)) {
            for kind in ALL {
                let mut compressor = Compressor::new(kind);
                // Twice: contexts are reused.
                for _ in 0..2 {
                    if let Some((stored, as_kind)) = compressor.compress(&words) {
                        prop_assert_eq!(as_kind, kind);
                        prop_assert!(stored.len() <= words.len() - words.len() / 8);
                        let raw = decompress(kind, stored);
                        prop_assert_eq!(raw.as_deref(), Some(words.as_slice()));
                        let mut again = vec![9; 700];
                        prop_assert_eq!(decompress_into(kind, stored, &mut again), Some(()));
                        prop_assert_eq!(&again, &words);
                    }
                }
            }
        }

        #[test]
        fn garbage_is_refused_or_decoded_without_a_panic(kind in 1_u8..5, garbage: Vec<u8>) {
            let kind = Compression::from_u8(kind).expect("known");
            let _ = decompress(kind, &garbage);
        }
    }

    #[test]
    fn every_kind_compresses_what_repeats_and_leaves_what_does_not() {
        let noise: Vec<u8> = (0..4000_u64)
            .map(|i| {
                (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(29)
                    .wrapping_mul(i | 1)
                    >> 41) as u8
            })
            .collect();
        for kind in ALL {
            let mut compressor = Compressor::new(kind);
            let (stored, _) = compressor.compress(&[7; 4000]).expect("compresses");
            assert!(stored.len() < 400);
            assert!(compressor.compress(&noise).is_none(), "{kind:?}");
            assert!(
                compressor.compress(&[7; 4000]).is_some(),
                "usable after a refusal"
            );
        }
        assert!(Compressor::new(Compression::None).compress(&[7; 4000]).is_none());
    }

    #[test]
    fn a_bomb_is_refused_before_memory_is_taken() {
        for kind in ALL {
            let mut bomb = Vec::new();
            put_varint(&mut bomb, 1 << 40);
            bomb.extend_from_slice(&[0; 100]);
            assert!(decompress(kind, &bomb).is_none());
            let mut compressor = Compressor::new(kind);
            let (stored, _) = compressor.compress(&[7; 4000]).expect("compresses");
            let mut input = stored;
            take_varint(&mut input).expect("length");
            for claim in [3999, 4001, 1 << 20] {
                let mut lying = Vec::new();
                put_varint(&mut lying, claim);
                lying.extend_from_slice(input);
                assert!(decompress(kind, &lying).is_none(), "{kind:?} claims {claim}");
            }
        }
    }
}
