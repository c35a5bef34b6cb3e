//! Whether a history of transactions could have been: by circles in the graph of who depends on whom.
//!
//! Every write of a history puts a value that no other write puts, and its transaction has read what it overwrote. So the versions
//! of each key form a chain, and all dependencies can be told:
//! - *w*: T has overwritten, or read, what S wrote: S comes before T;
//! - *rw*: T has overwritten what S read: S comes before T as well, but S may have committed later.
//!
//! A history is serialisable if there is no circle (Adya, Liskov, O'Neil, "Generalized isolation level definitions", 2000). It is
//! one of snapshot isolation if every circle has two rw edges in a row, that is, if w edges, each alone or followed by one rw edge,
//! make no circle (Cerone and Gotsman, "Analysing snapshot isolation", 2016).

use std::collections::{BTreeMap, BTreeSet};

/// A version of a key: the number that its write put; 0 is that of a key that was never written.
pub(super) type Version = u64;

/// A transaction that has committed.
#[derive(Clone, Debug, Default)]
pub(super) struct Committed {
    /// What it has read of others.
    pub(super) reads: Vec<(u8, Version)>,
    /// What it has put in the place of what.
    pub(super) writes: Vec<(u8, Version, Version)>,
}

#[derive(Default)]
struct Graph {
    w: Vec<BTreeSet<usize>>,
    rw: Vec<BTreeSet<usize>>,
}

/// Says what is wrong: a read of what nobody has committed, a version that two have overwritten, a circle.
pub(super) fn check(history: &[Committed], serialisable: bool) -> Result<(), String> {
    let graph = graph(history)?;
    let edges: Vec<BTreeSet<usize>> = (0..history.len())
        .map(|from| {
            let mut to = graph.w[from].clone();
            if serialisable {
                to.extend(&graph.rw[from]);
            } else {
                for middle in &graph.w[from] {
                    to.extend(&graph.rw[*middle]);
                }
            }
            to
        })
        .collect();
    match circle(&edges) {
        Some(circle) => {
            let shown: Vec<_> = circle.iter().map(|at| (at, &history[*at])).collect();
            Err(format!("a circle: {shown:?}"))
        }
        None => Ok(()),
    }
}

fn graph(history: &[Committed]) -> Result<Graph, String> {
    let mut writer: BTreeMap<(u8, Version), usize> = BTreeMap::new();
    let mut next: BTreeMap<(u8, Version), usize> = BTreeMap::new();
    for (at, transaction) in history.iter().enumerate() {
        for (key, old, new) in &transaction.writes {
            if writer.insert((*key, *new), at).is_some() {
                return Err(format!("two writes put {new}"));
            }
            if let Some(other) = next.insert((*key, *old), at) {
                return Err(format!("{other} and {at} have overwritten {old} of key {key}"));
            }
        }
    }
    let mut graph = Graph {
        w: vec![BTreeSet::new(); history.len()],
        rw: vec![BTreeSet::new(); history.len()],
    };
    for (at, transaction) in history.iter().enumerate() {
        let overwritten = transaction.writes.iter().map(|(key, old, _)| (*key, *old));
        for version in transaction.reads.iter().copied().chain(overwritten) {
            match writer.get(&version) {
                Some(from) if *from != at => {
                    graph.w[*from].insert(at);
                }
                None if version.1 != 0 => {
                    return Err(format!("{at} has read {version:?}, which nobody has committed"));
                }
                _ => {}
            }
        }
        for version in &transaction.reads {
            if let Some(to) = next.get(version).filter(|to| **to != at) {
                graph.rw[at].insert(*to);
            }
        }
    }
    Ok(graph)
}

/// Some circle, if there is one: by depth, without recursion.
fn circle(edges: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let mut done = vec![false; edges.len()];
    for start in 0..edges.len() {
        let mut path = vec![(start, edges[start].iter())];
        let mut on_path = BTreeSet::from([start]);
        if done[start] {
            continue;
        }
        while let Some((at, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) if on_path.contains(next) => {
                    let members = path.iter().map(|(at, _)| *at);
                    return Some(members.skip_while(|at| at != next).collect());
                }
                Some(next) if !done[*next] => {
                    on_path.insert(*next);
                    path.push((*next, edges[*next].iter()));
                }
                Some(_) => {}
                None => {
                    done[*at] = true;
                    on_path.remove(at);
                    path.pop();
                }
            }
        }
    }
    None
}

fn transaction(reads: &[(u8, Version)], writes: &[(u8, Version, Version)]) -> Committed {
    Committed {
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    }
}

#[test]
fn a_write_skew_is_no_serial_history_but_one_of_snapshots() {
    let history = [
        transaction(&[(0, 0), (1, 0)], &[(0, 0, 1)]),
        transaction(&[(0, 0), (1, 0)], &[(1, 0, 2)]),
    ];
    assert!(check(&history, true).unwrap_err().contains("circle"));
    assert_eq!(check(&history, false), Ok(()));
}

#[test]
fn read_skew_lost_updates_and_dirty_reads_are_neither() {
    let skew = [
        transaction(&[], &[(0, 0, 1), (1, 0, 2)]),
        transaction(&[(0, 0), (1, 2)], &[]),
    ];
    let lost = [
        transaction(&[(0, 0)], &[(0, 0, 1)]),
        transaction(&[(0, 0)], &[(0, 0, 2)]),
    ];
    let dirty = [transaction(&[(0, 7)], &[])];
    for history in [&skew[..], &lost, &dirty] {
        assert!(check(history, true).is_err());
        assert!(check(history, false).is_err());
    }
}

#[test]
fn one_after_the_other_is_both() {
    let history = [
        transaction(&[(0, 0)], &[(0, 0, 1)]),
        transaction(&[(0, 1), (1, 0)], &[(1, 0, 2)]),
        transaction(&[(0, 1), (1, 2)], &[(0, 1, 3)]),
    ];
    for serialisable in [true, false] {
        assert_eq!(check(&history, serialisable), Ok(()));
    }
}
