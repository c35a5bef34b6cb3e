//! The ordered index: a concurrent skiplist whose links carry the head of the key they lead to.
//!
//! In a plain skiplist every comparison reads the next node, which is a cache miss, and about half of these
//! comparisons only find that the next node lies too far. Here a link is a pair
//! ```text
//! Link { head: the head of the next node's key, next: the next node }
//! ```
//! so that those are decided without leaving the cache line at hand; only nodes that the search moves to, and
//! those whose heads equal the target's, are read. A node is a [row](super::row) with its links in front:
//! ```text
//! link[height-1] .. link[1] link[0] | RowHeader | internal key | value, or a pointer to it
//!                                   ^ the node's address
//! ```
//!
//! Searches start from a [guide](super::guide), an array of the tall nodes, where there is one.
//!
//! Thread safety: any number of threads may insert and search at once. Nothing is ever removed or changed in place,
//! so readers take no lock and never retry; inserts retry a compare-and-swap. Nodes live as long as the list.
//!
//! Two words can't be changed at once, so a link is changed by a compare-and-swap of `next` and *then* by an atomic
//! minimum of `head`, and read the other way round. Invariants:
//!
//! 1. Level 0 holds every node, in the order of internal keys; a level holds a subset of the level below.
//! 2. The nodes that a link leads to over time only get smaller: nodes are put in between, never taken out.
//! 3. A link's `head` only gets smaller, and is never below the head of its `next` *once that head's insert has
//!    stored `next`*: each value of `head` is the head of a node to which `next` was set before.
//! 4. So who reads `head` (acquire) and then `next` finds a node whose head is <= the head read. If the target's
//!    head is larger, the next node is certainly smaller than the target: move, without looking at its key.
//! 5. If the target's head is smaller, the next node is larger than the target, or its insert has not returned yet
//!    (its minimum is still to come). Going down past such a node is harmless: a search ends with true
//!    comparisons along level 0, and an insert makes true comparisons on every level it links into.
//! 6. When no insert is running, `head` equals the head of `next` (`u64::MAX` at the end).
//! 7. A node is complete (row and all links up to the level at which it was found) before a link leads to it:
//!    release by the compare-and-swap, acquire by whoever follows it.

mod count;

pub use count::RangeCount;

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::Arc;

use super::arena::{Arena, MemtableArenaPool};
use super::guide::{GUIDE_LEVEL, Guide};
use super::heads::Heads;
use super::hint::InsertHint;
use super::prefetch::prefetch;
use super::row::Row;
use crate::key::{KeyOrder, Sequence, TRAILER_LEN, ValueKind, pack_trailer};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A node reaches each further level with a chance of one in `1 << LEVEL_BITS`.
const LEVEL_BITS: u32 = 2;
/// Levels that a list can have; enough for `1 << (LEVEL_BITS * HEIGHT_MAX)` nodes.
pub(super) const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 12 };
/// Moves (about nine on average) after which a search that started from the guide starts from the top: where many
/// rows were inserted since the guide was made, its nodes lie far apart.
const GUIDED_MOVES_MAX: usize = 24;
/// How many nodes an insert passes on level 0 to stay near its hint.
const HINT_STEPS_MAX: usize = 3;

#[repr(C)]
struct Link {
    head: AtomicU64,
    next: AtomicPtr<super::row::RowHeader>,
}

/// What is searched: an internal key taken apart, with its head.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) head: u64,
    pub(super) user_key: &'a [u8],
    pub(super) trailer: u64,
}

/// The list (see the module's head).
pub(super) struct Skiplist {
    order: KeyOrder,
    pub(super) heads: Heads,
    /// Smaller than every node; its key is never looked at.
    root: Row,
    levels: AtomicUsize,
    inserted: AtomicU64,
    guide: Guide,
    number: u64,
    pub(super) arena: Arena,
}

// SAFETY: `root` points into `arena`, which the list owns; all shared state behind it is atomic, or immutable since
// before it could be reached (invariant 7).
unsafe impl Send for Skiplist {}
// SAFETY: as above.
unsafe impl Sync for Skiplist {}

/// The link of `node` on `level`.
///
/// # Safety
/// `node` is a node of a list that lives for `'a`, and its height is more than `level`.
#[inline(always)]
unsafe fn link<'a>(node: Row, level: usize) -> &'a Link {
    // SAFETY: the links lie in front of the row, in one allocation, and the pointer has the provenance of all of it.
    unsafe { &*node.0.cast::<Link>().sub(level + 1) }
}

/// Scatters the bits of a counter (SplitMix64, Steele, Lea and Flood 2014).
#[inline]
fn scatter(mut z: u64) -> u64 {
    z = z.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Skiplist {
    pub(super) fn new(
        order: KeyOrder,
        heads: Heads,
        pool: &Arc<MemtableArenaPool>,
        budget_bytes: usize,
    ) -> Self {
        // Not one of `crate::sync`: it orders nothing, and loom's atomics can't be static.
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let mut list = Self {
            order,
            heads,
            root: Row::NULL,
            levels: AtomicUsize::new(1),
            inserted: AtomicU64::new(0),
            guide: Guide::new(),
            number: NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            arena: Arena::new(pool, budget_bytes),
        };
        list.root = list.new_node(HEIGHT_MAX, &[], 0, &[]);
        list
    }

    /// A node with links to nothing.
    fn new_node(&self, height: usize, user_key: &[u8], trailer: u64, value: &[u8]) -> Row {
        let node = Row::new(&self.arena, height * size_of::<Link>(), user_key, trailer, value);
        for level in 0..height {
            // SAFETY: the row was made with room for `height` links in front (a link's size and alignment are those of
            // two words), and nobody else knows it yet.
            unsafe {
                node.0.cast::<Link>().sub(level + 1).write(Link {
                    head: AtomicU64::new(u64::MAX),
                    next: AtomicPtr::new(std::ptr::null_mut()),
                });
            }
        }
        node
    }

    /// Number of nodes inserted or being inserted.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.inserted.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn target<'a>(&self, user_key: &'a [u8], trailer: u64) -> Target<'a> {
        Target {
            head: self.heads.head(user_key),
            user_key,
            trailer,
        }
    }

    /// How a node compares with the target, by their keys.
    #[inline]
    fn compare(&self, node: Row, target: &Target<'_>) -> std::cmp::Ordering {
        // SAFETY: callers pass nodes of this list other than its root, reached through a link (invariant 7).
        let (user_key, trailer) = unsafe { (node.user_key(), node.trailer()) };
        self.order
            .compare(user_key, target.user_key)
            .then_with(|| target.trailer.cmp(&trailer))
    }

    /// The last node on level 0 that is known to be smaller than the target (the root if there is none); `visit` is
    /// told the last such node of each level, from the top down. See invariant 5 for what "known" leaves out. With
    /// `guided`, only of the levels up to `GUIDE_LEVEL` for sure: the search may start there.
    #[inline]
    fn descend(&self, target: &Target<'_>, guided: bool, mut visit: impl FnMut(usize, Row)) -> Row {
        if guided
            && let Some(start) = self.guide.start(target.head)
            && let Some(found) =
                self.descend_from(start, GUIDE_LEVEL + 1, GUIDED_MOVES_MAX, target, &mut visit)
        {
            return found;
        }
        let levels = self.levels.load(Ordering::Relaxed);
        self.descend_from(self.root, levels, usize::MAX, target, &mut visit)
            .unwrap_or(self.root)
    }

    /// [`descend`](Self::descend) from a node before the target on the level below `levels`; `None` if that takes
    /// more than so many moves.
    #[inline]
    fn descend_from(
        &self,
        mut node: Row,
        levels: usize,
        mut moves: usize,
        target: &Target<'_>,
        visit: &mut impl FnMut(usize, Row),
    ) -> Option<Row> {
        // The node that was found not to be smaller on the level above.
        let mut bound = Row::NULL;
        for level in (0..levels).rev() {
            loop {
                // SAFETY: `node` is the root, which has all levels, or is the guide's, which has the levels up to
                // `GUIDE_LEVEL`, or was reached on this level or a higher one.
                let link = unsafe { link(node, level) };
                let head = link.head.load(Ordering::Acquire);
                if head > target.head {
                    break;
                }
                let next = Row(link.next.load(Ordering::Acquire));
                if head == target.head {
                    if next == bound || next.is_null() {
                        break;
                    }
                    if self.compare(next, target) != Less {
                        bound = next;
                        break;
                    }
                }
                debug_assert!(!next.is_null(), "a head below u64::MAX follows its node");
                node = next;
                moves -= 1;
                if moves == 0 {
                    return None;
                }
            }
            visit(level, node);
        }
        Some(node)
    }

    /// The first node >= the target, or null. O(log n).
    #[inline]
    pub(super) fn seek(&self, target: &Target<'_>) -> Row {
        let mut node = self.descend(target, true, |_, _| ());
        loop {
            node = self.next(node);
            if node.is_null() || self.compare(node, target) != Less {
                return node;
            }
        }
    }

    /// The last node < the target (with `or_equal`: <=), or null. O(log n).
    pub(super) fn seek_before(&self, target: &Target<'_>, or_equal: bool) -> Row {
        let mut node = self.descend(target, true, |_, _| ());
        loop {
            let next = self.next(node);
            if next.is_null() {
                break;
            }
            match self.compare(next, target) {
                Less => node = next,
                Equal if or_equal => node = next,
                Equal | Greater => break,
            }
        }
        if node == self.root { Row::NULL } else { node }
    }

    /// The first node, or null.
    #[inline]
    pub(super) fn first(&self) -> Row {
        self.next(self.root)
    }

    /// The last node, or null. O(log n).
    pub(super) fn last(&self) -> Row {
        let mut node = self.root;
        for level in (0..self.levels.load(Ordering::Relaxed)).rev() {
            loop {
                // SAFETY: as in `descend`.
                let next = Row(unsafe { link(node, level) }.next.load(Ordering::Acquire));
                if next.is_null() {
                    break;
                }
                node = next;
            }
        }
        if node == self.root { Row::NULL } else { node }
    }

    /// The node behind `node` (of this list), or null.
    #[inline]
    pub(super) fn next(&self, node: Row) -> Row {
        // SAFETY: every node has a link on level 0.
        Row(unsafe { link(node, 0) }.next.load(Ordering::Acquire))
    }

    /// [`next`](Self::next) for scans: fetches the nodes ahead before they are needed, in two steps. What it reads here
    /// it asked for in the step before.
    #[inline]
    pub(super) fn next_in_scan(&self, node: Row) -> Row {
        let next = self.next(node);
        if next.is_null() {
            return next;
        }
        let behind = self.next(next);
        if !behind.is_null() {
            // SAFETY: a node of this list, reached through a link.
            unsafe { behind.prefetch_value() };
            let ahead = self.next(behind).0;
            prefetch(ahead.cast::<Link>().wrapping_sub(1));
            prefetch(ahead.cast::<u8>().wrapping_add(48));
        }
        next
    }

    /// Inserts a row. Internal keys must be distinct; of equal ones, both are kept. O(log n); O(1) for ascending
    /// inserts with the hint of the one before.
    #[inline]
    pub(super) fn insert(
        &self,
        hint: &mut InsertHint,
        sequence: Sequence,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) {
        // The count decides the height: no state of its own, and the same run gives the same list.
        let count = self.inserted.fetch_add(1, Ordering::Relaxed);
        let height = (scatter(count + 1).trailing_zeros() / LEVEL_BITS) as usize + 1;
        self.insert_with_height(
            hint,
            height.min(HEIGHT_MAX),
            pack_trailer(sequence, kind),
            key,
            value,
        );
    }

    pub(super) fn insert_with_height(
        &self,
        hint: &mut InsertHint,
        height: usize,
        trailer: u64,
        key: &[u8],
        value: &[u8],
    ) {
        let node = self.new_node(height, key, trailer, value);
        let target = self.target(key, trailer);
        if height > self.levels.load(Ordering::Relaxed) {
            self.levels.fetch_max(height, Ordering::Relaxed);
        }
        // The levels above the guide's are not kept in hints: the few nodes that reach them search from the top.
        let tall = height > GUIDE_LEVEL + 1;
        hint.streak = !tall && self.resume(hint, &target);
        if !hint.streak {
            hint.owner = self.number;
            hint.before = [self.root; HEIGHT_MAX];
            self.descend(&target, !tall, |level, node| hint.before[level] = node);
        }
        self.link_in(node, height, &target, &mut hint.before);
        if height > GUIDE_LEVEL && self.order.is_bytewise() {
            self.grow_guide();
        }
    }

    #[inline(never)]
    fn grow_guide(&self) {
        self.guide.grow(
            &self.arena,
            self.root,
            // SAFETY: the root and the nodes behind it on this level have a link on it.
            |node| Row(unsafe { link(node, GUIDE_LEVEL) }.next.load(Ordering::Acquire)),
            // SAFETY: nodes of this list, reached through a link.
            |node| self.heads.head(unsafe { node.user_key() }),
        );
    }

    /// Whether the target's place is at most a few nodes behind the hint's, which then is moved there.
    #[inline]
    fn resume(&self, hint: &mut InsertHint, target: &Target<'_>) -> bool {
        let steps = if hint.streak { HINT_STEPS_MAX } else { 0 };
        hint.owner == self.number && self.advance(&mut hint.before[0], steps, target)
    }

    /// Moves `node` up to `steps` nodes on, to the last one before the target; false if that lies elsewhere.
    fn advance(&self, node: &mut Row, steps: usize, target: &Target<'_>) -> bool {
        if *node != self.root && self.compare(*node, target) != Less {
            return false;
        }
        for step in 0..=steps {
            // SAFETY: `node` is a node of this list: the hint carries its number, so it was put there by `insert`.
            let link = unsafe { link(*node, 0) };
            if link.head.load(Ordering::Acquire) > target.head {
                return true;
            }
            let next = Row(link.next.load(Ordering::Acquire));
            if next.is_null() || self.compare(next, target) != Less {
                return true;
            }
            if step < steps {
                *node = next;
            }
        }
        false
    }

    /// Links `node` in on levels `0..height`, from the bottom up, each behind the given node, which is smaller, or
    /// one further on; leaves `before` as it is for an insert right behind this one.
    fn link_in(&self, node: Row, height: usize, target: &Target<'_>, before: &mut [Row; HEIGHT_MAX]) {
        for (level, before) in before.iter_mut().enumerate().take(height) {
            // SAFETY: `before` was found on this level (or is the root), and so are the nodes behind it; `node` has
            // `height` links.
            let (mut at, own) = unsafe { (link(*before, level), link(node, level)) };
            loop {
                let next = Row(at.next.load(Ordering::Acquire));
                let mut head = u64::MAX;
                if !next.is_null() {
                    if self.compare(next, target) == Less {
                        // SAFETY: `next` was reached on this level.
                        at = unsafe { link(next, level) };
                        continue;
                    }
                    // The link's own head may be too high yet (invariant 5): take it from the key.
                    // SAFETY: `next` was reached through a link.
                    head = self.heads.head(unsafe { next.user_key() });
                }
                own.head.store(head, Ordering::Relaxed);
                own.next.store(next.0, Ordering::Relaxed);
                let swapped = at
                    .next
                    .compare_exchange(next.0, node.0, Ordering::AcqRel, Ordering::Relaxed);
                if swapped.is_ok() {
                    at.head.fetch_min(target.head, Ordering::AcqRel);
                    break;
                }
            }
            *before = node;
        }
    }

    /// What the smallest and the largest user key, and so all keys, begin with (bytewise order only).
    pub(super) fn shared_prefix(&self) -> Vec<u8> {
        let (first, last) = (self.first(), self.last());
        if first.is_null() || last.is_null() || !self.order.is_bytewise() {
            return Vec::new();
        }
        // SAFETY: nodes of this list.
        let (first, last) = unsafe { (first.user_key(), last.user_key()) };
        super::heads::shared_prefix(first, last).to_vec()
    }

    /// The node before `node`, or null. O(log n).
    pub(super) fn prev(&self, node: Row) -> Row {
        // SAFETY: a node of this list, not the root.
        let key = unsafe { node.internal_key() };
        let (user_key, trailer) = key.split_at(key.len() - TRAILER_LEN);
        let target = self.target(user_key, crate::key::trailer(trailer));
        self.seek_before(&target, false)
    }
}
