//! One step of a random run. Steps name things (families, snapshots, iterators) by numbers that are taken modulo how
//! many there are, so that a run stays meaningful when steps are left out of it.

use esker::Durability;
use esker_env::mem::CrashMode;

use crate::random::Rng;

/// Keys that a run uses.
pub const KEYS: usize = 400;

/// The key of this number: of several shapes and lengths, some of them prefixes of others.
pub fn key(number: usize) -> Vec<u8> {
    let number = number % KEYS;
    let tens = number / 10;
    match number % 10 {
        0 if tens == 0 => Vec::new(),
        0 => vec![tens as u8 * 6],
        1 | 2 => format!("k{number:02}").into_bytes(),
        3 => format!("k{tens:02}").into_bytes(),
        4 => format!("k{tens:02}/and more").into_bytes(),
        5 => [
            b"key with a long common part / ".repeat(3).as_slice(),
            &[tens as u8],
        ]
        .concat(),
        6 => vec![0xff; tens + 1],
        7 => [b"p\0".as_slice(), &(number as u64).to_be_bytes()].concat(),
        _ => format!("p{:04}", number * 7 % 1000).into_bytes(),
    }
}

/// Whether the key of this number is put and single-deleted in turns, in runs that single-delete at all.
pub fn is_single(number: usize) -> bool {
    number % 10 == 1
}

/// A change of one key or range.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Which family.
    pub family: usize,
    /// What is done.
    pub kind: ChangeKind,
    /// Which key.
    pub key: usize,
    /// The other end of a range, as a distance in the family's order.
    pub span: usize,
    /// What the value is made from.
    pub value: u64,
}

/// What is done to a key; what its family forbids becomes a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `oracle::Mutation`")]
pub enum ChangeKind {
    Put,
    Delete,
    DeleteRange,
    Merge,
}

/// What an iterator does.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "as in `esker::Iter`")]
pub enum Move {
    First,
    Last,
    Seek(usize),
    SeekForPrev(usize),
    Next(usize),
    Prev(usize),
    Refresh,
    Narrow(Option<usize>, Option<usize>),
}

/// One step.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are named after the engine's arguments")]
pub enum Operation {
    Write {
        changes: Vec<Change>,
        durability: Durability,
    },
    /// Changes that are kept under a name.
    Prepare {
        changes: Vec<Change>,
        durability: Durability,
    },
    /// The end of what was prepared: a commit, or a roll back.
    Resolve {
        prepared: usize,
        commit: bool,
        durability: Durability,
    },
    SyncWal,
    /// Changes of one family in a table of their own.
    Ingest {
        family: usize,
        changes: Vec<Change>,
        behind: bool,
    },
    /// A family that is exported, and imported under another name.
    Reimport(usize),
    /// A range and the tables in it, which snapshots do not outlive.
    DropRange(Change),
    Flush,
    FlushFamily(usize),
    Compact {
        family: usize,
        start: Option<usize>,
        end: Option<usize>,
    },
    WaitIdle,
    Pause,
    Resume,
    Reopen,
    Crash(CrashMode),
    CreateFamily(u64),
    DropFamily(usize),
    SetOption {
        family: usize,
        number: u64,
    },
    Snapshot,
    DropSnapshot(usize),
    OpenIterator {
        family: usize,
        snapshot: Option<usize>,
        lower: Option<usize>,
        upper: Option<usize>,
        prefix_same: bool,
    },
    MoveIterator {
        iterator: usize,
        to: Move,
    },
    DropIterator(usize),
    Get {
        family: usize,
        key: usize,
        snapshot: Option<usize>,
    },
    MultiGet {
        family: usize,
        keys: Vec<usize>,
        snapshot: Option<usize>,
    },
    /// Another process that reads along catches up; it may keep a snapshot of what it saw before.
    CatchUp {
        snapshot: bool,
    },
    /// A copy, which must hold what the database does.
    Checkpoint {
        wal_bytes_max: u64,
    },
    CheckAll,
}

impl Operation {
    /// A write as one write for each change, for a smaller failing run; anything else as it is.
    pub fn split(&self) -> Vec<Self> {
        match self {
            Self::Write { changes, durability } => changes
                .iter()
                .map(|&change| Self::Write {
                    changes: vec![change],
                    durability: *durability,
                })
                .collect(),
            other => vec![other.clone()],
        }
    }
}

/// What a run may do.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Crashes.
    pub crashes: bool,
    /// Enough data for several levels of several files.
    pub large: bool,
    /// Writes without the WAL; then there are no single deletes, whose history a crash could tear apart.
    pub unlogged: bool,
}

impl Scope {
    /// The scope of this number.
    pub fn random(rng: &mut Rng) -> Self {
        Self {
            crashes: rng.one_in(2),
            large: rng.one_in(2),
            unlogged: rng.one_in(3),
        }
    }
}

fn change(rng: &mut Rng, scope: Scope) -> Change {
    let kind = match rng.below(20) {
        0..12 => ChangeKind::Put,
        12..15 => ChangeKind::Delete,
        15..17 if !scope.large || rng.one_in(8) => ChangeKind::DeleteRange,
        _ => ChangeKind::Merge,
    };
    Change {
        family: rng.below(8),
        kind,
        key: rng.below(KEYS),
        span: if rng.one_in(6) {
            rng.below(KEYS)
        } else {
            rng.below(10)
        },
        value: rng.bits(),
    }
}

fn maybe(rng: &mut Rng, one_in: usize) -> Option<usize> {
    if rng.one_in(one_in) {
        Some(rng.below(KEYS))
    } else {
        None
    }
}

/// A random step.
pub fn random(rng: &mut Rng, scope: Scope) -> Operation {
    match rng.below(100) {
        0..50 => {
            let count = match rng.below(12) {
                0 => 30,
                4..8 if scope.large => 40,
                1..4 => 1 + rng.below(6),
                _ => 1,
            };
            let durability = match rng.below(10) {
                0 => Durability::Sync,
                1..4 if scope.unlogged => Durability::None,
                _ => Durability::Buffered,
            };
            Operation::Write {
                changes: (0..count).map(|_| change(rng, scope)).collect(),
                durability,
            }
        }
        50..54 => Operation::FlushFamily(rng.below(8)),
        54 => Operation::Flush,
        55 => Operation::Ingest {
            family: rng.below(8),
            changes: (0..1 + rng.below(40)).map(|_| change(rng, scope)).collect(),
            behind: rng.one_in(3),
        },
        56..60 => Operation::Compact {
            family: rng.below(8),
            start: maybe(rng, 2),
            end: maybe(rng, 2),
        },
        60 => Operation::WaitIdle,
        61 => Operation::Pause,
        62 => Operation::Resume,
        63 => Operation::SyncWal,
        64 => Operation::Reopen,
        65 if scope.crashes => Operation::Crash(match rng.below(3) {
            0 => CrashMode::DropUnsynced,
            1 => CrashMode::KeepAll,
            _ => CrashMode::Torn { seed: rng.bits() },
        }),
        66 => match rng.below(3) {
            0 => Operation::DropFamily(rng.below(8)),
            _ => Operation::CreateFamily(rng.bits()),
        },
        67 => Operation::SetOption {
            family: rng.below(8),
            number: rng.bits(),
        },
        68..71 => Operation::Snapshot,
        71 => Operation::DropSnapshot(rng.below(8)),
        72..75 => Operation::OpenIterator {
            family: rng.below(8),
            snapshot: maybe(rng, 3),
            lower: maybe(rng, 3),
            upper: maybe(rng, 3),
            prefix_same: rng.one_in(3),
        },
        75..88 => Operation::MoveIterator {
            iterator: rng.below(8),
            to: match rng.below(13) {
                0 => Move::First,
                1 => Move::Last,
                2 | 3 => Move::Seek(rng.below(KEYS)),
                4 | 5 => Move::SeekForPrev(rng.below(KEYS)),
                6..9 => Move::Next(1 + rng.below(20)),
                9..11 => Move::Prev(1 + rng.below(20)),
                11 => Move::Narrow(maybe(rng, 2), maybe(rng, 2)),
                _ => Move::Refresh,
            },
        },
        88 => match rng.below(6) {
            0 => Operation::DropRange(change(rng, scope)),
            _ => Operation::DropIterator(rng.below(8)),
        },
        89..93 => Operation::Get {
            family: rng.below(8),
            key: rng.below(KEYS),
            snapshot: maybe(rng, 2),
        },
        93..95 => Operation::MultiGet {
            family: rng.below(8),
            keys: (0..rng.below(12)).map(|_| rng.below(KEYS)).collect(),
            snapshot: maybe(rng, 2),
        },
        95 => Operation::Checkpoint {
            wal_bytes_max: [0, 4 << 10, u64::MAX][rng.below(3)],
        },
        96 => Operation::Prepare {
            changes: (0..rng.below(12)).map(|_| change(rng, scope)).collect(),
            durability: step_durability(rng),
        },
        97 => Operation::Resolve {
            prepared: rng.below(8),
            commit: !rng.one_in(3),
            durability: step_durability(rng),
        },
        98 if rng.one_in(2) => Operation::Reimport(rng.below(8)),
        98 | 99 if rng.one_in(2) => Operation::CatchUp {
            snapshot: rng.one_in(2),
        },
        _ => Operation::CheckAll,
    }
}

fn step_durability(rng: &mut Rng) -> Durability {
    if rng.one_in(3) {
        Durability::Sync
    } else {
        Durability::Buffered
    }
}
