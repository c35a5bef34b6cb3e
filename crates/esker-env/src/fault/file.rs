//! Files that fail on purpose.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::rules::{Fault, Op, Rules};
use crate::{CreateOptions, Fs, RandomFile, WriteFile};

#[derive(Debug)]
pub(super) struct FaultRandomFile {
    path: PathBuf,
    inner: Arc<dyn RandomFile>,
    rules: Arc<Rules>,
}

impl FaultRandomFile {
    pub(super) fn new(path: &Path, inner: Arc<dyn RandomFile>, rules: Arc<Rules>) -> Self {
        Self {
            path: path.to_owned(),
            inner,
            rules,
        }
    }
}

impl RandomFile for FaultRandomFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        match self.rules.on_call(Op::Read, &self.path) {
            None => self.inner.read_at(offset, buf),
            Some(Fault::ShortRead) => {
                let half = buf.len() / 2;
                self.inner.read_at(offset, &mut buf[..half])
            }
            Some(Fault::CorruptRead { bit }) => {
                let count = self.inner.read_at(offset, buf)?;
                if count > 0 {
                    let bit = bit % (count * 8);
                    buf[bit / 8] ^= 1 << (bit % 8);
                }
                Ok(count)
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn expect_random_reads(&self) {
        self.inner.expect_random_reads();
    }
}

#[derive(Debug)]
pub(super) struct FaultWriteFile {
    /// Where the file is now: it may have been renamed.
    path: Arc<Mutex<PathBuf>>,
    inner: Box<dyn WriteFile>,
    fs: Arc<dyn Fs>,
    rules: Arc<Rules>,
    synced_len: u64,
    failed: bool,
}

impl FaultWriteFile {
    pub(super) fn new(
        path: Arc<Mutex<PathBuf>>,
        inner: Box<dyn WriteFile>,
        fs: Arc<dyn Fs>,
        rules: Arc<Rules>,
    ) -> Self {
        Self {
            path,
            inner,
            fs,
            rules,
            synced_len: 0,
            failed: false,
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.failed {
            Err(Errno::IO.into())
        } else {
            Ok(())
        }
    }

    fn fault(&self, op: Op) -> Option<Fault> {
        self.rules.on_call(op, &self.path.lock())
    }

    /// Rewrites the file with what was synced. It keeps its name and, where the file system empties a file that is
    /// created again, its identity.
    fn lose_unsynced(&mut self) -> io::Result<()> {
        self.failed = true;
        let path = self.path.lock().clone();
        let mut kept = self.fs.read_all(&path)?;
        kept.truncate(usize::try_from(self.synced_len).unwrap_or(usize::MAX));
        let mut file = self.fs.create(&path, CreateOptions::default())?;
        file.append(&kept)?;
        file.finish(true)
    }

    fn fail_sync(&mut self, fault: Fault) -> io::Error {
        if fault == Fault::FailedSync
            && let Err(error) = self.lose_unsynced()
        {
            return error;
        }
        fault.error()
    }
}

impl WriteFile for FaultWriteFile {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        self.check()?;
        match self.fault(Op::Append) {
            None => self.inner.append(data),
            Some(fault) => {
                if fault == Fault::ShortWrite {
                    self.inner.append(&data[..data.len() / 2])?;
                }
                Err(fault.error())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        match self.fault(Op::Flush) {
            None => self.inner.flush(),
            Some(fault) => Err(fault.error()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        if let Some(fault) = self.fault(Op::Sync) {
            return Err(self.fail_sync(fault));
        }
        self.inner.sync()?;
        self.synced_len = self.inner.len();
        Ok(())
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.check()?;
        if let Some(fault) = self.fault(Op::Rewind) {
            return Err(fault.error());
        }
        self.inner.rewind()?;
        self.synced_len = 0;
        Ok(())
    }

    fn locked_bytes(&self) -> u64 {
        self.inner.locked_bytes()
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        self.check()?;
        if let Some(fault) = self.fault(Op::Finish) {
            return Err(self.fail_sync(fault));
        }
        self.inner.finish(sync)?;
        if sync {
            self.synced_len = self.inner.len();
        }
        Ok(())
    }
}
