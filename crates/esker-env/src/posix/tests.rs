//! The real file system against a byte vector, buffered and direct.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::{CreateOptions, Fs, IoMode};

/// A folder beside the build's output: on a disk, where direct I/O works, rather than in a RAM file system.
fn folder() -> tempfile::TempDir {
    let beside = std::env::current_exe().unwrap();
    tempfile::tempdir_in(beside.parent().unwrap()).unwrap()
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (state >> 33) as u8
        })
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Flush,
    Sync,
    ReadBack,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop_oneof![0_usize..200, 0_usize..20_000, Just(4096), Just(8192)].prop_map(Step::Append),
        1 => Just(Step::Flush),
        1 => Just(Step::Sync),
        1 => Just(Step::ReadBack),
    ]
}

fn run(mode: IoMode, rewound: bool, preallocate_bytes: u64, buffer_bytes: usize, steps: &[Step]) {
    let dir = folder();
    let fs = PosixFs::new();
    let (old, path) = (dir.path().join("old"), dir.path().join("new"));
    let options = CreateOptions {
        mode,
        preallocate_bytes,
        lock_in_memory: true,
        buffer_bytes,
    };
    let mut file = if rewound {
        let mut file = fs.create(&old, options).unwrap();
        file.append(&noise(50_000, 7)).unwrap();
        fs.rename(&old, &path).unwrap();
        file.rewind().unwrap();
        file
    } else {
        fs.create(&path, options).unwrap()
    };
    let mut expected = Vec::new();
    let mut handed = 0;
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::Append(len) => {
                let data = noise(*len, i as u64);
                file.append(&data).unwrap();
                expected.extend_from_slice(&data);
            }
            Step::Flush => {
                file.flush().unwrap();
                handed = match mode {
                    IoMode::Buffered => expected.len(),
                    IoMode::Direct => handed.max(expected.len() / 4096 * 4096),
                };
            }
            Step::Sync => {
                file.sync().unwrap();
                handed = expected.len();
            }
            Step::ReadBack => {
                let seen = std::fs::read(&path).unwrap();
                assert_eq!(&seen[..handed], &expected[..handed]);
            }
        }
        assert_eq!(file.len(), expected.len() as u64);
    }
    file.finish(true).unwrap();
    drop(file);
    assert_eq!(std::fs::read(&path).unwrap(), expected);
    assert_eq!(fs.file_len(&path).unwrap(), expected.len() as u64);

    for read_mode in [IoMode::Buffered, IoMode::Direct] {
        let file = fs.open(&path, read_mode).unwrap();
        assert_eq!(file.len().unwrap(), expected.len() as u64);
        for (offset, len) in [
            (0, expected.len()),
            (0, 4096),
            (1, 4095),
            (4095, 2),
            (expected.len() / 2, 5000),
            (expected.len() / 3, 1),
            (expected.len().saturating_sub(10), 100),
            (expected.len(), 10),
            (expected.len() + 5000, 10),
            (0, 0),
        ] {
            let mut buf = vec![0xaa; len];
            let n = file.read_at(offset as u64, &mut buf).unwrap();
            let start = offset.min(expected.len());
            let end = (offset + len).min(expected.len()).max(start);
            assert_eq!(&buf[..n], &expected[start..end], "{read_mode:?} {offset}+{len}");
            assert!(buf[n..].iter().all(|&b| b == 0xaa || read_mode == IoMode::Direct));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn files_hold_what_was_appended(
        direct: bool, rewound: bool,
        preallocate_bytes in prop_oneof![Just(0_u64), Just(100_000)],
        buffer_bytes in prop_oneof![Just(0_usize), 1_usize..9000, Just(4096)],
        steps in prop::collection::vec(step(), 0..20),
    ) {
        let mode = if direct { IoMode::Direct } else { IoMode::Buffered };
        run(mode, rewound, preallocate_bytes, buffer_bytes, &steps);
    }
}

#[test]
fn a_rewound_file_is_appended_to_in_memory_and_goes_on_behind_it() {
    let dir = folder();
    let fs = PosixFs::new();
    let path = dir.path().join("log");
    let options = CreateOptions {
        preallocate_bytes: 100_000,
        lock_in_memory: true,
        ..CreateOptions::default()
    };
    let mut file = fs.create(&path, options).unwrap();
    file.append(&noise(30_000, 1)).unwrap();
    assert_eq!(file.locked_bytes(), 0, "not before it is used again");
    for round in 2..5 {
        file.rewind().unwrap();
        // Where the limit on locked memory is low, all of it works through system calls.
        assert!([0, 100_000].contains(&file.locked_bytes()));
        let data = noise(150_000, round);
        for chunk in data.chunks(833) {
            file.append(chunk).unwrap();
        }
        assert_eq!(fs.read_all(&path).unwrap()[..150_000], data, "before any sync");
        file.sync().unwrap();
        assert_eq!(file.len(), 150_000);
    }
    file.rewind().unwrap();
    file.append(b"short").unwrap();
    file.finish(true).unwrap();
    assert_eq!(fs.read_all(&path).unwrap(), b"short");
    assert_eq!(file.locked_bytes(), 0);
}

#[test]
fn long_direct_files_come_back_in_pieces_of_any_size() {
    let dir = folder();
    let fs = PosixFs::new();
    let path = dir.path().join("long");
    let data = noise((5 << 20) + 777, 3);
    let direct = CreateOptions {
        mode: IoMode::Direct,
        ..CreateOptions::default()
    };
    let mut file = fs.create(&path, direct).unwrap();
    for piece in data.chunks(99_991) {
        file.append(piece).unwrap();
    }
    file.finish(false).unwrap();
    let file = fs.open(&path, IoMode::Direct).unwrap();
    for (offset, len) in [(0, data.len()), (123, data.len() - 123), (4096, (3 << 20) + 1)] {
        let mut buf = vec![0; len];
        file.read_exact_at(offset as u64, &mut buf).unwrap();
        assert!(buf == data[offset..offset + len], "{offset}+{len}");
    }
    let error = file
        .read_exact_at(data.len() as u64 - 1, &mut [0; 2])
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn an_aligned_direct_read_stops_at_the_end() {
    let dir = folder();
    let path = dir.path().join("f");
    std::fs::write(&path, noise(10_000, 1)).unwrap();
    let file = PosixFs::new().open(&path, IoMode::Direct).unwrap();
    let mut aligned = super::aligned::AlignedBuffer::new(16_384);
    assert_eq!(file.read_at(0, &mut aligned).unwrap(), 10_000);
    assert_eq!(&aligned[..10_000], noise(10_000, 1));
    assert_eq!(file.read_at(8192, &mut aligned).unwrap(), 1808);
}

#[test]
fn direct_io_is_direct_where_the_disk_allows_it() {
    let dir = folder();
    let path = dir.path().join("f");
    std::fs::write(&path, b"x").unwrap();
    let mut how = std::fs::OpenOptions::new();
    let opened = super::system::open_direct(how.read(true), &path).unwrap();
    let shown = format!("{:?}", PosixFs::new().open(&path, IoMode::Direct).unwrap());
    assert_eq!(opened.is_some(), shown.contains("Direct"), "{shown}");
}

#[test]
fn what_refuses_direct_io_is_opened_buffered() {
    // procfs refuses O_DIRECT; a RAM file system may, depending on the kernel. Both must work.
    let fs = PosixFs::new();
    let proc = Path::new("/proc/self/cmdline");
    if proc.exists() {
        let mut byte = [0];
        let file = fs.open(proc, IoMode::Direct).unwrap();
        assert_eq!(file.read_at(0, &mut byte).unwrap(), 1);
        assert!(format!("{file:?}").contains("Buffered"));
    }
    let shm = Path::new("/dev/shm");
    if let Ok(dir) = tempfile::tempdir_in(shm) {
        let path = dir.path().join("f");
        let direct = CreateOptions {
            mode: IoMode::Direct,
            preallocate_bytes: 1 << 16,
            buffer_bytes: 0,
            ..CreateOptions::default()
        };
        let mut file = fs.create(&path, direct).unwrap();
        file.append(b"hello").unwrap();
        file.finish(true).unwrap();
        assert_eq!(fs.read_all(&path).unwrap(), b"hello");
    }
}

#[test]
fn a_dropped_direct_file_writes_nothing_later() {
    let dir = folder();
    let fs = PosixFs::new();
    let path = dir.path().join("f");
    let direct = CreateOptions {
        mode: IoMode::Direct,
        preallocate_bytes: 0,
        buffer_bytes: 65_536,
        ..CreateOptions::default()
    };
    for round in 0..20 {
        let mut file = fs.create(&path, direct).unwrap();
        file.append(&vec![1; 65_536 * 3]).unwrap();
        drop(file);
        std::fs::write(&path, [2; 100_000]).unwrap();
        assert!(
            std::fs::read(&path).unwrap().iter().all(|&b| b == 2),
            "round {round}"
        );
    }
}

#[test]
fn preallocation_reserves_and_finish_gives_back() {
    use std::os::unix::fs::MetadataExt;
    let dir = folder();
    let fs = PosixFs::new();
    for mode in [IoMode::Buffered, IoMode::Direct] {
        let path = dir.path().join("f");
        let options = CreateOptions {
            mode,
            preallocate_bytes: 1 << 20,
            buffer_bytes: 0,
            ..CreateOptions::default()
        };
        let mut file = fs.create(&path, options).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        assert_eq!(meta.len(), 0);
        let reserved = meta.blocks() * 512;
        file.append(b"x").unwrap();
        file.finish(true).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        assert_eq!(meta.len(), 1);
        if cfg!(target_os = "linux") && reserved > 0 {
            assert!(reserved >= 1 << 20);
            assert!(meta.blocks() * 512 < 1 << 20);
        }
    }
}

#[test]
fn a_lock_excludes_until_it_is_dropped() {
    let dir = folder();
    let fs = PosixFs::new();
    let path = dir.path().join("LOCK");
    let lock = fs.lock(&path).unwrap();
    let other_spelling: PathBuf = dir.path().join(".").join("LOCK");
    for taken in [&path, &other_spelling] {
        let error = fs.lock(taken).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    // As another process would see it: through a lock of the system, not the set of this process.
    let file = std::fs::File::open(&path).unwrap();
    assert!(matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    drop(lock);
    file.try_lock().unwrap();
    assert_eq!(fs.lock(&path).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(file);
    drop(fs.lock(&path).unwrap());
    assert_eq!(
        fs.lock(&dir.path().join("missing/LOCK")).unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
}

#[test]
fn names_come_and_go() {
    let dir = folder();
    let fs = PosixFs::new();
    let sub = dir.path().join("a/b");
    fs.create_dir_all(&sub).unwrap();
    fs.create_dir_all(&sub).unwrap();
    let (one, two, three) = (sub.join("1"), sub.join("2"), sub.join("3"));
    fs.create(&one, CreateOptions::default())
        .unwrap()
        .append(b"one")
        .unwrap();
    fs.rename(&one, &two).unwrap();
    fs.hard_link(&two, &three).unwrap();
    fs.remove(&two).unwrap();
    fs.sync_dir(&sub).unwrap();
    assert_eq!(fs.list(&sub).unwrap(), ["3"]);
    assert!(fs.exists(&three).unwrap() && !fs.exists(&two).unwrap());
    assert_eq!(fs.read_all(&three).unwrap(), b"one");
    assert!(fs.free_bytes(&sub).unwrap() > 0);
    let error = fs.open(&one, IoMode::Direct).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(2));
}

#[test]
fn an_error_of_the_device_keeps_its_code_and_is_final_for_direct_files() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let fs = PosixFs::new();
    let mut file = fs.create(full, CreateOptions::default()).unwrap();
    let error = file.append(b"x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(error.raw_os_error(), Some(28));
    assert_eq!(file.len(), 0, "a failed append can be tried again");
}

#[test]
fn an_error_under_way_reaches_the_caller_and_is_final() {
    use super::direct_write::DirectWriteFile;
    use crate::WriteFile;
    let dir = folder();
    let path = dir.path().join("f");
    std::fs::write(&path, b"old").unwrap();
    // Not open for writing, so that every write fails.
    let file = std::fs::File::open(&path).unwrap();
    let mut file = DirectWriteFile::new(file, 4096, false, Arc::default(), Arc::default());
    let _ = file.append(&[1; 8192]);
    let code = file.flush().unwrap_err().raw_os_error();
    assert_eq!(code, Some(9));
    for result in [file.append(b"x"), file.sync(), file.finish(true)] {
        assert_eq!(result.unwrap_err().raw_os_error(), code);
    }
    drop(file);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[test]
fn finish_cuts_what_a_failed_append_left() {
    use super::buffered::BufferedWriteFile;
    use crate::WriteFile;
    let dir = folder();
    let path = dir.path().join("f");
    let file = std::fs::File::create(&path).unwrap();
    let mut file = BufferedWriteFile::new(file, 0, false);
    file.append(b"whole").unwrap();
    file.written(4, Err(std::io::Error::from_raw_os_error(28)))
        .unwrap_err();
    std::fs::write(&path, b"whole and a part").unwrap();
    file.finish(false).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"whole");
}
