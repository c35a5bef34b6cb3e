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
    None,
}

/// Settings of a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// `None`: the database's default.
    pub durability: Option<Durability>,
    /// Fail with [`Retry`](crate::ErrorKind::Retry) where the write would have to wait for background work.
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
