//! One ordered cursor out of many: a tournament ("loser tree") over the heads of its children.
//!
//! ```text
//!            winner             the winner: the child whose row comes next
//!            tree[1]            inner nodes keep the *loser* of the match that was played there
//!          /         \
//!      tree[2]      tree[3]
//!      /    \       /    \
//!     c0    c1     c2    c3     children (leaf i is node k + i; the parent of node n is n / 2)
//! ```
//! When the winner's child moves, only the matches on its way to the root are played again: `ceil(log2 k)`
//! comparisons, each with the loser that is kept there (Knuth, TAOCP volume 3, 5.4.1). A heap needs up to twice
//! as many.
//!
//! A node carries the eight bytes of its key behind the *shared prefix*, as a number that orders as the key does
//! in the direction of travel (`head`), so that most matches never touch a key:
//!
//! 1. When the tree is built, all live keys start with `prefix`; their heads are the bytes behind it.
//! 2. A child only moves in the direction of travel, so a key of it that no longer starts with `prefix` lies
//!    beyond all keys that do. It gets the head `HEAD_LAST`, which loses to (or ties with) everything.
//! 3. Once such a key wins, no live key starts with `prefix` any more: the prefix is shortened to what all live
//!    keys share with it, and the tree is built again. The prefix only gets shorter, so this happens at most
//!    as often as it has bytes until the next positioning.
//!
//! Ties are decided by the whole internal key, then by the child's index, so that the order is total and
//! backward is the exact reverse of forward.

mod source;

use std::hint::select_unpredictable;

pub use source::{Cover, SourceCursor, seek_past, skip_by_seek};

use crate::error::{Error, Result};
use crate::key::{Cursor, KeyOrder, key_head, user_key};
use crate::options::PrefixExtractor;

/// The head of what comes last: children past their end, and keys beyond the shared prefix.
const HEAD_LAST: u64 = u64::MAX;

/// No child: a slot that waits for its first player while the tree is built.
const NOBODY: u64 = u32::MAX as u64;

/// A player: its head, and its child's index with a flag for children past their end. Two words, so that a match is
/// played by selecting words rather than by a branch that nobody could predict.
#[derive(Clone, Copy)]
struct Node {
    head: u64,
    child_flags: u64,
}

const DEAD: u64 = 1 << 63;

impl Node {
    /// Of no child, past its end.
    const EMPTY: Node = Node {
        head: HEAD_LAST,
        child_flags: DEAD | NOBODY,
    };

    #[inline]
    fn live(self) -> bool {
        self.child_flags < DEAD
    }

    #[inline]
    fn child(self) -> usize {
        (self.child_flags & !DEAD) as usize
    }
}

/// Merges the rows of its children in the order of internal keys.
///
/// Moving costs one move of a child and `ceil(log2 k)` comparisons; positioning costs k positionings and k
/// comparisons. The first error of a child leaves the cursor invalid and is returned; it may be positioned again.
pub struct MergingCursor<C> {
    order: KeyOrder,
    children: Vec<C>,
    winner: Node,
    /// The losers of the inner nodes 1 to k - 1.
    tree: Box<[Node]>,
    backward: bool,
    /// Shared by the keys of all live children when the tree was last built.
    prefix: Vec<u8>,
    scratch: Vec<u8>,
}

impl<C: Cursor> MergingCursor<C> {
    /// A cursor over `children`, not positioned yet. Where two of them hold the same internal key, the earlier
    /// one's comes first.
    pub fn new(order: KeyOrder, children: Vec<C>) -> Self {
        Self {
            order,
            winner: Node::EMPTY,
            tree: vec![Node::EMPTY; children.len()].into_boxed_slice(),
            children,
            backward: false,
            prefix: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The children, in the order in which they were given.
    pub fn children(&self) -> &[C] {
        &self.children
    }

    /// Which child holds the row it stands on. Only while valid.
    pub fn child_index(&self) -> usize {
        self.winner.child()
    }

    /// Takes it apart.
    pub fn into_children(self) -> Vec<C> {
        self.children
    }

    #[inline]
    fn winning_child(&self) -> &C {
        &self.children[self.winner.child()]
    }

    /// The node of a child, as it stands.
    #[inline]
    fn enter(&self, child: usize) -> Node {
        let cursor = &self.children[child];
        if !cursor.valid() {
            return Node {
                head: HEAD_LAST,
                child_flags: child as u64 | DEAD,
            };
        }
        Node {
            head: self.head(user_key(cursor.key())),
            child_flags: child as u64,
        }
    }

    #[inline]
    fn head(&self, key: &[u8]) -> u64 {
        if !self.order.is_bytewise() {
            return 0;
        }
        let direction = if self.backward { u64::MAX } else { 0 };
        if self.prefix.is_empty() {
            return key_head(key) ^ direction;
        }
        match key.strip_prefix(self.prefix.as_slice()) {
            Some(rest) => key_head(rest) ^ direction,
            None => HEAD_LAST,
        }
    }

    #[inline]
    fn comes_before(&self, a: Node, b: Node) -> bool {
        if a.head == b.head {
            return self.comes_before_by_key(a, b);
        }
        a.head < b.head
    }

    #[inline(never)]
    fn comes_before_by_key(&self, a: Node, b: Node) -> bool {
        if !(a.live() && b.live()) {
            return a.live();
        }
        let (left, right) = (&self.children[a.child()], &self.children[b.child()]);
        let order = self
            .order
            .compare_internal(left.key(), right.key())
            .then(a.child_flags.cmp(&b.child_flags));
        if self.backward {
            order.is_gt()
        } else {
            order.is_lt()
        }
    }

    /// Plays all matches anew, after any of the children moved.
    fn build(&mut self) {
        self.prefix.clear();
        if self.order.is_bytewise() && self.children.len() > 1 {
            let mut live = self.children.iter().filter(|child| child.valid());
            if let Some(first) = live.next() {
                self.prefix.extend_from_slice(user_key(first.key()));
            }
        }
        self.build_with_shorter_prefix();
    }

    /// Cuts the prefix to what all live keys share, and plays all matches.
    fn build_with_shorter_prefix(&mut self) {
        if !self.prefix.is_empty() {
            for child in self.children.iter().filter(|child| child.valid()) {
                let key = user_key(child.key());
                let shared = self.prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
                self.prefix.truncate(shared);
            }
        }
        self.tree.fill(Node::EMPTY);
        self.winner = Node::EMPTY;
        let k = self.children.len();
        for child in (0..k).rev() {
            let mut player = self.enter(child);
            let mut at = (k + child) / 2;
            // The first to reach an inner node waits there for the other half of the draw.
            while at > 0 {
                let waiting = self.tree[at];
                if waiting.child_flags == Node::EMPTY.child_flags {
                    self.tree[at] = player;
                    break;
                }
                if self.comes_before(waiting, player) {
                    self.tree[at] = player;
                    player = waiting;
                }
                at /= 2;
            }
            if at == 0 {
                self.winner = player;
            }
        }
    }

    /// The winner's child has moved in the direction of travel.
    #[inline]
    fn replay(&mut self) {
        let child = self.winner.child();
        let k = self.children.len();
        if k == 1 {
            if !self.children[0].valid() {
                self.winner.child_flags |= DEAD;
            }
            return;
        }
        let mut player = self.enter(child);
        let mut at = (k + child) / 2;
        while at > 0 {
            let other = self.tree[at];
            let beaten = self.comes_before(other, player);
            self.tree[at] = Node {
                head: select_unpredictable(beaten, player.head, other.head),
                child_flags: select_unpredictable(beaten, player.child_flags, other.child_flags),
            };
            player = Node {
                head: select_unpredictable(beaten, other.head, player.head),
                child_flags: select_unpredictable(beaten, other.child_flags, player.child_flags),
            };
            at /= 2;
        }
        self.winner = player;
        if player.head == HEAD_LAST {
            self.leave_prefix();
        }
    }

    #[cold]
    fn leave_prefix(&mut self) {
        if self.winner.live() && !user_key(self.winning_child().key()).starts_with(&self.prefix) {
            self.build_with_shorter_prefix();
        }
    }

    /// Positions every child by `place`, in a new direction.
    fn position(&mut self, backward: bool, mut place: impl FnMut(&mut C) -> Result<()>) -> Result<()> {
        self.winner.child_flags |= DEAD;
        self.backward = backward;
        for child in &mut self.children {
            place(child)?;
        }
        self.build();
        Ok(())
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.winner.child_flags |= DEAD;
        error
    }

    /// Turns around at the row it stands on, and makes the first step of the new direction.
    ///
    /// A neighbour stands on its first row beyond the winner's, so usually one step brings it to its last row
    /// before; if it has skipped covered rows in between it must look for its place.
    #[cold]
    fn turn(&mut self, backward: bool) -> Result<()> {
        let winner = self.winner.child();
        self.scratch.clear();
        self.scratch.extend_from_slice(self.children[winner].key());
        self.winner.child_flags |= DEAD;
        let (order, here) = (&self.order, self.scratch.as_slice());
        for (index, child) in self.children.iter_mut().enumerate() {
            if index == winner {
                continue;
            }
            let misplaced = |child: &C| {
                let side = order.compare_internal(child.key(), here).then(index.cmp(&winner));
                if backward { side.is_gt() } else { side.is_lt() }
            };
            match (backward, child.valid()) {
                (true, true) => child.prev()?,
                (true, false) => child.seek_for_prev(here)?,
                (false, true) => child.next()?,
                (false, false) => child.seek(here)?,
            }
            if child.valid() && misplaced(child) {
                if backward {
                    child.seek_for_prev(here)?;
                } else {
                    child.seek(here)?;
                }
                // The same internal key in a neighbour on the wrong side of the tie.
                if child.valid() && misplaced(child) {
                    if backward {
                        child.prev()?;
                    } else {
                        child.next()?;
                    }
                }
            }
        }
        if backward {
            self.children[winner].prev()?;
        } else {
            self.children[winner].next()?;
        }
        self.backward = backward;
        self.build();
        Ok(())
    }
}

impl<C: SourceCursor> MergingCursor<C> {
    /// Restricts all children, for the positionings that follow: see [`SourceCursor::restrict`]. Invalid until the next.
    pub fn restrict(&mut self, prefix: Option<(PrefixExtractor, &[u8])>) -> Result<()> {
        self.winner.child_flags |= DEAD;
        for child in &mut self.children {
            child.restrict(prefix)?;
        }
        Ok(())
    }

    /// Tells all children past which user key nothing is asked for: see [`SourceCursor::set_upper_bound`].
    pub fn set_upper_bound(&mut self, upper_bound: Option<&[u8]>) {
        for child in &mut self.children {
            child.set_upper_bound(upper_bound);
        }
    }

    /// While valid: lets every child skip the covered stretch that it stands in, in the direction of travel. The cursor
    /// passes only rows that are invisible to the cover's reader. Answers whether any child moved. O(k log n) in
    /// the fragments if none does.
    pub fn skip_covered(&mut self, cover: &Cover<'_>) -> Result<bool> {
        let mut moved = false;
        for child in self.children.iter_mut().filter(|child| child.valid()) {
            match child.skip_covered(cover, self.backward, &mut self.scratch) {
                Ok(jumped) => moved |= jumped,
                Err(error) => return Err(self.fail(error)),
            }
        }
        if moved {
            self.build();
        }
        Ok(moved)
    }
}

impl<C: Cursor> Cursor for MergingCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        self.winner.live()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.position(false, Cursor::seek_to_first)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.position(true, Cursor::seek_to_last)
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.position(false, |child| child.seek(target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.position(true, |child| child.seek_for_prev(target))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.backward {
            return self.turn(false);
        }
        let winner = self.winner.child();
        if let Err(error) = self.children[winner].next() {
            return Err(self.fail(error));
        }
        self.replay();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if !self.backward {
            return self.turn(true);
        }
        let winner = self.winner.child();
        if let Err(error) = self.children[winner].prev() {
            return Err(self.fail(error));
        }
        self.replay();
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.winning_child().key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.winning_child().value()
    }
}

#[cfg(test)]
mod tests;
