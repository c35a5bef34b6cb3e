//! Settings of a single call.

/// How safe a write is when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// On the device: survives a power cut.
    Sync,
    /// With the operating system: survives the process. **A power cut may take it.** The default.
    #[default]
    Buffered,
    /// Only in memory: no WAL; lost with the process until it is flushed.
    ///
    /// What a crash leaves, as each column family is flushed by itself: of one family's writes of this kind those up to
    /// some moment, and what a batch holds for the family as a whole or not at all. **A batch over several families may
    /// be left in some of them only**, and a later write with a WAL may be left without earlier ones of this kind.
    /// All survive from when [`Db::flush`](crate::Db::flush) or [`Db::close`](crate::Db::close) returns;
    /// [`Db::sync_wal`](crate::Db::sync_wal) saves none.
    None,
}

/// Settings of a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// `None`: the database's default.
    pub durability: Option<Durability>,
    /// Fail with [`Retry`](crate::ErrorKind::Retry) where the write would have to wait for background work, also behind another
    /// write that waits for it. What other writes take by themselves, an append to the log or its sync, is waited for.
    pub no_wait: bool,
}

impl WriteOptions {
    /// With this durability.
    pub fn durability(durability: Durability) -> Self {
        Self {
            durability: Some(durability),
            ..Self::default()
        }
    }
}
