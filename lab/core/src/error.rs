//! The lab's one error: a kind that says what to do next, and a sentence.

use std::fmt;

/// What the caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The engine can't do this at all (LevelDB has no merge): leave the row out, and say why.
    Unsupported,
    /// An engine's library is not there or lacks a function: fetch it.
    Missing,
    /// An argument makes no sense: fix it.
    Usage,
    /// The engine returned an error: the run failed.
    Engine,
    /// A key was missing or a value was not the one written: the run failed, and the engine is broken.
    Wrong,
    /// Others wrote what a transaction has read or wants to write: roll it back, run it again.
    Conflict,
    /// Transactions waited for each other in a circle: roll this one back, run it again.
    Deadlock,
    /// A lock did not come free in time: roll the transaction back, run it again.
    TimedOut,
    /// The operating system refused something.
    Io,
    /// The user asked to stop.
    Stopped,
}

/// An error with its [`Kind`] and a sentence for people.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

/// The lab's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`, described by `message`.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
        }
    }

    /// The engine can't do `what`.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, what)
    }

    /// The engine returned an error.
    pub fn engine(message: impl Into<String>) -> Self {
        Self::new(Kind::Engine, message)
    }

    /// Data came back wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::new(Kind::Wrong, message)
    }

    /// An argument makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// The operating system refused; `what` names the attempt and the path.
    pub fn io(what: impl fmt::Display, source: &std::io::Error) -> Self {
        Self::new(Kind::Io, format!("{what}: {source}"))
    }

    /// What the caller can do.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The same error with `context` in front.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        Error {
            kind: self.kind,
            message: format!("{context}: {}", self.message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
