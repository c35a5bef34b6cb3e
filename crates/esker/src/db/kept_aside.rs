//! WAL segments in which recovery found damage: kept under names of their own for whoever wants to look.
//!
//! Such a segment, and what was logged behind it, is no part of the database any more, and may be the only copy of
//! acknowledged writes. So:
//! 1. It gets its second name, `NNNNNN.wal.damaged`, before the manifest lets go of the first one: a crash at any
//!    moment leaves at least one.
//! 2. What this recovery kept aside stays, whatever it takes. What earlier ones kept stays for as long as all of it
//!    together is within the bound of the live log (`wal_bytes_max`); beyond, the oldest goes, by name in the report.
//! 3. `esker verify` and `esker stats` list what there is; the property `damaged-wal-bytes` counts it.

use std::io;
use std::path::{Path, PathBuf};

use esker_env::Fs;

use super::core::RecoveryReport;
use crate::error::{Error, Result};
use crate::version::FileKind;

/// Before the manifest lets go of `segments`: gives them their second names.
pub(super) fn name(fs: &dyn Fs, dir: &Path, segments: &[u64]) -> Result<()> {
    if segments.is_empty() {
        return Ok(());
    }
    for &number in segments {
        let (path, aside) = names(dir, number);
        match fs.hard_link(&path, &aside) {
            // An opening that came this far before did not come further.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Some file systems have no second names: `keep` renames.
            Err(error) => tracing::warn!(%error, path = %path.display(), "can't link a damaged WAL segment"),
            Ok(()) => {}
        }
    }
    fs.sync_dir(dir)
        .map_err(|error| Error::io("can't sync the database's folder", error).in_file(dir))
}

/// Once the manifest has let go of them: takes away their first names, also of those that a crash left with both
/// (their file must not be used again for another segment), and keeps what there is in all within `bytes_max`.
pub(super) fn keep(
    fs: &dyn Fs,
    dir: &Path,
    segments: &[u64],
    bytes_max: u64,
    report: &mut RecoveryReport,
) -> Result<()> {
    for &number in segments {
        let (path, aside) = names(dir, number);
        let exists = fs.exists(&aside).map_err(|error| failed(error, &aside))?;
        if !exists {
            fs.rename(&path, &aside).map_err(|error| failed(error, &path))?;
        }
        report.kept_aside.push(aside);
    }
    let all = list(fs, dir)?;
    for &(number, _) in &all {
        let path = FileKind::Wal(number).path(dir);
        match fs.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error, &path)),
            _ => {}
        }
    }
    let mut bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    let is_old = |(number, _): &&(u64, u64)| !segments.contains(number);
    for &(number, size_bytes) in all.iter().filter(is_old) {
        // Without a new one nothing is given up, so that looking does not change what there is to look at.
        if segments.is_empty() || bytes <= bytes_max {
            break;
        }
        let path = FileKind::DamagedWal(number).path(dir);
        tracing::warn!(path = %path.display(), "an old damaged WAL segment gives way to newer ones");
        fs.remove(&path)
            .map_err(|error| Error::io("can't remove an old damaged WAL segment", error).in_file(&path))?;
        bytes -= size_bytes;
        report.given_up.push(path);
    }
    Ok(())
}

/// Numbers and sizes in bytes of the segments kept aside, the oldest first.
pub(super) fn list(fs: &dyn Fs, dir: &Path) -> Result<Vec<(u64, u64)>> {
    let names = fs.list(dir);
    let names = names.map_err(|error| Error::io("can't list the folder", error).in_file(dir))?;
    let mut segments = Vec::new();
    for name in names {
        if let Some(kind @ FileKind::DamagedWal(number)) = FileKind::parse(&name) {
            match fs.file_len(&kind.path(dir)) {
                Ok(bytes) => segments.push((number, bytes)),
                // Whoever wanted to look may remove it at any time.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Error::io("can't stat a damaged WAL segment", error).in_file(&kind.path(dir)));
                }
            }
        }
    }
    segments.sort_unstable();
    Ok(segments)
}

fn names(dir: &Path, number: u64) -> (PathBuf, PathBuf) {
    (
        FileKind::Wal(number).path(dir),
        FileKind::DamagedWal(number).path(dir),
    )
}

fn failed(error: io::Error, path: &Path) -> Error {
    Error::io("can't keep a damaged WAL segment aside", error).in_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use esker_env::fault::{Fault, FaultFs, Op, Rule};
    use esker_env::mem::{CrashMode, MemFs};
    use esker_env::{CreateOptions, Env};

    use crate::db::{Db, Opener};
    use crate::options::Options;

    const DIR: &str = "/db";

    fn options(wal_bytes_max: u64) -> Options {
        Options {
            memory_budget_bytes: 4 << 20,
            wal_segment_bytes: 64 << 10,
            wal_bytes_max,
            wal_memory_bytes: 128 << 10,
            compaction_threads: 1,
            ..Options::default()
        }
    }

    fn open(fs: &Arc<dyn Fs>, wal_bytes_max: u64) -> Result<Db> {
        let env = Env {
            fs: Arc::clone(fs),
            ..Env::simulated(1).0
        };
        Opener::new(options(wal_bytes_max)).env(env).open(DIR)
    }

    /// What a crash leaves of a database whose log was written, synced and damaged.
    fn damaged(fs: &MemFs) -> MemFs {
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        let db = open(&shared, 0).unwrap();
        for i in 0..20_u32 {
            db.put(&i.to_be_bytes(), &[7; 1000]).unwrap();
        }
        db.sync_wal().unwrap();
        let left = fs.crash(CrashMode::KeepAll);
        let path = wals(&left).pop().unwrap();
        let mut bytes = left.read_all(&path).unwrap();
        bytes[5000] ^= 1;
        let mut file = left.create(&path, CreateOptions::default()).unwrap();
        file.append(&bytes).unwrap();
        file.finish(true).unwrap();
        left.sync_dir(Path::new(DIR)).unwrap();
        left.crash(CrashMode::DropUnsynced)
    }

    fn ending(fs: &MemFs, suffix: &str) -> Vec<PathBuf> {
        let mut names = fs.list(Path::new(DIR)).unwrap();
        names.retain(|name| name.ends_with(suffix));
        names.sort();
        names.iter().map(|name| Path::new(DIR).join(name)).collect()
    }

    fn wals(fs: &MemFs) -> Vec<PathBuf> {
        ending(fs, ".wal")
    }

    #[test]
    fn the_newest_are_kept_within_the_bound_and_the_last_one_beyond_it() {
        let mut fs = MemFs::new();
        for round in 0..4 {
            fs = damaged(&fs);
            let before = ending(&fs, ".damaged");
            assert_eq!(before.len(), usize::min(round, 2));
            let shared: Arc<dyn Fs> = Arc::new(fs.clone());
            // Room for two: each is of a bit more than 20 KiB.
            let db = open(&shared, 50 << 10).unwrap();
            let report = db.recovery_report().clone();
            let now = ending(&fs, ".damaged");
            assert_eq!(report.kept_aside, now[now.len() - 1..]);
            assert_eq!(report.given_up, &before[..usize::from(round > 1)]);
            let bytes: u64 = now.iter().map(|path| fs.file_len(path).unwrap()).sum();
            let property = db.property(&db.default_column_family(), "damaged-wal-bytes");
            assert_eq!(property.unwrap(), bytes.to_string());
            db.close().unwrap();
        }
        fs = damaged(&fs);
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        open(&shared, 1).unwrap().close().unwrap();
        assert_eq!(ending(&fs, ".damaged").len(), 1);
        let kept = ending(&fs, ".damaged");
        open(&shared, 1).unwrap().close().unwrap();
        assert_eq!(
            ending(&fs, ".damaged"),
            kept,
            "an opening without damage removes none"
        );
    }

    /// The segment was renamed once the manifest had let go of it; a crash between the two lost it.
    #[test]
    fn a_crash_at_any_step_leaves_the_damaged_segment() {
        let left = damaged(&MemFs::new());
        let bytes = left.read_all(&wals(&left)[0]).unwrap();
        let mut stop = 0;
        loop {
            let fs = left.crash(CrashMode::KeepAll);
            fs.stop_after(Some(stop));
            let shared: Arc<dyn Fs> = Arc::new(fs.clone());
            let opened = open(&shared, 0).is_ok();
            for mode in [
                CrashMode::KeepAll,
                CrashMode::DropUnsynced,
                CrashMode::Torn { seed: stop },
            ] {
                let after = fs.crash(mode);
                let shared: Arc<dyn Fs> = Arc::new(after.clone());
                let db = open(&shared, 0).unwrap();
                // Segments that are used again must not be the same file.
                for i in 0..200_u32 {
                    db.put(&i.to_be_bytes(), &[9; 1000]).unwrap();
                }
                db.flush().unwrap();
                db.close().unwrap();
                let kept = ending(&after, ".damaged");
                let sizes: Vec<_> = kept.iter().map(|path| after.file_len(path).unwrap()).collect();
                assert_eq!(
                    kept.len(),
                    1,
                    "stopped after {stop}, {mode:?}: {kept:?} of {sizes:?} bytes"
                );
                assert!(after.read_all(&kept[0]).unwrap() == bytes, "{stop}, {mode:?}");
            }
            if opened {
                return;
            }
            stop += 1;
        }
    }

    #[test]
    fn a_file_system_without_second_names_gets_a_rename() {
        let left = damaged(&MemFs::new());
        let faults = FaultFs::new(Arc::new(left.clone()));
        faults.add(Rule::new(Op::HardLink, Fault::Eio));
        let shared: Arc<dyn Fs> = Arc::new(faults.clone());
        open(&shared, 0).unwrap().close().unwrap();
        assert_eq!((faults.injected(), ending(&left, ".damaged").len()), (1, 1));
    }
}
