//! Figures by family and level, and how long things took.

use std::mem::MaybeUninit;

use esker::{FamilyStats, HistogramStats, LevelStats};

use crate::boundary::{given, made, release};
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::list::{List, lend};
use crate::slice::esker_slice;

/// A level of a family.
#[repr(C)]
pub struct esker_level {
    /// Files.
    pub files: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// How much the level needs compaction; from 1.0 on it gets one.
    pub score: f64,
}

/// The levels of a family, from the top.
pub struct esker_levels(List<esker_level, ()>);

/// The levels of a family. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_levels(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    levels: Option<&mut MaybeUninit<Option<Box<esker_levels>>>>,
) -> Option<Box<esker_error>> {
    made(levels, || {
        let db = given(db, "db")?;
        let name = db.family(family).name();
        let all = db.db.stats().levels.into_iter();
        let of_family = all.filter(|(of, _)| of == name).flat_map(|(_, levels)| levels);
        let items = of_family.map(|level: LevelStats| esker_level {
            files: level.files as u64,
            bytes: level.bytes,
            score: level.score,
        });
        // SAFETY: the items refer to nothing.
        Ok(esker_levels(unsafe { List::new((), |()| items.collect()) }))
    })
}

/// The levels, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_levels_items(
    levels: Option<&esker_levels>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_level {
    List::array(levels.map(|levels| &levels.0), count)
}

/// Frees a list of levels.
#[unsafe(no_mangle)]
pub extern "C" fn esker_levels_free(levels: Option<Box<esker_levels>>) {
    release(levels);
}

/// A column family now.
#[repr(C)]
pub struct esker_family_stats {
    /// Its name.
    pub name: esker_slice<'static>,
    /// Bytes that its memtables hold.
    pub memtable_bytes: u64,
    /// Memtables that wait for their flush.
    pub memtables_waiting: u64,
    /// About how many keys it has; overwritten ones count until a compaction meets them.
    pub estimated_keys: u64,
    /// Bytes that compactions have still to write.
    pub pending_compaction_bytes: u64,
    /// How hard its debt presses on writers: from 0 on, above which they are held back, to 1 and beyond.
    pub write_pressure: f64,
    /// Blob files.
    pub blob_files: u64,
    /// Bytes of them.
    pub blob_bytes: u64,
    /// Bytes of the values in them that tables refer to.
    pub blob_live_bytes: u64,
}

/// Figures of all families.
pub struct esker_family_stats_list(List<esker_family_stats, Vec<FamilyStats>>);

/// How things stand now in each family. To be freed. `esker_db_levels` has the levels of one.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_family_stats(
    db: Option<&esker_db>,
    stats: Option<&mut MaybeUninit<Option<Box<esker_family_stats_list>>>>,
) -> Option<Box<esker_error>> {
    made(stats, || {
        let all = given(db, "db")?.db.stats().families;
        // SAFETY: names are on the heap.
        Ok(esker_family_stats_list(unsafe {
            List::new(all, |all| {
                let items = all.iter().map(|family| esker_family_stats {
                    name: lend(family.name.as_bytes()),
                    memtable_bytes: family.memtable_bytes,
                    memtables_waiting: family.memtables_waiting as u64,
                    estimated_keys: family.estimated_keys,
                    pending_compaction_bytes: family.pending_compaction_bytes,
                    write_pressure: family.write_pressure,
                    blob_files: family.blob_files as u64,
                    blob_bytes: family.blob_bytes,
                    blob_live_bytes: family.blob_live_bytes,
                });
                items.collect()
            })
        }))
    })
}

/// The families, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_stats_items(
    stats: Option<&esker_family_stats_list>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_family_stats {
    List::array(stats.map(|stats| &stats.0), count)
}

/// Frees a list of families' figures.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_stats_free(stats: Option<Box<esker_family_stats_list>>) {
    release(stats);
}

/// Times that were counted in one bucket.
#[repr(C)]
pub struct esker_bucket {
    /// Where it ends (inclusive), in microseconds; `UINT64_MAX`: it has no end.
    pub end_us: u64,
    /// How many took longer than the bucket before ends, and no longer than this one does.
    pub count: u64,
}

/// How long things of one kind took since the opening.
#[repr(C)]
pub struct esker_histogram {
    /// Of what kind.
    pub name: esker_slice<'static>,
    /// How many there were.
    pub count: u64,
    /// All times together, in microseconds.
    pub sum_us: u64,
    /// By length, the shortest first.
    pub buckets: *const esker_bucket,
    /// How many buckets.
    pub bucket_count: usize,
}

/// How long things took.
pub struct esker_histograms(List<esker_histogram, Vec<Times>>);

struct Times {
    name: &'static str,
    stats: HistogramStats,
    buckets: Vec<esker_bucket>,
}

/// How long flushes, compactions, syncs and the like took. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_histograms(
    db: Option<&esker_db>,
    histograms: Option<&mut MaybeUninit<Option<Box<esker_histograms>>>>,
) -> Option<Box<esker_error>> {
    made(histograms, || {
        let all = given(db, "db")?.db.stats().histograms.into_iter();
        let all = all.map(|(name, stats)| {
            let buckets = stats.counts.iter().enumerate().map(|(at, &count)| esker_bucket {
                end_us: HistogramStats::end_us(at).unwrap_or(u64::MAX),
                count,
            });
            let buckets = buckets.collect();
            Times { name, stats, buckets }
        });
        // SAFETY: the names are static, arrays of buckets are on the heap.
        Ok(esker_histograms(unsafe {
            List::new(all.collect(), |all: &Vec<Times>| {
                let items = all.iter().map(|times| esker_histogram {
                    name: lend(times.name.as_bytes()),
                    count: times.stats.count(),
                    sum_us: times.stats.sum_us,
                    buckets: times.buckets.as_ptr(),
                    bucket_count: times.buckets.len(),
                });
                items.collect()
            })
        }))
    })
}

/// The histograms, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_histograms_items(
    histograms: Option<&esker_histograms>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_histogram {
    List::array(histograms.map(|histograms| &histograms.0), count)
}

/// Frees a list of histograms.
#[unsafe(no_mangle)]
pub extern "C" fn esker_histograms_free(histograms: Option<Box<esker_histograms>>) {
    release(histograms);
}
