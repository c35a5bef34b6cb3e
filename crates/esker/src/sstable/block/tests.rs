//! Blocks against the entries they were built from: searches, slices, and damaged bytes.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::key::ValueKind;
use crate::key::{KeyOrder, ReverseBytewiseComparator, internal_key, trailer, user_key};

fn orders() -> [KeyOrder; 2] {
    [
        KeyOrder::Bytewise,
        KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
    ]
}

fn build(order: &KeyOrder, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut builder = BlockBuilder::new();
    let mut out = Vec::new();
    for (key, value) in entries {
        builder.add(&mut out, key, value);
        assert_eq!(builder.last_key(), key);
    }
    let bound = builder.byte_len();
    builder.finish(&mut out, order.is_bytewise());
    assert!(builder.is_empty());
    assert!(out.len() <= bound + 4 * (entries.len() + 1));
    out
}

fn parse(bytes: Vec<u8>) -> Option<Block> {
    Block::parse(SharedBytes::from(bytes))
}

fn key_at(block: &Block, i: usize) -> Vec<u8> {
    let mut key = Vec::new();
    block.append_key(i, &mut key);
    key
}

/// Keys that share beginnings, contain zeros and have all lengths around eight.
fn user_keys() -> impl Strategy<Value = Vec<u8>> {
    (
        0_usize..3,
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, 97, 255]), 0..20),
    )
        .prop_map(|(shared, tail)| {
            let mut key = b"abcdefghijkl"[..shared * 6].to_vec();
            key.extend(tail);
            key
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn search_agrees_with_a_sorted_vector(
        raw in prop::collection::vec((user_keys(), 0_u64..4, prop::collection::vec(any::<u8>(), 0..9)), 0..60),
        probes in prop::collection::vec((user_keys(), 0_u64..5), 1..30),
        shared in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        for order in orders() {
            let mut entries: Vec<(Vec<u8>, Vec<u8>)> = raw
                .iter()
                .map(|(key, sequence, value)| {
                    let key = [shared.as_slice(), key].concat();
                    (internal_key(&key, *sequence, ValueKind::Put), value.clone())
                })
                .collect();
            entries.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
            entries.dedup_by(|a, b| a.0 == b.0);
            let block = parse(build(&order, &entries)).expect("well-formed");
            prop_assert_eq!(block.len(), entries.len());
            for (i, (key, value)) in entries.iter().enumerate() {
                prop_assert_eq!(&key_at(&block, i), key);
                prop_assert_eq!(block.value(i), value.as_slice());
                prop_assert_eq!(&*block.pin_value(i), value.as_slice());
            }
            let own = entries.iter().map(|(key, _)| key.clone());
            let with_prefix = probes.iter().map(|(key, s)| internal_key(&[shared.as_slice(), key].concat(), *s, ValueKind::SEEK));
            let without = probes.iter().map(|(key, s)| internal_key(key, *s, ValueKind::SEEK));
            let mut scratch = Vec::new();
            for target in own.chain(with_prefix).chain(without) {
                let found = block.search(&order, user_key(&target), trailer(&target), &mut scratch);
                let expected = entries.partition_point(|(key, _)| order.compare_internal(key, &target).is_lt());
                prop_assert_eq!(found.index, expected, "{:?}", &target);
                if let Some((key, _)) = entries.get(expected) {
                    let same = user_key(key) == user_key(&target);
                    prop_assert_eq!(found.in_prefix && block.has_user_key(expected, user_key(&target)), same);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(
        bytes: Vec<u8>,
        tail in prop::collection::vec(0_u8..9, 12..40),
        target: Vec<u8>,
    ) {
        for bytes in [bytes.clone(), [bytes, tail].concat()] {
            let Some(block) = parse(bytes) else { continue };
            let mut scratch = Vec::new();
            for order in orders() {
                let found = block.search(&order, &target, 7, &mut scratch);
                prop_assert!(found.index <= block.len());
            }
            for i in 0..block.len() {
                prop_assert!(block.key_suffix(i).len() >= TRAILER_LEN);
                let _ = (block.value(i), key_at(&block, i));
            }
        }
    }
}

#[test]
fn starts_are_wide_only_where_an_area_needs_it() {
    for (len, wide) in [(32_767, false), (32_768, true)] {
        let entries = [b"a", b"b"].map(|key| (internal_key(key, 1, ValueKind::Put), vec![1; len]));
        let block = parse(build(&KeyOrder::Bytewise, &entries)).expect("well-formed");
        assert_eq!(block.wide, wide);
        assert_eq!(block.value(1).len(), len);
        let found = block.search(&KeyOrder::Bytewise, b"b", u64::MAX, &mut Vec::new());
        assert_eq!(found.index, 1);
    }
}

#[test]
fn each_broken_invariant_is_noticed() {
    let entries = [b"aa", b"ab", b"ac"].map(|key| (internal_key(key, 1, ValueKind::Put), b"value".to_vec()));
    let good = build(&KeyOrder::Bytewise, &entries);
    assert!(parse(good.clone()).is_some());
    let len = good.len();
    // Tail words, starts that fall, first starts that are not 0, last starts that miss the end, and cuts.
    for at in (len - 12..len).chain(len - 28..len - 12) {
        for change in [1, 0x10, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= change;
            if let Some(block) = parse(bad) {
                // Only starts inside an area can move without breaking one of the rules.
                assert!((len - 28..len - 12).contains(&at), "byte {at} back {}", len - at);
                assert_eq!(block.len(), 3);
            }
        }
    }
    for cut in 0..len {
        assert!(parse(good[..cut].to_vec()).is_none(), "cut to {cut}");
    }
}

#[test]
fn a_block_comes_back_from_the_cache_only_as_what_it_is() {
    let entries = [(internal_key(b"k", 1, ValueKind::Put), b"v".to_vec())];
    let block = parse(build(&KeyOrder::Bytewise, &entries)).expect("well-formed");
    let cached = block.to_cached(BlockKind::Data);
    assert!(Block::from_cached(cached.clone(), BlockKind::Index).is_none());
    let back = Block::from_cached(cached, BlockKind::Data).expect("same kind");
    assert_eq!(key_at(&back, 0), entries[0].0);
}
