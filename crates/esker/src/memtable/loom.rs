//! Every interleaving of a few threads over a list of a few nodes.
//!
//! `scripts/loom.sh memtable::loom`

use std::sync::Arc;

use super::arena::MemtableArenaPool;
use super::heads::Heads;
use super::hint::InsertHint;
use super::row::Row;
use super::skiplist::Skiplist;
use super::{Memtable, MemtableKind};
use crate::key::{KeyOrder, ValueKind, pack_trailer};
use crate::sync::{AtomicU64, Ordering};

fn list() -> Arc<Skiplist> {
    let pool = MemtableArenaPool::new(0);
    let heads = Heads::new(&KeyOrder::Bytewise, &[]);
    Arc::new(Skiplist::new(KeyOrder::Bytewise, heads, &pool, 64 << 10))
}

fn put(list: &Skiplist, hint: &mut InsertHint, key: &[u8], height: usize) {
    list.insert_with_height(hint, height, pack_trailer(1, ValueKind::Put), key, key);
}

fn holds(list: &Skiplist, key: &[u8]) -> bool {
    let found = list.seek(&list.target(key, u64::MAX));
    // SAFETY: a node of a list that lives.
    !found.is_null() && unsafe { found.user_key() } == key
}

fn keys(list: &Skiplist) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut node = list.first();
    while node != Row::NULL {
        // SAFETY: a node of a list that lives.
        keys.push(unsafe { node.user_key() }.to_vec());
        node = list.next(node);
    }
    keys
}

/// Two writers put neighbours in between the same two nodes; each finds its own as soon as its insert returns, and
/// in the end every key is found by a search, which goes by the heads, and by a walk, which does not.
fn race(first: (&'static [u8], usize), second: (&'static [u8], usize)) {
    ::loom::model(move || {
        let list = list();
        put(&list, &mut InsertHint::default(), b"z", 1);
        let other = {
            let list = Arc::clone(&list);
            ::loom::thread::spawn(move || {
                put(&list, &mut InsertHint::default(), second.0, second.1);
                assert!(holds(&list, second.0));
            })
        };
        put(&list, &mut InsertHint::default(), first.0, first.1);
        assert!(holds(&list, first.0));
        other.join().expect("the other writer");
        let mut expected = vec![first.0.to_vec(), second.0.to_vec(), b"z".to_vec()];
        expected.sort();
        assert_eq!(keys(&list), expected);
        assert!(expected.iter().all(|key| holds(&list, key)));
    });
}

#[test]
fn two_writers_at_one_place() {
    race((b"m", 1), (b"k", 1));
}

#[test]
fn two_writers_with_equal_heads() {
    race((b"prefix-the-same-a", 1), (b"prefix-the-same-b", 1));
}

#[test]
fn two_writers_of_different_heights() {
    race((b"k", 2), (b"m", 1));
}

#[test]
fn a_reader_among_two_inserts_sees_what_was_published() {
    ::loom::model(|| {
        let list = list();
        let published = Arc::new(AtomicU64::new(0));
        let writer = {
            let (list, published) = (Arc::clone(&list), Arc::clone(&published));
            ::loom::thread::spawn(move || {
                let mut hint = InsertHint::default();
                put(&list, &mut hint, b"k", 1);
                published.store(1, Ordering::Release);
                put(&list, &mut hint, b"c", 2);
            })
        };
        let before = published.load(Ordering::Acquire);
        let found = list.seek(&list.target(b"b", u64::MAX));
        if before == 1 {
            assert!(!found.is_null());
            assert!(holds(&list, b"k"));
        }
        // SAFETY: nodes of a list that lives.
        unsafe {
            assert!(found.is_null() || [&b"c"[..], b"k"].contains(&found.user_key()));
            let last = list.seek_before(&list.target(b"x", u64::MAX), false);
            assert!(last.is_null() || last.user_key() == b"k" || last.user_key() == b"c");
            assert!(before == 0 || last.user_key() == b"k");
        }
        writer.join().expect("the writer");
        assert_eq!(keys(&list), [b"c".to_vec(), b"k".to_vec()]);
    });
}

#[test]
fn two_threads_share_a_chunk_and_take_the_next() {
    ::loom::model(|| {
        let pool = MemtableArenaPool::new(0);
        let arena = Arc::new(super::arena::Arena::new(&pool, 64 << 10));
        let other = {
            let arena = Arc::clone(&arena);
            ::loom::thread::spawn(move || arena.alloc(700).addr().get())
        };
        let mine = arena.alloc(700).addr().get();
        let theirs = other.join().expect("the other thread");
        assert!(mine.abs_diff(theirs) >= 700);
        assert_eq!(
            arena.held_bytes(),
            4096,
            "one of them brought the chunk, both used it"
        );
    });
}

#[test]
fn a_range_delete_covers_for_whom_it_is_published() {
    ::loom::model(|| {
        let pool = MemtableArenaPool::new(0);
        let kind = MemtableKind::Ordered;
        let memtable = Memtable::new(kind, KeyOrder::Bytewise, 0, 64 << 10, &pool);
        let published = Arc::new(AtomicU64::new(0));
        let reader = || {
            let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
            move || {
                let seen = published.load(Ordering::Acquire);
                assert_eq!(memtable.max_covering_tombstone(b"b", seen), seen);
            }
        };
        let other = ::loom::thread::spawn(reader());
        let writer = {
            let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
            ::loom::thread::spawn(move || {
                for (sequence, start) in [(1, b"a"), (2, b"b")] {
                    memtable.insert(sequence, ValueKind::RangeDelete, start, b"c");
                    published.store(sequence, Ordering::Release);
                }
            })
        };
        reader()();
        reader()();
        writer.join().expect("the writer");
        other.join().expect("the other reader");
        assert_eq!(memtable.max_covering_tombstone(b"b", u64::MAX >> 8), 2);
    });
}
