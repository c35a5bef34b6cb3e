//! Readers see the same before and after a rewrite, and what nobody can see is gone.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::hooks::{CompactionFilter, FilterDecision};
use crate::key::{FragmentedTombstones, KeyOrder, RangeTombstone, internal_key, user_key};
use crate::merge::MergeOperator;
use crate::read::testing::{Row, Source, VecCursor, comma, history, keys, merged, sources, view};
use crate::read::visible::{View, VisibleCursor, merge_tombstones};

const ORDER: KeyOrder = KeyOrder::Bytewise;

fn tombstones_of(sources: &[Source]) -> Arc<FragmentedTombstones> {
    let lists: Vec<_> = sources
        .iter()
        .map(|source| Arc::clone(&source.tombstones))
        .collect();
    merge_tombstones(&ORDER, &lists)
}

fn collect<B: FnMut(&[u8]) -> bool>(mut rows: CompactionRows<impl Cursor, B>) -> (Vec<Row>, Dropped) {
    let mut out: Vec<Row> = Vec::new();
    while rows.advance().unwrap() {
        let starts = out
            .last()
            .is_none_or(|last| user_key(&last.0) != user_key(rows.key()));
        assert_eq!(rows.starts_key(), starts);
        out.push((rows.key().to_vec(), rows.value().to_vec()));
    }
    assert!(!rows.advance().unwrap(), "the end is final");
    (out, *rows.dropped())
}

fn positioned(sources: &[Source]) -> crate::read::merging::MergingCursor<VecCursor> {
    let mut input = merged(&ORDER, sources);
    input.seek_to_first().unwrap();
    input
}

/// Compacts some neighbouring sources into one.
fn compact(
    sources: &mut Vec<Source>,
    range: RangeInclusive<usize>,
    snapshots: &[Sequence],
    cautious: bool,
) -> Dropped {
    let bottommost = *range.end() + 1 == sources.len() && !cautious;
    let below: BTreeSet<Vec<u8>> = sources[range.end() + 1..]
        .iter()
        .flat_map(|source| source.rows.iter().map(|row| user_key(&row.0).to_vec()))
        .collect();
    let inputs = &sources[range.clone()];
    let tombstones = tombstones_of(inputs);
    let rules = Rules {
        snapshots: snapshots.to_vec(),
        bottommost,
        tombstones: Arc::clone(&tombstones),
        merge_operator: Some(comma()),
        ..Rules::default()
    };
    let (rows, dropped) = collect(CompactionRows::new(
        positioned(inputs),
        |key: &[u8]| cautious || below.contains(key),
        rules,
    ));
    let input_rows: usize = inputs.iter().map(|source| source.rows.len()).sum();
    assert_eq!(
        rows.len() as u64 + dropped.total(),
        input_rows as u64,
        "{dropped:?}"
    );
    let tombstones = carried_tombstones(&ORDER, &tombstones, snapshots, bottommost);
    if bottommost && snapshots.is_empty() {
        assert!(tombstones.is_empty());
        for (key, _) in &rows {
            let row = parse_key(key).unwrap();
            assert_eq!(row.kind, ValueKind::Put);
        }
        assert!(
            rows.windows(2)
                .all(|pair| user_key(&pair[0].0) < user_key(&pair[1].0))
        );
    }
    for (key, _) in &rows {
        let row = parse_key(key).unwrap();
        // A tombstone written after a row got its 0 is newer than the row by right.
        let had_zero = || {
            inputs
                .iter()
                .any(|source| source.rows.iter().any(|old| old.0 == *key))
        };
        if row.sequence == 0 && tombstones.max_covering(&ORDER, row.user_key, SEQUENCE_MAX) > 0 {
            assert!(had_zero());
        }
    }
    let output = Source {
        rows: Arc::new(rows),
        tombstones: Arc::new(tombstones),
    };
    sources.splice(range, [output]);
    dropped
}

fn read_all(sources: &[Source], sequence: Sequence) -> (Vec<Row>, Vec<Row>) {
    let mut cursor = VisibleCursor::new(
        merged(&ORDER, sources),
        &[tombstones_of(sources)],
        View {
            sequence,
            merge_operator: Some(comma()),
            ..View::default()
        },
    );
    let mut up = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        up.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next().unwrap();
    }
    let mut down = Vec::new();
    cursor.seek_to_last().unwrap();
    while cursor.valid() {
        down.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.prev().unwrap();
    }
    down.reverse();
    (up, down)
}

type Index = prop::sample::Index;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_compaction_changes_what_a_live_snapshot_sees(
        history in history(1..120),
        cuts in prop::collection::vec(any::<Index>(), 0..7),
        snapshots in prop::collection::vec(any::<Index>(), 0..6),
        jobs in prop::collection::vec((any::<Index>(), any::<Index>(), any::<bool>(), any::<bool>()), 1..10),
    ) {
        let mut sources = sources(&ORDER, &history, &cuts);
        let mut live: BTreeSet<Sequence> =
            snapshots.iter().map(|at| at.index(history.len() + 1) as Sequence).collect();
        for (from, len, cautious, release) in jobs {
            if release {
                live.pop_first();
            }
            let from = from.index(sources.len());
            let to = from + len.index(sources.len() - from);
            let snapshots: Vec<Sequence> = live.iter().copied().collect();
            compact(&mut sources, from..=to, &snapshots, cautious);
            for sequence in live.iter().copied().chain([history.len() as Sequence, SEQUENCE_MAX]) {
                let expected: Vec<Row> = view(&ORDER, &history, sequence).into_iter().collect();
                let (up, down) = read_all(&sources, sequence);
                prop_assert_eq!(&up, &expected, "at {}", sequence);
                prop_assert_eq!(&down, &expected, "at {} backward", sequence);
            }
        }
        let all = 0..=sources.len() - 1;
        compact(&mut sources, all, &[], false);
        let left: Vec<Row> = view(&ORDER, &history, SEQUENCE_MAX).into_iter().collect();
        let rows = sources[0].rows.iter();
        let rows: Vec<Row> = rows.map(|row| (user_key(&row.0).to_vec(), row.1.clone())).collect();
        prop_assert_eq!(rows, left, "a full compaction leaves the live rows and nothing else");
    }

    #[test]
    fn parts_of_a_job_give_what_the_whole_gives(
        history in history(1..80),
        cuts in prop::collection::vec(any::<Index>(), 0..4),
        snapshots in prop::collection::vec(any::<Index>(), 0..4),
        split in 0_usize..14,
    ) {
        let sources = sources(&ORDER, &history, &cuts);
        let mut snapshots: Vec<_> = snapshots.iter().map(|at| at.index(history.len() + 1) as Sequence).collect();
        snapshots.sort_unstable();
        let split = keys()[split].clone();
        let part = |from: Option<&[u8]>, end: Option<&[u8]>| {
            let mut input = positioned(&sources);
            if let Some(from) = from {
                input.seek(&internal_key(from, SEQUENCE_MAX, ValueKind::SEEK)).unwrap();
            }
            let rules = Rules {
                snapshots: snapshots.clone(),
                tombstones: tombstones_of(&sources),
                end: end.map(<[u8]>::to_vec),
                merge_operator: Some(comma()),
                ..Rules::default()
            };
            collect(CompactionRows::new(input, |_: &[u8]| true, rules))
        };
        let (whole, dropped) = part(None, None);
        let (mut left, mut dropped_left) = part(None, Some(&split));
        let (right, dropped_right) = part(Some(&split), None);
        left.extend(right);
        dropped_left.add(&dropped_right);
        prop_assert_eq!(left, whole);
        prop_assert_eq!(dropped_left, dropped);
    }
}

/// One version of key "k", newest first: `P9=v`, `D5`, `S5`, `M3=x`.
fn version(text: &str) -> Row {
    let (head, value) = text.split_once('=').unwrap_or((text, ""));
    let kind = match &head[..1] {
        "P" => ValueKind::Put,
        "D" => ValueKind::Delete,
        "S" => ValueKind::SingleDelete,
        "M" => ValueKind::Merge,
        "B" => ValueKind::BlobPointer,
        other => panic!("no kind {other}"),
    };
    (internal_key(b"k", head[1..].parse().unwrap(), kind), value.into())
}

fn shown(rows: &[Row]) -> String {
    let show = |(key, value): &Row| {
        let row = parse_key(key).unwrap();
        let kind = match row.kind {
            ValueKind::Put => "P",
            ValueKind::Delete => "D",
            ValueKind::SingleDelete => "S",
            ValueKind::Merge => "M",
            ValueKind::BlobPointer => "B",
            ValueKind::RangeDelete => "R",
        };
        let value = String::from_utf8_lossy(value);
        let equals = if value.is_empty() { "" } else { "=" };
        format!("{kind}{}{equals}{value}", row.sequence)
    };
    rows.iter().map(show).collect::<Vec<_>>().join(" ")
}

struct Job {
    snapshots: Vec<Sequence>,
    bottommost: bool,
    below: bool,
    covers: Vec<Sequence>,
    filter: Option<RowFilter>,
    operator: Option<Arc<dyn MergeOperator>>,
}

fn upper(snapshots: &[Sequence]) -> Job {
    Job {
        snapshots: snapshots.to_vec(),
        bottommost: false,
        below: true,
        covers: Vec::new(),
        filter: None,
        operator: Some(comma()),
    }
}

fn bottom(snapshots: &[Sequence]) -> Job {
    Job {
        bottommost: true,
        below: false,
        ..upper(snapshots)
    }
}

fn run(job: Job, versions: &str) -> (String, Dropped) {
    let source = Source {
        rows: Arc::new(versions.split_whitespace().map(version).collect()),
        ..Source::default()
    };
    let tombstones = job.covers.iter().map(|&sequence| RangeTombstone {
        start: b"a".to_vec(),
        end: b"z".to_vec(),
        sequence,
    });
    let rules = Rules {
        snapshots: job.snapshots,
        bottommost: job.bottommost,
        tombstones: Arc::new(FragmentedTombstones::new(&ORDER, tombstones)),
        merge_operator: job.operator,
        filter: job.filter,
        fetch: Some(Box::new(|pointer| Ok([b"behind-", pointer].concat()))),
        ..Rules::default()
    };
    let (rows, dropped) = collect(CompactionRows::new(
        positioned(&[source]),
        |_: &[u8]| job.below,
        rules,
    ));
    (shown(&rows), dropped)
}

fn written(job: Job, versions: &str) -> String {
    run(job, versions).0
}

#[test]
fn each_stripe_keeps_its_newest_version() {
    let versions = "P9=i P8=h P6=f P5=e P2=b P1=a";
    assert_eq!(written(upper(&[]), versions), "P9=i");
    assert_eq!(written(upper(&[5]), versions), "P9=i P5=e");
    assert_eq!(written(upper(&[3, 7]), versions), "P9=i P6=f P2=b");
    assert_eq!(written(upper(&[1, 2, 5, 6, 8, 9]), versions), versions);
}

#[test]
fn a_delete_goes_only_where_it_hides_nothing() {
    assert_eq!(written(upper(&[]), "D9 P5=e"), "D9");
    assert_eq!(written(bottom(&[]), "D9 P5=e"), "");
    assert_eq!(
        written(
            Job {
                below: false,
                ..upper(&[])
            },
            "D9 P5=e"
        ),
        ""
    );
    assert_eq!(written(bottom(&[5]), "D9 P5=e"), "D9 P0=e");
    assert_eq!(written(bottom(&[10]), "D9 P5=e"), "");
}

#[test]
fn a_single_delete_vanishes_with_its_put_at_any_level() {
    let (rows, dropped) = run(upper(&[]), "S9 P5=e");
    assert_eq!((rows.as_str(), dropped.annihilated), ("", 2));
    assert_eq!(written(upper(&[5]), "S9 P5=e"), "S9 P5=e");
    assert_eq!(written(upper(&[]), "S9"), "S9");
    assert_eq!(written(bottom(&[]), "S9"), "");
    assert_eq!(written(upper(&[]), "S9 P7=g S5 P3=c"), "");
}

#[test]
fn a_single_delete_stays_under_a_put_for_the_next_single_delete() {
    assert_eq!(written(upper(&[]), "P7=g S5"), "P7=g S5");
    assert_eq!(written(upper(&[]), "S9 P7=g S5"), "S5");
    assert_eq!(written(upper(&[]), "P7=g S5 P3=c"), "P7=g");
    assert_eq!(written(bottom(&[]), "P7=g S5"), "P0=g");
}

#[test]
fn a_single_delete_over_other_kinds_never_uncovers_what_it_hides() {
    assert_eq!(written(upper(&[]), "S9 D7 P5=e"), "D7");
    assert_eq!(written(upper(&[]), "S9 M7=g P5=e"), "D9");
    assert_eq!(written(upper(&[]), "S9 P7=g P5=e D3"), "D3");
}

#[test]
fn a_range_tombstone_drops_rows_of_its_own_stripe_only() {
    let covers = |covers: &[Sequence], job: Job| Job {
        covers: covers.to_vec(),
        ..job
    };
    assert_eq!(written(covers(&[6], upper(&[])), "P9=i P5=e"), "P9=i");
    assert_eq!(written(covers(&[6], upper(&[])), "P5=e P2=b"), "");
    assert_eq!(written(covers(&[6], upper(&[5])), "P5=e P2=b"), "P5=e");
    assert_eq!(written(covers(&[4], upper(&[])), "P5=e"), "P5=e");
    assert_eq!(written(covers(&[6], upper(&[])), "S9 P5=e"), "S9");
    assert_eq!(written(covers(&[6], upper(&[])), "M9=i P5=e"), "P9=i");
}

#[test]
fn sequence_zero_is_never_given_under_a_range_tombstone() {
    assert_eq!(written(bottom(&[]), "P5=e"), "P0=e");
    assert_eq!(written(bottom(&[7]), "P9=i P5=e"), "P9=i P0=e");
    let covered = |covers: Vec<Sequence>, snapshots: &[Sequence]| Job {
        covers,
        ..bottom(snapshots)
    };
    assert_eq!(written(covered(vec![8], &[7]), "P5=e"), "P5=e");
    assert_eq!(written(covered(vec![3], &[]), "P5=e"), "P5=e");
}

#[test]
fn operands_fold_within_their_stripe() {
    assert_eq!(written(upper(&[]), "M9=i M8=h P5=e P4=d"), "P9=e,h,i");
    assert_eq!(written(upper(&[]), "M9=i M8=h D5 P4=d"), "P9=h,i");
    assert_eq!(written(upper(&[]), "M9=i M8=h"), "M9=h,i");
    assert_eq!(written(bottom(&[]), "M9=i M8=h"), "P0=h,i");
    assert_eq!(written(bottom(&[8]), "M9=i M8=h P5=e"), "M9=i P0=e,h");
    assert_eq!(written(upper(&[6]), "M9=i M8=h M6=f M5=e"), "M9=h,i M6=e,f");
    assert_eq!(written(upper(&[]), "M9=i B5=p"), "P9=behind-p,i");
    assert_eq!(
        written(upper(&[6]), "M9=i B5=p"),
        "M9=i B5=p",
        "never across stripes"
    );
    let unknown = Job {
        operator: None,
        ..upper(&[])
    };
    assert_eq!(written(unknown, "M9=i M8=h P5=e P4=d"), "M9=i M8=h P5=e");
    let unknown = Job {
        operator: None,
        ..upper(&[])
    };
    assert_eq!(written(unknown, "M9=i B5=p B4=q"), "M9=i B5=p");
}

#[test]
fn a_failing_operator_leaves_all_as_it_was_and_is_counted() {
    let failing = |job: Job| Job {
        operator: Some(Arc::new(crate::merge::U64AddOperator)),
        ..job
    };
    let (rows, dropped) = run(failing(upper(&[])), "M9=i M8=h P5=e P4=d");
    assert_eq!((rows.as_str(), dropped.merge_failures), ("M9=i M8=h P5=e", 1));
    let (rows, dropped) = run(failing(bottom(&[])), "M9=i M8=h D5 P4=d");
    assert_eq!((rows.as_str(), dropped.merge_failures), ("M9=i M8=h", 1));
}

/// Decides by the value, which must be none that is hidden or seen by a snapshot.
struct ByValue(FilterDecision);

impl CompactionFilter for ByValue {
    fn decide(&mut self, key: &[u8], value: &[u8]) -> FilterDecision {
        assert_eq!(key, b"k");
        assert!(value != b"a", "hidden or seen by a snapshot");
        self.0.clone()
    }
}

#[test]
fn the_filter_sees_only_what_no_snapshot_sees() {
    let with = |decision: FilterDecision, job: Job| Job {
        filter: RowFilter::new(Some(Box::new(ByValue(decision))), Expired::Nothing),
        ..job
    };
    let remove = || FilterDecision::Remove;
    assert_eq!(
        written(with(FilterDecision::Keep, upper(&[])), "P9=i P1=a"),
        "P9=i"
    );
    assert_eq!(
        written(
            with(FilterDecision::Change(b"x".to_vec()), upper(&[])),
            "P9=i P1=a"
        ),
        "P9=x"
    );
    assert_eq!(written(with(remove(), upper(&[])), "P9=i P1=a"), "D9");
    assert_eq!(written(with(remove(), bottom(&[])), "P9=i P1=a"), "");
    assert_eq!(written(with(remove(), bottom(&[1])), "P9=i P1=a"), "D9 P0=a");
    assert_eq!(written(with(remove(), upper(&[])), "M9=i P8=h"), "D9");
    assert_eq!(written(with(remove(), upper(&[9])), "P9=a"), "P9=a");
}

#[test]
fn expired_rows_are_deleted_and_the_others_keep_their_numbers() {
    let with = |expired: Expired, job: Job| Job {
        filter: RowFilter::new(None, expired),
        ..job
    };
    let until = Expired::Until;
    assert_eq!(written(with(until(5), upper(&[])), "P5=e P1=a"), "D5");
    assert_eq!(written(with(until(5), bottom(&[])), "P5=e P1=a"), "");
    assert_eq!(written(with(until(5), upper(&[])), "P6=f P5=e"), "P6=f");
    assert_eq!(
        written(with(until(5), upper(&[])), "M6=f P5=e"),
        "P6=e,f",
        "as old as its newest operand"
    );
    assert_eq!(
        written(with(until(9), bottom(&[5])), "P9=i P5=e"),
        "D9 P0=e",
        "a snapshot sees it"
    );
    assert_eq!(
        written(with(until(9), bottom(&[])), "P0=e"),
        "P0=e",
        "nobody knows its age"
    );
    assert_eq!(written(with(Expired::Everything, bottom(&[])), "P0=e"), "");
    assert!(RowFilter::new(None, Expired::Nothing).is_none());
}

/// Skips to `until` at the first key, and keeps what is behind.
struct Skipping {
    until: &'static [u8],
    asked: Arc<parking_lot::Mutex<Vec<Vec<u8>>>>,
}

impl CompactionFilter for Skipping {
    fn decide_by_key(&mut self, key: &[u8]) -> Option<FilterDecision> {
        let mut asked = self.asked.lock();
        asked.push(key.to_vec());
        Some(match asked.len() {
            1 => FilterDecision::SkipUntil(self.until.to_vec()),
            _ => FilterDecision::Keep,
        })
    }

    fn decide(&mut self, _: &[u8], _: &[u8]) -> FilterDecision {
        panic!("the key said enough")
    }
}

#[test]
fn what_a_filter_skips_is_removed_without_being_asked_about() {
    let kept = |until: &'static [u8], snapshots: &[Sequence]| {
        let row = |key: &str, sequence| {
            (
                internal_key(key.as_bytes(), sequence, ValueKind::Put),
                b"v".to_vec(),
            )
        };
        let rows = vec![row("b", 9), row("c", 3), row("d", 9), row("e", 9), row("f", 9)];
        let source = Source {
            rows: Arc::new(rows),
            ..Source::default()
        };
        let asked = Arc::default();
        let filter = Skipping {
            until,
            asked: Arc::clone(&asked),
        };
        let rules = Rules {
            bottommost: true,
            snapshots: snapshots.to_vec(),
            filter: RowFilter::new(Some(Box::new(filter)), Expired::Nothing),
            ..Rules::default()
        };
        let (rows, _) = collect(CompactionRows::new(
            positioned(&[source]),
            |_: &[u8]| false,
            rules,
        ));
        let kept = rows
            .iter()
            .flat_map(|row| user_key(&row.0))
            .map(|&byte| byte as char);
        let asked = asked.lock().concat();
        (kept.collect::<String>(), String::from_utf8(asked).unwrap())
    };
    assert_eq!(kept(b"e", &[]), ("ef".into(), "bef".into()));
    assert_eq!(kept(b"dd", &[]), ("ef".into(), "bef".into()));
    assert_eq!(
        kept(b"a", &[]),
        ("cdef".into(), "bcdef".into()),
        "nothing lies behind"
    );
    assert_eq!(kept(b"z", &[]), (String::new(), "b".into()));
    // The tombstones of the others hide nothing, so near the bottom they would be in the way of the snapshot only.
    assert_eq!(
        kept(b"e", &[5]),
        ("bcdef".into(), "bef".into()),
        "a snapshot sees c"
    );
}

#[test]
fn rows_that_can_not_be_are_corruption_not_a_panic() {
    for key in [
        b"short".to_vec(),
        vec![0xff; 9],
        internal_key(b"a", 1, ValueKind::RangeDelete),
    ] {
        let source = Source {
            rows: Arc::new(vec![(key, Vec::new())]),
            ..Source::default()
        };
        let mut rows = CompactionRows::new(positioned(&[source]), |_: &[u8]| true, Rules::default());
        assert_eq!(rows.advance().unwrap_err().kind(), crate::ErrorKind::Corruption);
    }
}
