//! Compaction filters: rows that a program no longer wants leave when they are rewritten anyway.

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays.
    Keep,
    /// The key is deleted, as by a delete right behind its newest write.
    Remove,
    /// The row gets this value.
    Change(Vec<u8>),
    /// The key is deleted, and with it all that follow up to this one (exclusive) of which no snapshot sees anything; the
    /// filter is not asked about them, and their values are not read. A key that does not lie behind means `Remove`.
    SkipUntil(Vec<u8>),
}

/// Decides on rows. Made for one job, or one key range of a large job; it is asked with ascending keys.
///
/// It sees each key once: the newest value, merges folded into it where all of the key's history is at hand. What is
/// deleted it does not see, nor what a snapshot sees that was alive when the job began. Iterators go on with what they
/// had; but **a snapshot that is taken while the job runs sees the rows that it removes or changes only until it ends**.
pub trait CompactionFilter: Send {
    /// Decides by the key alone; `None`: the value is needed. The default needs it always. A value in a blob file is read
    /// only then.
    fn decide_by_key(&mut self, key: &[u8]) -> Option<FilterDecision> {
        let _ = key;
        None
    }

    /// Decides by key and value.
    fn decide(&mut self, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// Why rows are written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewriteCause {
    /// A memtable becomes a table.
    Flush,
    /// A compaction that the engine chose.
    Compaction,
    /// [`compact_range`](crate::Db::compact_range).
    Manual,
}

/// What a filter is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterContext {
    /// The level that is written.
    pub level: usize,
    /// Whether nothing older exists for any key of the job: what is removed leaves no tombstone.
    pub bottommost: bool,
    /// Why.
    pub cause: RewriteCause,
}

impl FilterContext {
    pub(crate) fn new(level: usize, bottommost: bool, cause: RewriteCause) -> Self {
        Self {
            level,
            bottommost,
            cause,
        }
    }
}

/// Makes filters. Tables that change their level without being rewritten ask for none; with a factory,
/// [`compact_range`](crate::Db::compact_range) rewrites all tables of its range, those of the last level too.
pub trait CompactionFilterFactory: Send + Sync {
    /// A filter for a job, or `None`: every row stays.
    fn create(&self, context: &FilterContext) -> Option<Box<dyn CompactionFilter>>;

    /// Whether flushes are filtered, too. Default: no.
    fn filters_flushes(&self) -> bool {
        false
    }
}
