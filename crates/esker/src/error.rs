//! The engine's one error type.
//!
//! The kind says what the caller can do next; the context says where; the source says why.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fix the argument (an over-long key, an unknown column family, options that contradict each other).
    InvalidArgument,
    /// The database, or what it should hold, is not there.
    NotFound,
    /// The folder is in use by another process, or holds something else.
    Locked,
    /// Stored bytes are not what was written: restore the file or repair the database.
    Corruption,
    /// The file has a newer format than this version reads: upgrade.
    Unsupported,
    /// The device failed.
    Io,
    /// The device is full: free space, writes resume by themselves.
    NoSpace,
    /// The database no longer takes writes (a failed sync, or opened read-only); reads go on.
    ReadOnly,
    /// Try again: the call lost against concurrent work or a time limit.
    Retry,
    /// Another transaction wrote what this one has read or wants to write: roll it back, run it again.
    Conflict,
    /// Transactions waited for each other in a circle and this one was chosen to give way: roll it back, run it again.
    Deadlock,
    /// A lock did not come free in the time given: try again, or roll back and run the transaction again.
    TimedOut,
    /// There are as many locks as may be: end transactions, lock less in each, or raise the limit.
    LockLimit,
    /// The transaction writes more than one may: commit and go on in another one, or raise the limit.
    WriteLimit,
    /// Somebody has interrupted the wait for a lock: roll back, or try again.
    Interrupted,
    /// The database handle was closed.
    Closed,
    /// A defect in the engine: report it.
    Bug,
}

impl ErrorKind {
    /// Whether the same work may succeed when it is tried again and nothing was changed: a call for
    /// [`Retry`](Self::Retry), a transaction from its start for the others.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Retry | Self::Conflict | Self::Deadlock | Self::TimedOut | Self::LockLimit
        )
    }
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    offset: Option<u64>,
    column_family: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// An error with its kind, its place and its cause. One pointer wide; cheap to clone.
#[derive(Clone)]
pub struct Error(Box<Inner>);

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            file: None,
            offset: None,
            column_family: None,
            source: None,
        }))
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::Corruption`].
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    /// [`ErrorKind::Bug`].
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message)
    }

    /// An I/O error while doing `what`; a full device becomes [`ErrorKind::NoSpace`].
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ErrorKind::NoSpace
            }
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::UnexpectedEof => ErrorKind::Corruption,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, what);
        error.0.source = Some(Arc::new(source));
        error
    }

    /// Names the cause, in place of one named before; it is told behind the message.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Names the file (kept if one is named already).
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.0.file.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Names the offset in the file (kept if one is named already).
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Names the column family (kept if one is named already).
    #[must_use]
    pub fn in_column_family(mut self, name: &str) -> Self {
        self.0.column_family.get_or_insert_with(|| name.to_owned());
        self
    }

    /// What the caller can do next.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file concerned.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The offset in that file.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The column family concerned.
    pub fn column_family(&self) -> Option<&str> {
        self.0.column_family.as_deref()
    }

    /// What went wrong, without place and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(name) = &self.0.column_family {
            write!(f, " (column family '{name}')")?;
        }
        if let Some(path) = &self.0.file {
            write!(f, " in {}", path.display())?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " at offset {offset}")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_place_and_cause() {
        let error = Error::io("can't read block", io::Error::other("bad disk"))
            .in_file(Path::new("/db/000007.sst"))
            .at_offset(4096)
            .in_column_family("users");
        assert_eq!(
            error.to_string(),
            "can't read block (column family 'users') in /db/000007.sst at offset 4096: bad disk"
        );
        assert_eq!(error.kind(), ErrorKind::Io);
    }

    #[test]
    fn the_first_place_named_is_kept() {
        let error = Error::corruption("x").at_offset(1).at_offset(2);
        assert_eq!(error.offset(), Some(1));
    }

    #[test]
    fn a_cause_can_be_had_back() {
        let error = Error::new(ErrorKind::Deadlock, "a circle").caused_by(io::Error::other("1 waits for 2"));
        assert_eq!(error.to_string(), "a circle: 1 waits for 2");
        let cause = std::error::Error::source(&error).expect("a cause");
        assert!(cause.downcast_ref::<io::Error>().is_some());
    }

    #[test]
    fn what_is_lost_against_others_is_retryable() {
        use ErrorKind::*;
        for kind in [Retry, Conflict, Deadlock, TimedOut, LockLimit] {
            assert!(kind.is_retryable(), "{kind:?}");
        }
        for kind in [
            InvalidArgument,
            NotFound,
            Corruption,
            Io,
            NoSpace,
            ReadOnly,
            WriteLimit,
            Interrupted,
            Closed,
            Bug,
        ] {
            assert!(!kind.is_retryable(), "{kind:?}");
        }
    }

    #[test]
    fn a_full_disk_has_its_own_kind() {
        let error = Error::io("append", io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(error.kind(), ErrorKind::NoSpace);
    }
}
