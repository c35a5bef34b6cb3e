//! How large each level should be, how far it is from that, and what it will cost to get there.
//!
//! Level sizes are dynamic: they are derived from the size of the last level upwards, so that the levels above it
//! always hold a fixed share of the data (about a ninth for a multiplier of 10) and the space that stale versions
//! take is bounded, however large the database is. See Dong et al., "Optimizing Space Amplification in RocksDB",
//! CIDR 2017, section 3.
//!
//! Data enters at the *base level*, the first that is in use. Its size is kept near `level_base_bytes`, and the
//! levels between are spaced evenly: with a strict multiplier the base level would be ten times smaller just before
//! a new level comes into use than just after, and write amplification would saw up and down with it. The
//! multiplier in effect is never below half of the configured one, which bounds the space taken.

use crate::options::ColumnFamilyOptions;
use crate::version::Version;

/// Level 0 waits until it has this part of the level below, one in so many, if that takes few files more.
pub(super) const LEVEL0_PART: f64 = 6.0;

/// The shape that a version should have.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelTargets {
    /// The first level in use below level 0.
    pub base_level: usize,
    /// Where level 0 goes: the base level, or a level above it that still holds data.
    pub level0_output: usize,
    /// Target sizes in bytes by level. 0 for level 0 and for levels that should be empty.
    pub bytes: Vec<u64>,
}

/// A level's need for compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelScore {
    /// The level.
    pub level: usize,
    /// Its size against its target (level 0: files against the trigger); from 1.0 on it should be compacted. Files
    /// that are being compacted don't count.
    pub score: f64,
    /// The order in which to compact: the score, divided by the next level's where that is too full itself, as
    /// pushing more data into it would make its compaction dearer.
    pub priority: f64,
    /// The level's whole size in bytes.
    pub size_bytes: u64,
    /// Its target in bytes; 0 for level 0.
    pub target_bytes: u64,
}

/// The targets of all levels. O(levels).
pub fn level_targets(version: &Version, options: &ColumnFamilyOptions) -> LevelTargets {
    let last = version.level_count() - 1;
    let size = |level: usize| version.level(level).size_bytes();
    let first_used = (1..=last)
        .find(|&level| !version.level(level).is_empty())
        .unwrap_or(last);
    let data = (1..=last).map(size).max().unwrap_or(0);
    let base_max = options.level_base_bytes.max(1);
    let multiplier = f64::from(options.level_size_multiplier.max(2));

    // As many levels as a strict multiplier needs to come down to the base size.
    let mut base = last;
    let mut above = data as f64;
    while base > 1 && above > base_max as f64 {
        base -= 1;
        above /= multiplier;
    }
    // A level that came into use stays until it would be small against its neighbour: without this, a size near the
    // border would fill and drain it again and again.
    if base > 1 && first_used == base - 1 && above > base_max as f64 / multiplier {
        base -= 1;
        above /= multiplier;
    }

    let mut bytes = vec![0; last + 1];
    let steps = (last - base) as f64;
    if base == last {
        bytes[last] = data.max(base_max);
    } else {
        let tightest = data as f64 / (multiplier / 2.0).max(2.0).powf(steps);
        let base_bytes = tightest.min(base_max as f64).max(above).max(1.0);
        let factor = (data as f64 / base_bytes).powf(1.0 / steps);
        for (level, target) in bytes.iter_mut().enumerate().skip(base) {
            *target = (base_bytes * factor.powi((level - base) as i32)) as u64;
        }
        // The last level is what the others are measured by; it is never too large.
        bytes[last] = bytes[last].max(size(last)).max(base_max);
    }
    LevelTargets {
        base_level: base,
        level0_output: base.min(first_used),
        bytes,
    }
}

/// The scores of all levels but the last, for statistics; see [`LevelScore`].
pub fn scores(version: &Version, options: &ColumnFamilyOptions) -> Vec<LevelScore> {
    scores_with(version, options, &level_targets(version, options))
}

pub(super) fn scores_with(
    version: &Version,
    options: &ColumnFamilyOptions,
    targets: &LevelTargets,
) -> Vec<LevelScore> {
    let last = version.level_count() - 1;
    let mut scores: Vec<LevelScore> = (0..last)
        .map(|level| {
            let files = version.level(level).files();
            let idle = files.iter().filter(|file| !file.is_being_compacted());
            let (count, bytes) = idle.fold((0_usize, 0_u64), |(n, sum), file| {
                (n + 1, sum.saturating_add(file.size_bytes))
            });
            let target = targets.bytes[level];
            let score = if level == 0 {
                fill_of(count, bytes, due_files(version, options, targets), options)
            } else if bytes == 0 {
                0.0
            } else if target == 0 {
                // Should be empty: urgent enough to happen, not to come before everything.
                1.0 + bytes as f64 / options.level_base_bytes.max(1) as f64
            } else {
                bytes as f64 / target as f64
            };
            LevelScore {
                level,
                score,
                priority: score,
                size_bytes: version.level(level).size_bytes(),
                target_bytes: target,
            }
        })
        .collect();
    // Level 0 too, however deep it is: letting it go first when it presses was tried, and in a simulated overload the
    // base level swelled to seven times its target, so that every later merge into it was seven times as dear.
    for level in 0..last {
        let next = if level == 0 {
            targets.level0_output
        } else {
            level + 1
        };
        if let Some(below) = scores
            .get(next)
            .map(|next| next.score)
            .filter(|&score| score > 1.0)
        {
            scores[level].priority /= below;
        }
    }
    scores
}

/// Bytes that compaction must still write until every level is within its target, if nothing is written meanwhile.
/// An estimate: overlap is taken to be uniform. O(levels).
pub fn estimate_debt(version: &Version, options: &ColumnFamilyOptions) -> u64 {
    let level0 = version.level(0);
    let due = level0_is_due(version, options);
    debt_with_level0(
        version,
        options,
        if due { level0.size_bytes() } else { 0 },
        f64::from(due),
    )
}

/// The same with level 0 also while it is not due: its bytes will have to go down, and the merge with the level that
/// they go to comes nearer with each of its files. For admission, to which debt must not come all at once: with levels at
/// their targets the files of one trigger can be worth as much debt as there may be without any pressure.
pub fn estimate_coming_debt(version: &Version, options: &ColumnFamilyOptions) -> u64 {
    let fill = level0_fill(version, options).min(1.0);
    debt_with_level0(version, options, version.level(0).size_bytes(), fill)
}

/// How full level 0 is; from 1.0 on it is compacted.
fn level0_fill(version: &Version, options: &ColumnFamilyOptions) -> f64 {
    let level0 = version.level(0);
    let due = level0_due_files(version, options);
    fill_of(level0.len(), level0.size_bytes(), due, options)
}

/// Whether level 0 is to be compacted.
pub fn level0_is_due(version: &Version, options: &ColumnFamilyOptions) -> bool {
    level0_fill(version, options) >= 1.0
}

/// Files from which on level 0 is compacted: `level0_compaction_trigger`, or up to twice as many where they are small
/// against the level that they go to. All keys of that level are in their way as a rule, so a merge costs what that
/// level holds, however little comes down; and with values in blob files very little does. But the values that rows of level
/// 0 replace can't be given back before a merge has met them, so the less space there is the sooner they go down. Changes
/// smoothly with sizes.
pub fn level0_due_files(version: &Version, options: &ColumnFamilyOptions) -> f64 {
    due_files(version, options, &level_targets(version, options))
}

fn due_files(version: &Version, options: &ColumnFamilyOptions, targets: &LevelTargets) -> f64 {
    let trigger = options.level0_compaction_trigger.max(1) as f64;
    let level0 = version.level(0);
    if level0.is_empty() {
        return trigger;
    }
    let file_bytes = level0.size_bytes() as f64 / level0.len() as f64;
    let below = version.level(targets.level0_output).size_bytes() as f64;
    let room = 1.0 - super::garbage(version, options).part().min(1.0);
    (below / LEVEL0_PART / file_bytes.max(1.0)).clamp(trigger, (1.0 + room) * trigger)
}

/// How full level 0 is by some of its files, if it is due with `due` files.
fn fill_of(count: usize, bytes: u64, due: f64, options: &ColumnFamilyOptions) -> f64 {
    let by_count = count as f64 / due;
    let by_bytes = bytes as f64 / options.level_base_bytes.max(1) as f64;
    // A single file has nothing to be merged with; only its size can be a reason.
    by_count.max(if count > 1 { by_bytes } else { 0.0 })
}

/// The debt if `level0_bytes` go down, merged with `output_share` of the level that takes them.
fn debt_with_level0(
    version: &Version,
    options: &ColumnFamilyOptions,
    level0_bytes: u64,
    output_share: f64,
) -> u64 {
    let targets = level_targets(version, options);
    let last = version.level_count() - 1;
    // Bytes that come down into the level at hand.
    let mut arriving = level0_bytes as f64;
    let mut debt = arriving + output_share * version.level(targets.level0_output).size_bytes() as f64;
    for level in targets.level0_output..last {
        let size = version.level(level).size_bytes() as f64 + arriving;
        let excess = size - targets.bytes[level] as f64;
        arriving = excess.max(0.0);
        if arriving > 0.0 {
            let next = version.level(level + 1).size_bytes() as f64;
            debt += arriving * (1.0 + next / size);
        }
    }
    debt as u64
}
