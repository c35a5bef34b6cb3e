//! What went wrong: the message, what to do next, and the exit code.

use std::fmt;
use std::io::{self, Write as _};

use esker::{Error, ErrorKind};
use serde_json::json;

/// All went well.
pub const EXIT_OK: u8 = 0;
/// The key is not there.
pub const EXIT_NOT_FOUND: u8 = 1;
/// The command line, or what it asks for, must be changed.
pub const EXIT_USAGE: u8 = 2;
/// Stored bytes are damaged.
pub const EXIT_DAMAGE: u8 = 3;
/// Anything else.
pub const EXIT_OTHER: u8 = 4;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The engine says so.
    Engine(Error),
    /// The command line must be changed: the message, and how.
    Usage(String, String),
    /// Reading input or writing output failed.
    Io(String, io::Error),
    /// Nobody reads the output any more.
    BrokenPipe,
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub fn usage(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Usage(message.into(), advice.into())
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Engine(error) => match error.kind() {
                ErrorKind::InvalidArgument => EXIT_USAGE,
                ErrorKind::Corruption => EXIT_DAMAGE,
                _ => EXIT_OTHER,
            },
            Self::Usage(..) => EXIT_USAGE,
            Self::Io(..) => EXIT_OTHER,
            Self::BrokenPipe => EXIT_OK,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Engine(error) => kind_name(error.kind()),
            Self::Usage(..) => "usage",
            Self::Io(..) | Self::BrokenPipe => "io",
        }
    }

    fn advice(&self) -> Option<&str> {
        match self {
            Self::Engine(error) => advice(error),
            Self::Usage(_, advice) => Some(advice.as_str()).filter(|advice| !advice.is_empty()),
            Self::Io(..) | Self::BrokenPipe => None,
        }
    }

    /// Says it on stderr: what happened and where, then what to do next.
    pub fn report(&self, json: bool) {
        let mut stderr = io::stderr().lock();
        // Where stderr is closed there is nobody to tell.
        let _ = if json {
            writeln!(stderr, "{}", self.to_json())
        } else {
            let told = writeln!(stderr, "esker: {self}");
            match self.advice() {
                Some(advice) => writeln!(stderr, "       {advice}"),
                None => told,
            }
        };
    }

    fn to_json(&self) -> serde_json::Value {
        let mut error = match self {
            Self::Engine(error) => error_json(error),
            _ => json!({"kind": self.kind(), "message": self.to_string()}),
        };
        if let (Some(advice), Some(fields)) = (self.advice(), error.as_object_mut()) {
            fields.insert("advice".to_owned(), advice.into());
        }
        json!({ "error": error })
    }
}

/// An engine's error as an object; places that are not known are left out.
pub fn error_json(error: &Error) -> serde_json::Value {
    let mut fields = json!({"kind": kind_name(error.kind()), "message": error.to_string()});
    if let Some(path) = error.file() {
        fields["file"] = path.display().to_string().into();
    }
    if let Some(offset) = error.offset() {
        fields["offset"] = offset.into();
    }
    if let Some(family) = error.column_family() {
        fields["family"] = family.into();
    }
    fields
}

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => "invalid-argument",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Locked => "locked",
        ErrorKind::Corruption => "corruption",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Io => "io",
        ErrorKind::NoSpace => "no-space",
        ErrorKind::ReadOnly => "read-only",
        ErrorKind::Retry => "retry",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Deadlock => "deadlock",
        ErrorKind::TimedOut => "timed-out",
        ErrorKind::LockLimit => "lock-limit",
        ErrorKind::WriteLimit => "write-limit",
        ErrorKind::Interrupted => "interrupted",
        ErrorKind::Closed => "closed",
        ErrorKind::Bug => "bug",
        _ => "other",
    }
}

/// What can be done about an error of the engine; `None` where the message says it all.
fn advice(error: &Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::NotFound if error.message().contains("column family") => {
            "'esker families list' shows all of them; 'esker families create NAME' makes one"
        }
        ErrorKind::NotFound if error.message().contains("SSTable") => {
            "the process that has the database open has replaced this file; run the command again"
        }
        ErrorKind::NotFound => "check --db; 'put --create' makes a new database",
        ErrorKind::InvalidArgument if error.message().contains("folder") => {
            "check --db, or choose an empty folder for a new database"
        }
        ErrorKind::Locked => {
            "get, scan, stats, dump and verify work beside that process; to write, stop it first"
        }
        ErrorKind::Corruption => {
            "'esker verify' lists every damaged file: restore those, or let 'esker repair' save what is left"
        }
        ErrorKind::Unsupported => "a newer version of esker wrote it: use that one",
        ErrorKind::Io => "look at the system's log: the device may be failing",
        ErrorKind::NoSpace => "free some space on the device and run it again; nothing was lost",
        ErrorKind::ReadOnly => "nothing was written; open the database again once the cause is gone",
        ErrorKind::Retry | ErrorKind::Conflict | ErrorKind::Deadlock | ErrorKind::TimedOut => {
            "run the command again"
        }
        ErrorKind::LockLimit => "end other transactions, or lock less in each",
        ErrorKind::WriteLimit => "write less in one transaction",
        ErrorKind::Bug => "this is a defect of esker: please report it with this message",
        _ => return None,
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Usage(message, _) => f.write_str(message),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::BrokenPipe => f.write_str("nobody reads the output"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Errors without more words are those of the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::Io("can't write the output".to_owned(), error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_what_can_be_done() {
        let code = |kind| Failure::Engine(Error::new(kind, "x")).exit_code();
        assert_eq!(code(ErrorKind::InvalidArgument), EXIT_USAGE);
        assert_eq!(code(ErrorKind::Corruption), EXIT_DAMAGE);
        assert_eq!(code(ErrorKind::NotFound), EXIT_OTHER, "only a key's absence is 1");
        assert_eq!(code(ErrorKind::Locked), EXIT_OTHER);
    }

    #[test]
    fn a_place_is_told_in_json() {
        let error = Error::corruption("bad")
            .in_file("/db/1.sst".as_ref())
            .at_offset(7);
        let told = Failure::Engine(error).to_json();
        assert_eq!(told["error"]["kind"], "corruption");
        assert_eq!(told["error"]["offset"], 7);
        assert_eq!(told["error"]["file"], "/db/1.sst");
        assert!(
            told["error"]["advice"]
                .as_str()
                .is_some_and(|advice| advice.contains("verify"))
        );
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit_code(), EXIT_OK);
    }
}
