//! Compaction filters and property collectors, through the database.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use esker::{
    CollectedRow, ColumnFamilyOptions, CompactionFilter, CompactionFilterFactory, CompactionStyle,
    Compression, Db, FilterContext, FilterDecision, Hooks, Opener, Options, PropertyCollector,
    PropertyCollectorFactory, ReadOptions, RewriteCause, RowKind, TableFileWriter,
};
use esker_env::Env;

fn options(hooks: Hooks) -> Options {
    Options {
        default_column_family: ColumnFamilyOptions {
            file_bytes: 16 << 10,
            level_base_bytes: 64 << 10,
            compression_per_level: vec![Compression::None],
            hooks,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    }
}

fn open(env: &Env, hooks: Hooks) -> Db {
    Opener::new(options(hooks)).env(env.clone()).open("/db").unwrap()
}

fn filtered(filter: &Arc<impl CompactionFilterFactory + 'static>) -> Hooks {
    Hooks {
        compaction_filter: Some(Arc::clone(filter) as Arc<dyn CompactionFilterFactory>),
        ..Hooks::default()
    }
}

fn key(i: u32) -> Vec<u8> {
    format!("{:02}/{i:06}", i / 100).into_bytes()
}

/// Indexes with numbers below this one were dropped.
#[derive(Default)]
struct DroppedBelow {
    number: AtomicU64,
    flushes: bool,
    made: AtomicUsize,
    values_read: AtomicUsize,
}

struct Drops {
    below: u64,
    factory: Arc<DroppedBelow>,
}

impl CompactionFilter for Drops {
    fn decide_by_key(&mut self, key: &[u8]) -> Option<FilterDecision> {
        let index: u64 = std::str::from_utf8(&key[..2]).ok()?.parse().ok()?;
        // In every tenth index the value decides.
        match index {
            _ if index < self.below => Some(FilterDecision::SkipUntil(
                format!("{:02}", self.below).into_bytes(),
            )),
            _ if index % 10 == 9 => None,
            _ => Some(FilterDecision::Keep),
        }
    }

    fn decide(&mut self, _: &[u8], value: &[u8]) -> FilterDecision {
        self.factory.values_read.fetch_add(1, Ordering::Relaxed);
        match value.first() {
            Some(b'-') => FilterDecision::Remove,
            Some(b'+') => FilterDecision::Keep,
            _ => FilterDecision::Change([b"+", value].concat()),
        }
    }
}

struct Shared(Arc<DroppedBelow>);

impl CompactionFilterFactory for Shared {
    fn create(&self, context: &FilterContext) -> Option<Box<dyn CompactionFilter>> {
        self.0.made.fetch_add(1, Ordering::Relaxed);
        assert_eq!(context.cause == RewriteCause::Flush, context.level == 0);
        Some(Box::new(Drops {
            below: self.0.number.load(Ordering::Relaxed),
            factory: Arc::clone(&self.0),
        }))
    }

    fn filters_flushes(&self) -> bool {
        self.0.flushes
    }
}

fn rows(db: &Db, options: ReadOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iter = db.iter_cf(&db.default_column_family(), options).unwrap();
    let mut rows = Vec::new();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next().unwrap();
    }
    rows
}

#[test]
fn what_a_filter_does_not_want_goes_with_compact_range() {
    let (env, _) = Env::simulated(1);
    let state = Arc::new(DroppedBelow::default());
    let db = open(&env, filtered(&Arc::new(Shared(Arc::clone(&state)))));
    for i in 0..2000 {
        let sign = if i % 2 == 0 { "-" } else { "" };
        // Some values lie in blob files, some in tables.
        let len = if i % 3 == 0 { 700 } else { 40 };
        let value = format!("{sign}{}", "v".repeat(len));
        db.put(&key(i), value.as_bytes()).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(state.made.load(Ordering::Relaxed), 0, "flushes are not asked for");
    assert_eq!(rows(&db, ReadOptions::default()).len(), 2000);
    db.compact_range(None, None).unwrap();
    let values_read = state.values_read.load(Ordering::Relaxed);
    assert_eq!(values_read, 200, "of two indexes only");
    let found = rows(&db, ReadOptions::default());
    assert_eq!(found.len(), 2000 - 100);
    for (key, value) in &found {
        let by_value = key.starts_with(b"09") || key.starts_with(b"19");
        assert_eq!(value.starts_with(b"+v"), by_value, "{}", key.escape_ascii());
    }
    // All of it is in the last level by now, and still every row is asked about.
    state.number.store(7, Ordering::Relaxed);
    let snapshot = db.snapshot();
    db.compact_range(None, None).unwrap();
    assert_eq!(
        rows(&db, ReadOptions::default()),
        found,
        "a snapshot sees all of them"
    );
    drop(snapshot);
    let blobs = db.stats().blob_live_bytes;
    db.compact_range(None, None).unwrap();
    assert_eq!(rows(&db, ReadOptions::default()), found[700..]);
    assert!(db.stats().blob_live_bytes < blobs * 3 / 4);
    let levels = db.property(&db.default_column_family(), "levels").unwrap();
    assert!(levels.starts_with("0 0 0 0 0 0 "), "{levels}");
    db.close().unwrap();
    // Without the hooks the rows are what they are.
    let db = open(&env, Hooks::default());
    db.compact_range(None, None).unwrap();
    assert_eq!(rows(&db, ReadOptions::default()), found[700..]);
}

#[test]
fn flushes_are_filtered_if_the_factory_says_so() {
    let state = Arc::new(DroppedBelow {
        flushes: true,
        number: AtomicU64::new(3),
        ..DroppedBelow::default()
    });
    let db = open(
        &Env::simulated(1).0,
        filtered(&Arc::new(Shared(Arc::clone(&state)))),
    );
    for i in 0..500 {
        db.put(&key(i), b"value").unwrap();
    }
    db.flush().unwrap();
    assert_eq!(state.made.load(Ordering::Relaxed), 1);
    assert_eq!(rows(&db, ReadOptions::default()).len(), 200);
    // What lies below stays hidden.
    db.compact_range(None, None).unwrap();
    state.number.store(5, Ordering::Relaxed);
    db.put(&key(450), b"newer").unwrap();
    db.flush().unwrap();
    assert_eq!(
        db.get(&key(450)).unwrap(),
        None,
        "the older value does not come back"
    );
}

/// Distinct prefixes of two bytes, and rows by kind.
#[derive(Default)]
struct Distinct {
    prefixes: BTreeSet<Vec<u8>>,
    rows: u64,
    deletes: u64,
    ranges: u64,
    outside: u64,
}

struct Distincts(&'static str);

impl PropertyCollectorFactory for Distincts {
    fn name(&self) -> &str {
        self.0
    }

    fn create(&self) -> Box<dyn PropertyCollector> {
        Box::<Distinct>::default()
    }
}

impl PropertyCollector for Distinct {
    fn add(&mut self, row: &CollectedRow<'_>) {
        match row.kind {
            RowKind::Delete => self.deletes += 1,
            RowKind::RangeDelete => {
                assert_eq!(row.value, Some(&b"03"[..]));
                self.ranges += 1;
            }
            _ => {
                self.rows += 1;
                self.outside += u64::from(row.value.is_none());
                self.prefixes.insert(row.key[..2].to_vec());
            }
        }
    }

    fn finish(self: Box<Self>) -> Vec<(String, Vec<u8>)> {
        let number = |name: &str, number: u64| (name.to_owned(), number.to_le_bytes().to_vec());
        vec![
            number("prefixes", self.prefixes.len() as u64),
            number("rows", self.rows),
            number("deletes", self.deletes),
            number("ranges", self.ranges),
            number("outside", self.outside),
        ]
    }
}

#[test]
fn collectors_see_each_row_of_each_table_and_their_words_stay_with_it() {
    let (env, _) = Env::simulated(1);
    let hooks = Hooks {
        property_collectors: vec![Arc::new(Distincts("index")), Arc::new(Distincts("more"))],
        ..Hooks::default()
    };
    let db = open(&env, hooks.clone());
    let family = db.default_column_family();
    db.set_family_options(&family, &[("compaction_style", "manual")])
        .unwrap();
    for i in 0..1000 {
        db.put(&key(i), &vec![b'v'; if i % 2 == 0 { 700 } else { 40 }])
            .unwrap();
    }
    db.delete(b"zz").unwrap();
    let mut batch = esker::WriteBatch::new();
    batch.delete_range(b"02", b"03").unwrap();
    db.write(&mut batch).unwrap();
    db.flush().unwrap();
    let sum = |db: &Db, name: &str, start: Option<&[u8]>, end: Option<&[u8]>| {
        let tables = db
            .table_properties(&db.default_column_family(), start, end)
            .unwrap();
        let number = |bytes: &Vec<u8>| u64::from_le_bytes(bytes.as_slice().try_into().unwrap());
        let all: u64 = tables.iter().map(|table| number(&table.properties[name])).sum();
        (all, tables.len())
    };
    let named = |db: &Db, name: &str| sum(db, name, None, None).0;
    assert_eq!(sum(&db, "index.prefixes", None, None), (9, 1));
    assert_eq!(named(&db, "index.rows"), 900, "100 were covered already");
    assert_eq!(named(&db, "more.outside"), 450, "values in blob files");
    assert_eq!((named(&db, "index.deletes"), named(&db, "index.ranges")), (1, 1));
    db.compact_range(None, None).unwrap();
    let (rows, tables) = sum(&db, "index.rows", None, None);
    assert_eq!(
        (rows, named(&db, "index.deletes"), named(&db, "index.ranges")),
        (900, 0, 0)
    );
    assert!(tables > 1);
    let (_, of_one) = sum(&db, "index.rows", Some(b"05"), Some(b"05/0005"));
    assert!(of_one >= 1 && of_one < tables);
    assert_eq!(sum(&db, "index.rows", Some(b"zz"), None).1, 0);
    db.close().unwrap();
    let db = open(&env, Hooks::default());
    assert_eq!(named(&db, "index.rows"), 900, "who does not collect can read");
    // Tables that are made outside have them too.
    let settings = ColumnFamilyOptions {
        hooks,
        ..ColumnFamilyOptions::default()
    };
    let mut writer = TableFileWriter::create_on(&env, "/outside", &settings).unwrap();
    writer.put(b"99/1", b"1").unwrap();
    writer.finish().unwrap();
    let family = db.default_column_family();
    db.ingest(&[(family, vec!["/outside".into()])], &Default::default())
        .unwrap();
    assert_eq!(named(&db, "index.rows"), 901);
}

#[test]
fn a_table_with_a_run_of_deletes_is_compacted_though_its_level_is_not_full() {
    let mut options = options(Hooks::default());
    options.default_column_family.level_base_bytes = 256 << 20;
    options.default_column_family.compaction_style = CompactionStyle::Manual;
    let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
    let family = db.default_column_family();
    for i in 0..20_000_u32 {
        db.put(&i.to_be_bytes(), b"a queue's entry").unwrap();
    }
    db.compact_range(None, None).unwrap();
    db.set_family_options(&family, &[("compaction_style", "leveled")])
        .unwrap();
    let counter = |name: &str| {
        let counters = db.stats().counters;
        counters.iter().find(|counter| counter.0 == name).unwrap().1
    };
    for i in 0..2000_u32 {
        db.delete(&i.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(
        db.property(&family, "levels").unwrap()[..2],
        *"1 ",
        "too few to matter"
    );
    for i in 2000..12_000_u32 {
        db.delete(&i.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(counter("compactions_for_tombstones") > 0);
    let tables = db.table_properties(&family, None, None).unwrap();
    assert_eq!(tables.iter().map(|table| table.deletions).sum::<u64>(), 0);
    assert_eq!(tables.iter().map(|table| table.entries).sum::<u64>(), 8000);
}
