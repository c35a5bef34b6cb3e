//! Seeds of the fuzz corpora: made here, compared with what is checked in (`ESKER_WRITE_SEEDS=1` writes them), and
//! all inputs of a corpus, those that fuzzers found included, decoded again without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use esker::batch::RawBatch;
use esker::key::ValueKind;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target)
}

/// Compares the seeds with the corpus, or writes them.
fn check_seeds(target: &str, seeds: &[(&str, Vec<u8>)]) {
    let folder = corpus(target);
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("ESKER_WRITE_SEEDS").is_some() {
            fs::create_dir_all(&folder).expect("a folder for the corpus");
            fs::write(&path, bytes).expect("a seed");
        }
        let found = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(&found, bytes, "{} is not what the code makes", path.display());
    }
}

fn inputs(target: &str) -> Vec<Vec<u8>> {
    fs::read_dir(corpus(target))
        .expect("a corpus")
        .map(|entry| fs::read(entry.expect("an input").path()).expect("an input"))
        .collect()
}

fn batch_seeds() -> Vec<(&'static str, Vec<u8>)> {
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
    vec![
        ("empty", RawBatch::default().as_bytes().to_vec()),
        ("cut", whole[..whole.len() - 3].to_vec()),
        ("miscounted", miscounted),
        ("every_kind", whole),
    ]
}

#[test]
fn batches() {
    check_seeds("batch_decode", &batch_seeds());
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
            ("every_kind", true)
        ]
    );
    for input in inputs("batch_decode") {
        decodes(&input);
    }
}
