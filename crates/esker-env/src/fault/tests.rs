//! Each fault does what it says, on the call it is meant for, and on no other.

use std::io::ErrorKind;

use super::*;
use crate::IoPriority;
use crate::mem::{CrashMode, MemFs};

fn faulty() -> (FaultFs, MemFs) {
    let mem = MemFs::new();
    (FaultFs::new(Arc::new(mem.clone())), mem)
}

fn create(fs: &FaultFs, name: &str) -> Box<dyn WriteFile> {
    fs.create(Path::new(name), CreateOptions::default()).unwrap()
}

#[test]
fn the_nth_matching_call_fails_once() {
    let (fs, _) = faulty();
    fs.add(Rule::new(Op::Append, Fault::Eio).nth(2).on_path(".wal"));
    let (mut wal, mut sst) = (create(&fs, "1.wal"), create(&fs, "2.sst"));
    for _ in 0..3 {
        sst.append(b"x").unwrap();
    }
    wal.append(b"a").unwrap();
    assert_eq!(wal.append(b"b").unwrap_err().raw_os_error(), Some(5));
    wal.append(b"c").unwrap();
    assert_eq!(fs.read_all(Path::new("1.wal")).unwrap(), b"ac");
    assert_eq!((fs.calls(Op::Append), fs.injected()), (6, 1));
}

#[test]
fn a_sticky_rule_fails_until_it_is_cleared_and_only_while_armed() {
    let (fs, _) = faulty();
    fs.add(Rule::new(Op::Create, Fault::Enospc).sticky());
    let full = |fs: &FaultFs| {
        let result = fs.create(Path::new("f"), CreateOptions::default());
        result.is_err_and(|error| error.kind() == ErrorKind::StorageFull)
    };
    assert!(full(&fs) && full(&fs));
    fs.set_armed(false);
    assert!(!full(&fs));
    fs.set_armed(true);
    assert!(full(&fs));
    fs.clear();
    assert!(!full(&fs));
}

#[test]
fn a_short_write_leaves_half() {
    let (fs, _) = faulty();
    let mut file = create(&fs, "f");
    fs.add(Rule::new(Op::Append, Fault::ShortWrite));
    assert_eq!(
        file.append(b"12345678").unwrap_err().kind(),
        ErrorKind::StorageFull
    );
    assert_eq!(fs.read_all(Path::new("f")).unwrap(), b"1234");
}

#[test]
fn a_failed_sync_loses_what_was_not_synced_and_is_final() {
    for op in [Op::Sync, Op::Finish] {
        let (fs, mem) = faulty();
        let mut file = create(&fs, "f");
        fs.sync_dir(Path::new("")).unwrap();
        file.append(b"safe").unwrap();
        file.sync().unwrap();
        file.append(b" lost").unwrap();
        fs.add(Rule::new(op, Fault::FailedSync));
        let error = match op {
            Op::Sync => file.sync(),
            _ => file.finish(true),
        };
        assert_eq!(error.unwrap_err().raw_os_error(), Some(5));
        file.sync().unwrap_err();
        file.append(b"more").unwrap_err();
        file.finish(true).unwrap_err();
        assert_eq!(fs.read_all(Path::new("f")).unwrap(), b"safe");
        let crashed = mem.crash(CrashMode::DropUnsynced);
        assert_eq!(crashed.read_all(Path::new("f")).unwrap(), b"safe");
    }
}

#[test]
fn reads_come_short_or_with_a_flipped_bit() {
    let (fs, _) = faulty();
    create(&fs, "f").append(&[0; 100]).unwrap();
    let file = fs.open(Path::new("f"), IoMode::Buffered).unwrap();
    fs.add(Rule::new(Op::Read, Fault::ShortRead));
    let mut buf = [0; 100];
    assert_eq!(
        file.read_exact_at(0, &mut buf).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    fs.add(Rule::new(Op::Read, Fault::CorruptRead { bit: 17 }));
    file.read_exact_at(0, &mut buf).unwrap();
    assert_eq!(buf.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    assert_eq!(buf[2], 2);
    file.read_exact_at(0, &mut buf).unwrap();
    assert_eq!(buf, [0; 100]);
}

#[test]
fn every_kind_of_call_can_fail_and_is_counted() {
    let call = |fs: &FaultFs, op: Op| -> io::Result<()> {
        let (f, g, dir) = (Path::new("f"), Path::new("g"), Path::new(""));
        let options = CreateOptions::default();
        match op {
            Op::CreateDir => fs.create_dir_all(Path::new("d")),
            Op::List => fs.list(dir).map(drop),
            Op::Stat => fs.exists(f).map(drop),
            Op::Open => fs.open(f, IoMode::Buffered).map(drop),
            Op::Create => fs.create(f, options).map(drop),
            Op::Rename => fs.rename(f, g),
            Op::Remove => fs.remove(f),
            Op::HardLink => fs.hard_link(f, g),
            Op::SyncDir => fs.sync_dir(dir),
            Op::Lock => fs.lock(Path::new("l")).map(drop),
            Op::FreeBytes => fs.free_bytes(dir).map(drop),
            Op::Read => fs.open(f, IoMode::Buffered)?.read_at(0, &mut [0]).map(drop),
            Op::ReadMany => {
                let file = fs.open(f, IoMode::Buffered)?;
                let mut buf = [0];
                let mut reads = [BatchRead::new(&*file, 0, &mut buf)];
                fs.read_many(&mut reads, IoPriority::Foreground);
                let [read] = reads;
                read.result.map(drop)
            }
            Op::Append => fs.create(f, options)?.append(b"x"),
            Op::Flush => fs.create(f, options)?.flush(),
            Op::Sync => fs.create(f, options)?.sync(),
            Op::Rewind => fs.create(f, options)?.rewind(),
            Op::Finish => fs.create(f, options)?.finish(true),
        }
    };
    for op in Op::ALL {
        let (fs, _) = faulty();
        create(&fs, "f").append(b"content").unwrap();
        fs.add(Rule::new(op, Fault::Eio));
        let before = fs.calls(op);
        assert_eq!(call(&fs, op).unwrap_err().raw_os_error(), Some(5), "{op:?}");
        call(&fs, op).unwrap_or_else(|error| panic!("{op:?} still fails: {error}"));
        assert_eq!(fs.calls(op), before + 2, "{op:?}");
    }
}

#[test]
fn rules_see_each_read_of_a_batch() {
    let (fs, _) = faulty();
    for name in ["1.sst", "2.sst"] {
        create(&fs, name).append(b"0123456789").unwrap();
    }
    let files = ["1.sst", "2.sst"].map(|name| fs.open(Path::new(name), IoMode::Buffered).unwrap());
    fs.add(Rule::new(Op::Read, Fault::Eio).nth(2).on_path("2.sst"));
    fs.add(Rule::new(Op::Read, Fault::ShortRead).nth(2).on_path("1.sst"));
    let mut buffers = [[0_u8; 4]; 5];
    let mut reads: Vec<BatchRead<'_>> = Vec::new();
    for (i, buf) in buffers.iter_mut().enumerate() {
        reads.push(BatchRead::new(&*files[i % 2], 2 * i as u64, buf));
    }
    fs.read_many(&mut reads, IoPriority::Foreground);
    let counts: Vec<Option<usize>> = reads
        .iter()
        .map(|read| read.result.as_ref().ok().copied())
        .collect();
    assert_eq!(counts, [Some(4), Some(4), Some(2), None, Some(2)]);
    assert_eq!((&buffers[1], &buffers[4][..2]), (b"2345", &b"89"[..]));
    assert_eq!(
        (fs.calls(Op::ReadMany), fs.calls(Op::Read), fs.injected()),
        (1, 5, 2)
    );
}
