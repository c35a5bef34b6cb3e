//! A file system in memory for the manifest's tests: it forgets what was not synced and fails where it is told to.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::{CreateOptions, FileLock, Fs, IoMode, RandomFile, WriteFile};
use parking_lot::Mutex;

#[derive(Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    synced: usize,
}

type Names = BTreeMap<PathBuf, Arc<Mutex<Inode>>>;

#[derive(Debug, Default)]
struct Disk {
    names: Names,
    durable_names: Names,
    calls: u64,
    fail_at: Option<u64>,
}

impl Disk {
    /// Counts a call that changes something, and fails from the chosen one on.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        match self.fail_at {
            Some(at) if self.calls > at => Err(io::Error::other("injected")),
            _ => Ok(()),
        }
    }
}

/// Cheap to clone; clones are the same file system.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestFs(Arc<Mutex<Disk>>);

impl TestFs {
    /// Calls so far that change something.
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// Fails every changing call after the first `calls` from the start; `None`: no more failures.
    pub fn fail_after(&self, calls: Option<u64>) {
        self.0.lock().fail_at = calls;
    }

    /// What a machine finds after a power cut: durable names, synced bytes, and of the unsynced ones the first
    /// `keep` of each file. With `names`, the names that were not made durable as well.
    pub fn crash(&self, keep: usize, names: bool) -> TestFs {
        let disk = self.0.lock();
        let mut copied: Names = BTreeMap::new();
        for (path, inode) in if names { &disk.names } else { &disk.durable_names } {
            let inode = inode.lock();
            let len = inode.synced.saturating_add(keep).min(inode.bytes.len());
            let bytes = inode.bytes[..len].to_vec();
            copied.insert(path.clone(), Arc::new(Mutex::new(Inode { bytes, synced: len })));
        }
        TestFs(Arc::new(Mutex::new(Disk {
            durable_names: copied.clone(),
            names: copied,
            ..Disk::default()
        })))
    }

    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let inode = Arc::new(Mutex::new(Inode {
            bytes: bytes.to_vec(),
            synced: bytes.len(),
        }));
        let mut disk = self.0.lock();
        disk.names.insert(path.to_owned(), Arc::clone(&inode));
        disk.durable_names.insert(path.to_owned(), inode);
    }

    fn inode(&self, path: &Path) -> io::Result<Arc<Mutex<Inode>>> {
        self.0
            .lock()
            .names
            .get(path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[derive(Debug)]
struct Reader(Arc<Mutex<Inode>>);

impl RandomFile for Reader {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let inode = self.0.lock();
        let bytes = inode.bytes.get(offset as usize..).unwrap_or_default();
        let len = bytes.len().min(buf.len());
        buf[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().bytes.len() as u64)
    }
}

#[derive(Debug)]
struct Writer {
    fs: TestFs,
    inode: Arc<Mutex<Inode>>,
}

impl WriteFile for Writer {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        let failed = self.fs.0.lock().call();
        // A failed write may have written a part.
        let len = if failed.is_ok() {
            data.len()
        } else {
            data.len() / 2
        };
        self.inode.lock().bytes.extend_from_slice(&data[..len]);
        failed
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.fs.0.lock().call()?;
        let mut inode = self.inode.lock();
        inode.synced = inode.bytes.len();
        Ok(())
    }

    fn len(&self) -> u64 {
        self.inode.lock().bytes.len() as u64
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        if sync { self.sync() } else { Ok(()) }
    }
}

impl Fs for TestFs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let disk = self.0.lock();
        let inside = disk.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(path == Path::new("/db") || self.0.lock().names.contains_key(path))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        Ok(self.inode(path)?.lock().bytes.len() as u64)
    }

    fn open(&self, path: &Path, _: IoMode) -> io::Result<Arc<dyn RandomFile>> {
        Ok(Arc::new(Reader(self.inode(path)?)))
    }

    fn create(&self, path: &Path, _: CreateOptions) -> io::Result<Box<dyn WriteFile>> {
        let mut disk = self.0.lock();
        disk.call()?;
        let inode = Arc::<Mutex<Inode>>::default();
        disk.names.insert(path.to_owned(), Arc::clone(&inode));
        Ok(Box::new(Writer {
            fs: self.clone(),
            inode,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call()?;
        let inode = disk.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call()?;
        disk.names
            .remove(path)
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_file(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call()?;
        disk.durable_names = disk.names.clone();
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn FileLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}
