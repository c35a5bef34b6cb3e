//! What fails, when, and how.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::io::Errno;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `Fs::create_dir_all`.
    CreateDir,
    /// `Fs::list`.
    List,
    /// `Fs::exists` and `Fs::file_len`.
    Stat,
    /// `Fs::open`.
    Open,
    /// `Fs::create`.
    Create,
    /// `Fs::rename`; rules look at the new path.
    Rename,
    /// `Fs::remove` and `Fs::remove_dir`.
    Remove,
    /// `Fs::hard_link`; rules look at the new path.
    HardLink,
    /// `Fs::sync_dir`.
    SyncDir,
    /// `Fs::lock`.
    Lock,
    /// `Fs::free_bytes`.
    FreeBytes,
    /// `RandomFile::read_at`, and each read of an `Fs::read_many`.
    Read,
    /// `Fs::read_many`. It has no path, so rules for some paths don't see it. A fault fails all its reads.
    ReadMany,
    /// `WriteFile::append`.
    Append,
    /// `WriteFile::flush`.
    Flush,
    /// `WriteFile::sync` and `Fs::sync_file`.
    Sync,
    /// `WriteFile::rewind`.
    Rewind,
    /// `WriteFile::finish`.
    Finish,
}

impl Op {
    /// All kinds.
    pub const ALL: [Op; 18] = [
        Op::CreateDir,
        Op::List,
        Op::Stat,
        Op::Open,
        Op::Create,
        Op::Rename,
        Op::Remove,
        Op::HardLink,
        Op::SyncDir,
        Op::Lock,
        Op::FreeBytes,
        Op::Read,
        Op::ReadMany,
        Op::Append,
        Op::Flush,
        Op::Sync,
        Op::Rewind,
        Op::Finish,
    ];
}

/// How a call fails. Where a fault makes no sense for a call (`ShortWrite` of a rename), the call fails plainly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done; `EIO`.
    Eio,
    /// Nothing is done; `ENOSPC`.
    Enospc,
    /// Nothing is done; `EXDEV`: the two names belong to different devices.
    Exdev,
    /// Half of an append is written, then `ENOSPC`.
    ShortWrite,
    /// `EIO` from a sync, or a finish, and everything since the last sync is gone, as if the kernel had dropped the
    /// dirty pages. The file fails for good.
    FailedSync,
    /// A read gives half of what it could, as if the file ended there.
    ShortRead,
    /// A read succeeds with one bit flipped.
    CorruptRead {
        /// Which one, counted from the first byte read (modulo what was read).
        bit: usize,
    },
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        match self {
            Fault::Enospc | Fault::ShortWrite => Errno::NOSPC.into(),
            Fault::Exdev => Errno::XDEV.into(),
            Fault::Eio | Fault::FailedSync | Fault::ShortRead | Fault::CorruptRead { .. } => Errno::IO.into(),
        }
    }
}

/// Fails calls of one kind.
#[derive(Clone, Debug)]
pub struct Rule {
    op: Op,
    fault: Fault,
    path_part: Option<String>,
    /// Matching calls that still pass.
    skip: u64,
    sticky: bool,
}

impl Rule {
    /// Fails the next call of kind `op`, once, whatever its path.
    #[must_use]
    pub fn new(op: Op, fault: Fault) -> Self {
        Self {
            op,
            fault,
            path_part: None,
            skip: 0,
            sticky: false,
        }
    }

    /// Fails the n-th matching call instead of the first; counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.skip = n.saturating_sub(1);
        self
    }

    /// Looks only at paths that contain `part`, such as `.wal`.
    #[must_use]
    pub fn on_path(mut self, part: impl Into<String>) -> Self {
        self.path_part = Some(part.into());
        self
    }

    /// Fails every matching call from the n-th on.
    #[must_use]
    pub fn sticky(mut self) -> Self {
        self.sticky = true;
        self
    }

    fn matches(&self, op: Op, path: &Path) -> bool {
        self.op == op
            && self
                .path_part
                .as_ref()
                .is_none_or(|part| path.to_string_lossy().contains(part.as_str()))
    }
}

/// The rules of a file system, and its counters.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Mutex<Vec<Rule>>,
    disarmed: AtomicBool,
    calls: [AtomicU64; Op::ALL.len()],
    injected: AtomicU64,
}

impl Rules {
    pub(super) fn add(&self, rule: Rule) {
        self.rules.lock().push(rule);
    }

    pub(super) fn clear(&self) {
        self.rules.lock().clear();
    }

    pub(super) fn set_armed(&self, armed: bool) {
        self.disarmed.store(!armed, Ordering::SeqCst);
    }

    pub(super) fn calls(&self, op: Op) -> u64 {
        self.calls[op as usize].load(Ordering::SeqCst)
    }

    pub(super) fn injected(&self) -> u64 {
        self.injected.load(Ordering::SeqCst)
    }

    /// Counts a call; gives the fault of the first rule that wants it to fail. Every matching rule counts it.
    pub(super) fn on_call(&self, op: Op, path: &Path) -> Option<Fault> {
        self.calls[op as usize].fetch_add(1, Ordering::SeqCst);
        if self.disarmed.load(Ordering::SeqCst) {
            return None;
        }
        let mut found = None;
        self.rules.lock().retain_mut(|rule| {
            if !rule.matches(op, path) {
                return true;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                return true;
            }
            if found.is_some() {
                return true;
            }
            found = Some(rule.fault);
            rule.sticky
        });
        if found.is_some() {
            self.injected.fetch_add(1, Ordering::SeqCst);
        }
        found
    }
}
