//! Seeds of the fuzz corpora: made here, compared with what is checked in (`ESKER_WRITE_SEEDS=1` writes them), and
//! all inputs of a corpus, those that fuzzers found included, run again without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::batch::{RawBatch, StepKind, fuzz_decode};
use esker::blob::{BlobPointer, BlobWriter, FUZZ_IDS, fuzz_file};
use esker::key::{ValueKind, internal_key};
use esker::sstable::{
    BlockBuilder, TableOptions, TableWriter, fuzz_block, fuzz_compression, fuzz_filter, fuzz_table,
};
use esker::version::manifest::{ManifestWriter, fuzz_manifest};
use esker::version::{
    BlobFile, BlobOrigin, BlobRef, ColumnFamilyRecord, FileMeta, Origin as TableOrigin, VersionEdit,
    VersionState, decode_family, encode_family, fuzz_edit, fuzz_family,
};
use esker::wal::{Origin, SegmentId, WalWriter, fuzz_read};
use esker::{ColumnFamilyOptions, Compression, PrefixExtractor, fuzz_options_text};
use esker_env::{CreateOptions, Env, WriteFile};

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target)
}

/// Compares the seeds with the corpus (or writes them), and runs the property on every input of the corpus.
fn check(target: &str, seeds: &Seeds, property: impl Fn(&[u8])) {
    let folder = corpus(target);
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("ESKER_WRITE_SEEDS").is_some() {
            fs::create_dir_all(&folder).expect("a folder for the corpus");
            fs::write(&path, bytes).expect("a seed");
        }
        let found = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(
            &found == bytes,
            "{} is not what the code makes; if that is on purpose, ESKER_WRITE_SEEDS=1 writes it anew",
            path.display()
        );
    }
    for entry in fs::read_dir(folder).expect("a corpus") {
        property(&fs::read(entry.expect("an input").path()).expect("an input"));
    }
}

/// The bytes of a file that `write` writes.
fn file(write: impl FnOnce(Box<dyn WriteFile>)) -> Vec<u8> {
    let (env, _) = Env::simulated(1);
    let path = Path::new("/file");
    write(env.fs.create(path, CreateOptions::default()).expect("a file"));
    env.fs.read_all(path).expect("the file")
}

/// The bytes with one in front that tells the target whether to mend their checksums.
fn flagged(mend: bool, bytes: &[u8]) -> Vec<u8> {
    [&[u8::from(mend)], bytes].concat()
}

fn batch_seeds() -> Seeds {
    let mut every_kind = RawBatch::default();
    every_kind.set_sequence(1 << 40);
    for (family, kind, key, value) in [
        (0, ValueKind::Put, &b"key"[..], &b"value"[..]),
        (7, ValueKind::Delete, b"gone", b""),
        (300, ValueKind::Merge, b"sum", b"\x01\0\0\0\0\0\0\0"),
        (0, ValueKind::SingleDelete, b"once", b""),
        (u32::MAX, ValueKind::RangeDelete, b"a", b"z"),
        (0, ValueKind::BlobPointer, b"", b"pointer"),
    ] {
        every_kind
            .push(family, kind, key, value)
            .expect("within the limits");
    }
    let whole = every_kind.as_bytes().to_vec();
    let mut miscounted = whole.clone();
    miscounted[8] += 1;
    let mut prepare = every_kind.clone();
    prepare.make_step(StepKind::Prepare, b"xid").expect("a name");
    let mut roll_back = RawBatch::default();
    roll_back.make_step(StepKind::RollBack, b"xid").expect("a name");
    vec![
        ("empty", RawBatch::default().as_bytes().to_vec()),
        ("cut", whole[..whole.len() - 3].to_vec()),
        ("miscounted", miscounted),
        ("every_kind", whole),
        ("prepare", prepare.as_bytes().to_vec()),
        ("roll_back", roll_back.as_bytes().to_vec()),
    ]
}

#[test]
fn batches() {
    check("batch_decode", &batch_seeds(), fuzz_decode);
    let decodes = |bytes: &[u8]| {
        RawBatch::from_bytes(bytes.to_vec()).is_ok_and(|batch| batch.iter().all(|entry| entry.is_ok()))
    };
    let verdicts: Vec<_> = batch_seeds()
        .iter()
        .map(|(name, bytes)| (*name, decodes(bytes)))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("empty", true),
            ("cut", false),
            ("miscounted", false),
            ("every_kind", true),
            ("prepare", true),
            ("roll_back", true)
        ]
    );
}

/// An export of a table that points into a blob file, and of nothing.
#[test]
fn exported_families() {
    let make = |tables: bool| {
        let origin = TableOrigin {
            database_id: 5,
            sequence_shift: 3,
        };
        let table = FileMeta {
            number: 4,
            size_bytes: 1000,
            smallest: internal_key(b"a", 7, ValueKind::Put),
            largest: internal_key(b"b", 7, ValueKind::BlobPointer),
            sequence_min: 7,
            sequence_max: 7,
            entries: 2,
            blobs: vec![BlobRef {
                file: 2,
                records: 1,
                bytes: 100,
            }],
            origin: Some(origin),
            ..FileMeta::default()
        };
        let blob = BlobFile {
            origin: Some(BlobOrigin {
                database_id: 5,
                number: 2,
            }),
            ..BlobFile::new(3, 1100, 10, 1000)
        };
        let mut edit = VersionEdit {
            create: Some(ColumnFamilyRecord {
                name: "users".to_owned(),
                comparator: "esker.bytewise".to_owned(),
                ..ColumnFamilyRecord::default()
            }),
            last_sequence: Some(9),
            ..VersionEdit::default()
        };
        if tables {
            edit.added_blobs.push(Arc::new(blob));
            edit.add(6, Arc::new(table));
        }
        encode_family(&edit)
    };
    let (whole, empty) = (make(true), make(false));
    let mut flipped = whole.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let seeds = vec![
        ("cut", flagged(false, &whole[..whole.len() - 2])),
        ("empty", flagged(true, &empty)),
        ("mended", flagged(true, &flipped)),
        ("whole", flagged(false, &whole)),
    ];
    check("family_file", &seeds, fuzz_family);
    let reads = [&whole, &empty, &flipped].map(|bytes| decode_family(bytes).is_ok());
    assert_eq!(reads, [true, true, false]);
}

#[test]
fn wal_segments() {
    let segment = |origin, finish: bool| {
        file(|file| {
            let id = SegmentId {
                db_id: 0x1122_3344_5566_7788,
                number: 7,
            };
            let mut writer = WalWriter::new(file, Path::new("000007.wal"), id, origin).expect("a segment");
            writer.append(b"first").expect("appended");
            writer
                .append_group(&[b"", &[7; 40_000], b"last"])
                .expect("appended");
            if finish {
                writer.finish(true).expect("finished");
            } else {
                writer.sync().expect("synced");
            }
        })
    };
    let finished = segment(Origin::Fresh, true);
    let open = segment(Origin::Recycled, false);
    let mut flipped = open.clone();
    flipped[80] ^= 1;
    let seeds = vec![
        ("header", finished[..64].to_vec()),
        ("torn", open[..open.len() - 2].to_vec()),
        ("flipped", flipped),
        ("finished", finished),
    ];
    check("wal_read", &seeds, |bytes| {
        fuzz_read(bytes);
    });
    let records: Vec<_> = seeds
        .iter()
        .map(|(name, bytes)| (*name, fuzz_read(bytes)))
        .collect();
    assert_eq!(
        records,
        [("header", 0), ("torn", 3), ("flipped", 3), ("finished", 4)]
    );
}

#[test]
fn blocks() {
    let block = |keys: &[&str], value: &[u8], bytewise| {
        let (mut builder, mut out) = (BlockBuilder::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            builder.add(
                &mut out,
                &internal_key(key.as_bytes(), 9 - i as u64, ValueKind::Put),
                value,
            );
        }
        builder.finish(&mut out, bytewise);
        out
    };
    let seeds = vec![
        ("empty", block(&[], b"", true)),
        ("prefix", block(&["user1", "user11", "user2"], b"value", true)),
        ("versions", block(&["a", "a", "a"], b"", true)),
        ("custom_order", block(&["z", "m", "a"], b"v", false)),
        ("wide", block(&["a", "b"], &[b'x'; 33_000], true)),
    ];
    check("sstable_block", &seeds, fuzz_block);
}

#[test]
fn compressed_blocks() {
    let text = b"the same words, the same words, the same words and then some others";
    let seeds = (0..5)
        .zip(["none", "snappy", "zlib", "lz4", "zstd"])
        .map(|(kind, name)| (name, [&[kind][..], text].concat()))
        .collect();
    check("sstable_compression", &seeds, fuzz_compression);
}

#[test]
fn filters() {
    let mut filter = Vec::new();
    esker::sstable::build_filter(&[1 << 40, 2 << 40, 3 << 40], 10, &mut filter);
    let seeds = vec![
        ("filter", filter),
        ("keys", b"onetwothrfoufivsixsev".to_vec()),
        ("tail", vec![0; 5]),
    ];
    check("sstable_filter", &seeds, fuzz_filter);
}

fn blob_file(compression: Compression) -> Vec<u8> {
    file(|file| {
        let path = Path::new("000022.blob");
        let mut writer = BlobWriter::new(file, path, FUZZ_IDS.0, FUZZ_IDS.1, compression).expect("empty");
        for len in [0, 300, 40] {
            writer.add(&vec![b'v'; len]).expect("added");
        }
        writer.finish(true).expect("written");
    })
}

#[test]
fn blob_files() {
    let plain = blob_file(Compression::None);
    let mut pointer = Vec::new();
    BlobPointer {
        file: 300,
        offset: 1 << 40,
        bytes: 809,
    }
    .encode_into(&mut pointer);
    let mut flipped = plain.clone();
    flipped[60] ^= 1;
    let seeds = vec![
        ("plain", flagged(false, &plain)),
        ("lz4", flagged(true, &blob_file(Compression::Lz4))),
        ("zstd", flagged(true, &blob_file(Compression::Zstd))),
        ("cut", flagged(true, &plain[..plain.len() - 5])),
        ("flipped", flagged(false, &flipped)),
        ("mended", flagged(true, &flipped)),
        ("pointer", flagged(false, &pointer)),
    ];
    let read = |bytes: &[u8]| {
        bytes
            .split_first()
            .map_or(0, |(first, rest)| fuzz_file(rest, first % 2 == 1))
    };
    check("blob", &seeds, |bytes| {
        read(bytes);
    });
    let records: Vec<_> = seeds.iter().map(|(name, bytes)| (*name, read(bytes))).collect();
    assert_eq!(
        records,
        [
            ("plain", 3),
            ("lz4", 3),
            ("zstd", 3),
            ("cut", 0),
            ("flipped", 1),
            ("mended", 3),
            ("pointer", 0)
        ]
    );
}

fn table(extractor: Option<PrefixExtractor>, partition_bytes: usize, tombstones: bool) -> Vec<u8> {
    file(|file| {
        let mut options = TableOptions::new(&ColumnFamilyOptions::default(), 0);
        options.compression = Compression::None;
        options.block_bytes = 128;
        options.prefix_extractor = extractor;
        options.index_partition_bytes = partition_bytes;
        options.filter_partition_bytes = partition_bytes;
        options.database_id = 11;
        options.file_number = 22;
        options.creation_unix_seconds = 33;
        let mut writer = TableWriter::new(file, Path::new("000022.sst"), options);
        for i in 0..20_u64 {
            let key = internal_key(format!("key{i:02}").as_bytes(), 100 - i, ValueKind::Put);
            writer.add(&key, &[b'v'; 20]).expect("in order");
        }
        if tombstones {
            writer.add_range_tombstone(b"key05", b"key10", 200);
            writer.add_range_tombstone(b"key07", b"zzz", 201);
        }
        writer.add_user_property(b"made", b"for the fuzzer");
        writer.finish(true).expect("written");
    })
}

#[test]
fn tables() {
    let plain = table(None, 32 << 10, false);
    let partitioned = table(Some(PrefixExtractor::Fixed(3)), 64, true);
    let seeds = vec![
        ("plain", flagged(false, &plain)),
        ("cut", flagged(true, &plain[..plain.len() - 5])),
        ("mended", flagged(true, &plain)),
        ("partitioned", flagged(true, &partitioned)),
    ];
    check("sstable_table", &seeds, |bytes| {
        if let Some((first, rest)) = bytes.split_first() {
            fuzz_table(rest, first % 2 == 1);
        }
    });
}

fn edits() -> Vec<VersionEdit> {
    let mut create = VersionEdit::of(3);
    create.create = Some(ColumnFamilyRecord {
        name: "users".to_owned(),
        comparator: "esker.bytewise".to_owned(),
        merge_operator: Some("esker.append".to_owned()),
        options: "levels=7;".to_owned(),
    });
    create.log_number = Some(9);
    let mut change = VersionEdit::of(3);
    change.next_file_number = Some(300);
    change.last_sequence = Some(1 << 40);
    change.next_column_family = Some(4);
    change.options = Some("levels=5;".to_owned());
    change.merge_operator = Some(String::new());
    change.add(
        0,
        Arc::new(FileMeta {
            number: 12,
            size_bytes: 4096,
            smallest: internal_key(b"a", 7, ValueKind::Put),
            largest: internal_key(b"m", 5, ValueKind::Delete),
            sequence_min: 5,
            sequence_max: 7,
            entries: 2,
            deletions: 1,
            created_unix_seconds: 1_700_000_000,
            raw_bytes: 40,
            ..FileMeta::default()
        }),
    );
    let mut leave = VersionEdit::of(3);
    leave.remove(0, 12);
    let mut drop = VersionEdit::of(3);
    drop.drop = true;
    vec![create, change, leave, drop]
}

#[test]
fn manifest_edits() {
    let encoded: Vec<Vec<u8>> = edits()
        .iter()
        .map(|edit| {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            bytes
        })
        .collect();
    let mut unknown = encoded[2].clone();
    unknown.extend_from_slice(b"\x21\x03odd");
    let seeds = ["create", "change", "leave", "drop"]
        .into_iter()
        .zip(encoded)
        .chain([("unknown_odd", unknown)])
        .collect();
    check("version_edit", &seeds, fuzz_edit);
}

/// A manifest with a snapshot, and the edits behind it. Its number is the one that the target expects.
fn manifest() -> Vec<u8> {
    const NUMBER: u64 = 3;
    let (env, _) = Env::simulated(1);
    let dir = Path::new("/db");
    env.fs.create_dir_all(dir).expect("a folder");
    let mut state = VersionState::new(1);
    state.next_file_number = NUMBER + 1;
    let mut default = VersionEdit::of(0);
    default.create = Some(ColumnFamilyRecord {
        name: "default".to_owned(),
        comparator: "esker.bytewise".to_owned(),
        ..ColumnFamilyRecord::default()
    });
    state.apply(&default).expect("a family");
    let mut writer = ManifestWriter::create(Arc::clone(&env.fs), dir, NUMBER, &state).expect("a manifest");
    for edit in edits() {
        writer.append(&[edit]).expect("appended");
    }
    env.fs
        .read_all(&dir.join("MANIFEST-000003"))
        .expect("the manifest")
}

#[test]
fn manifests() {
    let whole = manifest();
    // With checksums made right, only the records count, and of their lengths only the lowest byte.
    let records = flagged(true, &whole[44..]);
    let mut flipped = flagged(false, &whole);
    flipped[60] ^= 1;
    let seeds = vec![
        ("torn", flagged(false, &whole[..whole.len() - 1])),
        ("flipped", flipped),
        ("records", records),
        ("whole", flagged(false, &whole)),
    ];
    check("manifest", &seeds, |bytes| {
        if let Some((first, rest)) = bytes.split_first() {
            fuzz_manifest(rest, first % 2 == 1);
        }
    });
}

#[test]
fn options_as_text() {
    let seeds = vec![
        ("default", ColumnFamilyOptions::default().to_text().into_bytes()),
        (
            "changed",
            b"prefix_extractor=capped:9;compression_per_level=none,zstd;memtable_bytes=64MiB;".to_vec(),
        ),
        ("unknown", b"no_such_setting=1;".to_vec()),
    ];
    check("options_text", &seeds, |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            fuzz_options_text(text);
        }
    });
}
