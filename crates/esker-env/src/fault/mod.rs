//! A file system that fails on purpose.
//!
//! [`FaultFs`] wraps another file system and obeys [`Rule`]s: fail the n-th call of a kind, on some files or all,
//! once or from then on, with a [`Fault`] of choice. It counts all calls, so that a test can run once to learn how
//! many there are and then fail each of them in turn.

mod file;
mod rules;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
pub use rules::{Fault, Op, Rule};

use crate::{BatchRead, CreateOptions, FileLock, Fs, IoMode, IoPriority, RandomFile, WriteFile};
use file::{FaultRandomFile, FaultWriteFile};
use rules::Rules;

/// A file system that fails where its rules say. Clones share the rules.
#[derive(Clone, Debug)]
pub struct FaultFs {
    inner: Arc<dyn Fs>,
    rules: Arc<Rules>,
    /// The present paths of files that are open for writing.
    open_for_writing: Arc<Mutex<Vec<Weak<Mutex<PathBuf>>>>>,
}

impl FaultFs {
    /// Wraps `inner`, without rules yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Fs>) -> Self {
        Self {
            inner,
            rules: Arc::default(),
            open_for_writing: Arc::default(),
        }
    }

    /// Adds a rule; it counts the calls from now on.
    pub fn add(&self, rule: Rule) {
        self.rules.add(rule);
    }

    /// Forgets all rules; the counters stay.
    pub fn clear(&self) {
        self.rules.clear();
    }

    /// Switches all rules on (as they are at first) or off. A rule that is off does not count calls.
    pub fn set_armed(&self, armed: bool) {
        self.rules.set_armed(armed);
    }

    /// Calls of a kind so far, failed ones included.
    pub fn calls(&self, op: Op) -> u64 {
        self.rules.calls(op)
    }

    /// Faults injected so far.
    pub fn injected(&self) -> u64 {
        self.rules.injected()
    }

    /// Counts a call that has no other fault than to fail.
    fn pass(&self, op: Op, path: &Path) -> io::Result<()> {
        match self.rules.on_call(op, path) {
            None => Ok(()),
            Some(fault) => Err(fault.error()),
        }
    }

    fn writer(&self, path: &Path, inner: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        let (fs, rules) = (Arc::clone(&self.inner), Arc::clone(&self.rules));
        let path = Arc::new(Mutex::new(path.to_owned()));
        self.open_for_writing.lock().push(Arc::downgrade(&path));
        Box::new(FaultWriteFile::new(path, inner, fs, rules))
    }
}

impl Fs for FaultFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.pass(Op::CreateDir, dir)?;
        self.inner.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.pass(Op::List, dir)?;
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.pass(Op::Stat, path)?;
        self.inner.exists(path)
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        self.pass(Op::Stat, path)?;
        self.inner.file_len(path)
    }

    fn open(&self, path: &Path, mode: IoMode) -> io::Result<Arc<dyn RandomFile>> {
        self.pass(Op::Open, path)?;
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(FaultRandomFile::new(
            path,
            inner,
            Arc::clone(&self.rules),
        )))
    }

    fn create(&self, path: &Path, options: CreateOptions) -> io::Result<Box<dyn WriteFile>> {
        self.pass(Op::Create, path)?;
        Ok(self.writer(path, self.inner.create(path, options)?))
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        self.pass(Op::Stat, dir)?;
        self.inner.canonical(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Op::Rename, to)?;
        self.inner.rename(from, to)?;
        let mut open = self.open_for_writing.lock();
        open.retain(|path| path.strong_count() > 0);
        for path in open.iter().filter_map(Weak::upgrade) {
            let mut path = path.lock();
            if *path == from {
                to.clone_into(&mut path);
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass(Op::Remove, path)?;
        self.inner.remove(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.pass(Op::Remove, dir)?;
        self.inner.remove_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.pass(Op::Sync, path)?;
        self.inner.sync_file(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Op::HardLink, to)?;
        self.inner.hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.pass(Op::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.pass(Op::Lock, path)?;
        self.inner.lock(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.pass(Op::FreeBytes, dir)?;
        self.inner.free_bytes(dir)
    }

    /// One after the other, so that rules meet the reads in their order.
    fn read_many(&self, reads: &mut [BatchRead<'_>], _: IoPriority) {
        let fault = self.rules.on_call(Op::ReadMany, Path::new(""));
        for read in reads {
            match fault {
                None => read.run(),
                Some(fault) => read.result = Err(fault.error()),
            }
        }
    }
}
