//! Loading an engine's library at run time.

use std::path::{Path, PathBuf};

use esker_lab_core::{Error, Result, error::Kind};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

/// A loaded library. It is never unloaded: engines leave threads and thread-local values behind that would jump
/// into nothing.
pub(crate) struct Dylib {
    library: std::mem::ManuallyDrop<Library>,
    path: PathBuf,
    made_by: &'static str,
}

impl Dylib {
    /// Loads `path`, after those of its neighbours that `first` accepts by file name (libraries that it needs and
    /// that the system's search would not find).
    /// `made_by` is the command that makes the library, for whoever misses it.
    pub(crate) fn open(path: &Path, made_by: &'static str, first: &dyn Fn(&str) -> bool) -> Result<Dylib> {
        if !path.exists() {
            return Err(missing(path, "no such file", made_by));
        }
        let real = path.canonicalize().map_err(|e| Error::io(path.display(), &e))?;
        for entry in real
            .parent()
            .into_iter()
            .filter_map(|p| p.read_dir().ok())
            .flatten()
            .flatten()
        {
            if first(&entry.file_name().to_string_lossy()) && entry.path() != real {
                // SAFETY: loading runs the library's initialisers. The neighbours are the libraries that the one
                // that the user named was built with.
                if let Ok(neighbour) = unsafe { Library::open(Some(entry.path()), RTLD_NOW | RTLD_GLOBAL) } {
                    std::mem::forget(neighbour);
                }
            }
        }
        // SAFETY: as above; the user named this library to be run.
        let library = unsafe { Library::open(Some(&real), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|e| missing(path, &e.to_string(), made_by))?;
        Ok(Dylib {
            library: std::mem::ManuallyDrop::new(library),
            path: path.to_owned(),
            made_by,
        })
    }

    /// The function `name`, as `F`.
    ///
    /// # Safety
    /// `F` is the function pointer type that the library's header declares for `name`.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Result<F> {
        // SAFETY: the caller's promise; the library is never unloaded, so the copied pointer stays valid.
        unsafe { self.library.get::<F>(name.as_bytes()) }
            .map(|symbol| *symbol)
            .map_err(|_| missing(&self.path, &format!("it does not export {name}"), self.made_by))
    }
}

fn missing(path: &Path, why: &str, made_by: &str) -> Error {
    Error::new(Kind::Missing, format!("{}: {why}; {made_by}", path.display()))
}

/// How to get the peers' libraries.
pub(crate) const PEERS: &str = "`make peers` fetches it";

/// How to get the drop-in libraries.
pub(crate) const DROPIN: &str = "`make dropin` builds it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_says_how_to_get_it() {
        let error = Dylib::open(Path::new("peers/nothing.so"), PEERS, &|_| false)
            .err()
            .unwrap();
        assert_eq!(error.kind(), Kind::Missing);
        assert!(error.to_string().contains("make peers"), "{error}");
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text.so");
        std::fs::write(&path, "not a library").unwrap();
        assert_eq!(
            Dylib::open(&path, PEERS, &|_| false).err().unwrap().kind(),
            Kind::Missing
        );
    }
}
