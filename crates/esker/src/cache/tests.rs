//! What is kept, what goes, and what many threads see of it.

use std::sync::Arc;

use super::*;

fn block(len: usize, fill: u8) -> CachedBlock {
    CachedBlock {
        bytes: SharedBytes::from(vec![fill; len]),
        words: [fill.into(); 4],
    }
}

fn key(table: u64, offset: u64) -> BlockKey {
    BlockKey { table, offset }
}

#[test]
fn what_was_put_in_comes_out() {
    let cache = BlockCache::new(1 << 20);
    cache.insert(key(1, 0), block(100, 7));
    let found = cache.get(key(1, 0)).expect("just inserted");
    assert_eq!(&*found.bytes, &[7; 100]);
    assert_eq!(found.words, [7; 4]);
    assert!(cache.get(key(1, 100)).is_none());
    assert!(cache.get(key(0, 1)).is_none());
}

#[test]
fn it_stays_within_its_capacity_and_follows_changes_of_it() {
    let cache = BlockCache::new(4 << 20);
    for i in 0..4000 {
        cache.insert(key(1, i), block(4096, 1));
        assert!(cache.used_bytes() <= cache.capacity());
    }
    assert!(cache.used_bytes() > 3 << 20, "{cache:?}");
    cache.set_capacity(1 << 20);
    assert!(cache.used_bytes() <= cache.capacity() && cache.capacity() <= (1 << 20) + 64);
    cache.set_capacity(8 << 20);
    for i in 0..4000 {
        cache.insert(key(2, i), block(4096, 1));
    }
    assert!(cache.used_bytes() > 6 << 20, "{cache:?}");
    cache.set_capacity(0);
    assert_eq!(cache.len(), 0);
    cache.set_capacity(8 << 20);
    cache.insert(key(3, 0), block(4096, 1));
    assert!(cache.contains(key(3, 0)), "it grows again from nothing");
}

#[test]
fn small_changes_of_the_capacity_add_up_and_do_not_make_it_go_back_and_forth() {
    let mib = 1 << 20;
    let cache = BlockCache::new(64 * mib);
    let (mut changes, mut last) = (0, cache.capacity());
    let mut see = |wanted: u64| {
        let now = cache.capacity();
        assert!(now <= wanted + 64 && now + 2 * mib > wanted, "{now} for {wanted}");
        changes += u32::from(std::mem::replace(&mut last, now) != now);
        changes
    };
    for i in 0..1000 {
        let wanted = 60 * mib + (i % 7) * 200_000;
        cache.set_capacity(wanted);
        see(wanted);
    }
    assert!(see(60 * mib) <= 2);
    cache.set_capacity(60 * mib);
    for i in 1..=4 * 1024 {
        cache.shrink_by(1 << 10);
        see(60 * mib - (i << 10));
    }
    assert!(see(56 * mib) <= 7, "four steps");
    cache.set_capacity(64 * mib);
    assert_eq!(cache.capacity(), 64 * mib);
}

#[test]
fn a_scan_does_not_drive_out_what_is_used() {
    let cache = BlockCache::new(4 << 20);
    for round in 0..20 {
        for i in 0..100 {
            if cache.get(key(1, i)).is_none() {
                cache.insert(key(1, i), block(4096, 1));
            }
        }
        for i in 0..500 {
            cache.insert(key(2, round * 500 + i), block(4096, 2));
        }
    }
    let kept = (0..100).filter(|&i| cache.contains(key(1, i))).count();
    assert!(kept >= 90, "{kept} of 100 hot blocks survived the scans");
}

#[test]
fn what_was_put_in_as_used_outlives_a_flood_that_takes_the_rest() {
    let cache = BlockCache::new(4 << 20);
    // A working set of half the cache, and values that are met once, until it is full.
    let mut value = 0;
    let mut flood = |blocks: u64| {
        for _ in 0..blocks {
            value += 1;
            cache.insert(key(3, value), block(4096, 3));
        }
    };
    for _ in 0..8 {
        for i in 0..350 {
            if cache.get(key(1, i)).is_none() {
                cache.insert(key(1, i), block(4096, 1));
            }
        }
        flood(350);
    }
    for i in 0..100 {
        cache.insert_used(key(2, i), block(4096, 2));
        cache.insert(key(2, 1000 + i), block(4096, 2));
        flood(5);
    }
    let kept = |from: u64| (from..from + 100).filter(|&i| cache.contains(key(2, i))).count();
    assert_eq!(kept(0), 100);
    assert!(kept(1000) < 10, "{} of what was only put in", kept(1000));
    let working = (0..350).filter(|&i| cache.contains(key(1, i))).count();
    assert!(working >= 340, "{working} of 350");
    assert!(cache.used_bytes() <= cache.capacity());
}

#[test]
fn a_removed_block_leaves_alone() {
    let cache = BlockCache::new(4 << 20);
    for i in 0..10 {
        cache.insert(key(1, i), block(10, 1));
    }
    let before = cache.used_bytes();
    assert_eq!(&*cache.remove(key(1, 3)).expect("it is here").bytes, &[1; 10]);
    assert!(cache.remove(key(1, 3)).is_none());
    assert_eq!(cache.len(), 9);
    assert!(cache.used_bytes() < before && !cache.contains(key(1, 3)));
}

#[test]
fn removed_tables_leave_alone() {
    let cache = BlockCache::new(4 << 20);
    for i in 0..30 {
        cache.insert(key(i % 3, i), block(10, 1));
    }
    cache.remove_tables(&[0, 2]);
    assert_eq!(cache.len(), 10);
    assert!(cache.contains(key(1, 4)) && !cache.contains(key(0, 3)));
    cache.remove_tables(&[]);
    assert_eq!(cache.len(), 10);
}

#[test]
fn small_caches_have_few_shards_and_large_ones_many() {
    assert_eq!(BlockCache::new(0).shards(), 1);
    assert_eq!(BlockCache::new(1 << 20).shards(), 1);
    assert_eq!(BlockCache::new(10 << 20).shards(), 8);
    assert_eq!(BlockCache::new(1 << 30).shards(), 64);
}

#[test]
fn neighbouring_offsets_spread_over_the_hash() {
    let mut low = std::collections::HashSet::new();
    let mut high = std::collections::HashSet::new();
    for i in 0..4096_u64 {
        let hash = FoldHash.hash_one(key(7, i * 4101));
        low.insert(hash & 0xfff);
        high.insert(hash >> 52);
    }
    // 4096 throws into 4096 bins fill 1 - 1/e of them.
    assert!(
        low.len() > 2400 && high.len() > 2400,
        "{} {}",
        low.len(),
        high.len()
    );
}

#[test]
fn shared_ranges_stay_inside() {
    let bytes = SharedBytes::from(&b"hello world"[..]);
    let world = bytes.slice(6..11).expect("inside");
    assert_eq!(&*world, b"world");
    assert_eq!(&*world.slice(1..3).expect("inside"), b"or");
    assert!(world.slice(0..6).is_none());
    assert!(SharedBytes::from_range(Arc::from([1, 2]), 1..3).is_none());
    assert_eq!(world.backing_len(), 11);
}

#[test]
fn what_an_allocator_rounds_up_counts() {
    assert_eq!(super::allocated_bytes(4096), 5120);
    assert_eq!(super::allocated_bytes(4096 - 16), 4096);
    assert_eq!(super::allocated_bytes(3300), 3584);
    assert_eq!(super::allocated_bytes(8 << 10), 10 << 10);
    for len in (0..100_000).step_by(7) {
        let bytes = super::allocated_bytes(len);
        assert!(
            bytes >= len + 16 && bytes <= (len + 16).max(128) * 5 / 4 + 16,
            "{len}: {bytes}"
        );
    }
}
