//! The engine's errors as the originals word them: programs compare the beginnings of these texts.

use std::borrow::Cow;
use std::fmt;

use esker::{Error, ErrorKind};

/// The result of what can fail across the boundary.
pub type Result<T, E = Status> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Clone, Debug)]
pub enum Status {
    /// The engine's own error.
    Engine(Error),
    /// An error of this layer, worded already.
    Text(Cow<'static, str>),
}

impl Status {
    /// What the caller asked for makes no sense, or was not asked for rightly.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self::Text(format!("Invalid argument: {message}").into())
    }

    /// What the caller asked for is not offered, and leaving it out would change results.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self::Text(format!("Not implemented: {message}").into())
    }

    /// The engine's kind, if it is its error.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Engine(error) => Some(error.kind()),
            Self::Text(_) => None,
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "{}{error}", prefix(error.kind())),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// How the originals begin an error of this kind.
fn prefix(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => "Invalid argument: ",
        ErrorKind::NotFound => "NotFound: ",
        ErrorKind::Corruption => "Corruption: ",
        ErrorKind::Unsupported => "Not implemented: ",
        ErrorKind::Locked => "IO error: lock ",
        ErrorKind::NoSpace => "IO error: No space left on device: ",
        ErrorKind::ReadOnly => "Not implemented: Not supported operation in read only mode: ",
        ErrorKind::Retry => "Incomplete: ",
        ErrorKind::Conflict => "Resource busy: ",
        ErrorKind::Deadlock => "Resource busy: Deadlock: ",
        ErrorKind::TimedOut => "Operation timed out: Timeout waiting to lock key: ",
        ErrorKind::LockLimit => "Resource busy: Failed to acquire lock due to max_num_locks limit: ",
        ErrorKind::WriteLimit => "Operation aborted: Memory limit reached: ",
        ErrorKind::Interrupted => "Operation aborted: ",
        ErrorKind::Closed => "Shutdown in progress: ",
        ErrorKind::Bug => "Aborted: ",
        _ => "IO error: ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_begin_as_the_originals_do() {
        for (kind, begins) in [
            (ErrorKind::InvalidArgument, "Invalid argument: "),
            (ErrorKind::NotFound, "NotFound: "),
            (ErrorKind::Corruption, "Corruption: "),
            (ErrorKind::Io, "IO error: "),
            (ErrorKind::Locked, "IO error: lock "),
            (ErrorKind::NoSpace, "IO error: No space"),
            (ErrorKind::Conflict, "Resource busy: "),
            (ErrorKind::Deadlock, "Resource busy: "),
            (ErrorKind::TimedOut, "Operation timed out: "),
            (ErrorKind::LockLimit, "Resource busy: "),
            (ErrorKind::WriteLimit, "Operation aborted: Memory limit reached: "),
            (ErrorKind::Interrupted, "Operation aborted: "),
        ] {
            let text = Status::from(Error::new(kind, "what happened")).to_string();
            assert!(text.starts_with(begins), "{text}");
            assert!(text.ends_with("what happened"), "{text}");
        }
    }
}
