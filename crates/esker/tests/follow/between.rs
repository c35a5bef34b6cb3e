//! A file system that runs something between two calls of whoever reads through it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

use esker_env::{CreateOptions, FileLock, Fs, IoMode, RandomFile, WriteFile};

type Action = Box<dyn FnOnce() + Send>;

/// Counts calls, and runs an action in front of one of them.
#[derive(Default)]
pub struct Hook {
    state: Mutex<(u64, Option<(u64, Action)>)>,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Hook {
    /// Runs `action` in front of call `at` from now on.
    pub fn arm(&self, at: u64, action: impl FnOnce() + Send + 'static) {
        *self.state.lock().unwrap() = (0, Some((at, Box::new(action))));
    }

    /// Whether the action was still to be run.
    pub fn disarm(&self) -> bool {
        self.state.lock().unwrap().1.take().is_some()
    }

    fn pass(&self) {
        let due = {
            let mut state = self.state.lock().unwrap();
            let at = state.0;
            state.0 += 1;
            state.1.take_if(|(due, _)| *due == at)
        };
        if let Some((_, action)) = due {
            action();
        }
    }
}

/// Reads of another file system, with the hook before each of them.
#[derive(Debug)]
pub struct Between {
    pub inner: Arc<dyn Fs>,
    pub hook: Arc<Hook>,
}

#[derive(Debug)]
struct File {
    inner: Arc<dyn RandomFile>,
    hook: Arc<Hook>,
}

impl RandomFile for File {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.hook.pass();
        self.inner.read_at(offset, buf)
    }

    fn len(&self) -> io::Result<u64> {
        self.hook.pass();
        self.inner.len()
    }
}

fn refused<T>() -> io::Result<T> {
    panic!("a follower changes nothing")
}

impl Fs for Between {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.hook.pass();
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.hook.pass();
        self.inner.exists(path)
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        self.hook.pass();
        self.inner.file_len(path)
    }

    fn open(&self, path: &Path, mode: IoMode) -> io::Result<Arc<dyn RandomFile>> {
        self.hook.pass();
        Ok(Arc::new(File {
            inner: self.inner.open(path, mode)?,
            hook: Arc::clone(&self.hook),
        }))
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn create(&self, _: &Path, _: CreateOptions) -> io::Result<Box<dyn WriteFile>> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_file(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn FileLock>> {
        refused()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }
}
