//! What a manifest promises: acknowledged edits survive every crash, groups are whole, damage is found and named.

use std::path::Path;
use std::sync::Arc;

use esker_env::Fs;
use proptest::prelude::*;

use super::test_fs::TestFs;
use super::*;
use crate::ErrorKind;
use crate::key::{ValueKind, internal_key};
use crate::version::{ColumnFamilyRecord, FileKind, FileMeta, VersionState};

const DB: &str = "/db";

fn dir() -> &'static Path {
    Path::new(DB)
}

fn manifest_path(number: u64) -> std::path::PathBuf {
    FileKind::Manifest(number).path(dir())
}

fn file(number: u64) -> Arc<FileMeta> {
    Arc::new(FileMeta {
        number,
        size_bytes: number * 1000,
        smallest: internal_key(&number.to_be_bytes(), 1, ValueKind::Put),
        largest: internal_key(&number.to_be_bytes(), 0, ValueKind::Put),
        ..FileMeta::default()
    })
}

fn initial() -> VersionState {
    let mut state = VersionState::new(0x1234_5678_9abc_def0_1122_3344_5566_7788);
    state.next_file_number = 5;
    for (id, name) in [(0, "default"), (1, "users")] {
        let create = VersionEdit {
            create: Some(ColumnFamilyRecord {
                name: name.to_owned(),
                comparator: "esker.bytewise".to_owned(),
                merge_operator: (id == 1).then(|| "append".to_owned()),
                options: "block_bytes=4096".to_owned(),
            }),
            ..VersionEdit::of(id)
        };
        state.apply(&create).expect("new family");
    }
    state
}

/// Group `n`: a table in both families and the last sequence, which must come together or not at all.
fn group(n: u64) -> Vec<VersionEdit> {
    let mut first = VersionEdit {
        last_sequence: Some(n * 100),
        log_number: Some(n),
        ..VersionEdit::of(0)
    };
    first.add(0, file(1000 + 2 * n));
    let mut second = VersionEdit::of(1);
    second.add(3, file(1001 + 2 * n));
    vec![first, second]
}

fn apply(state: &mut VersionState, edits: &[VersionEdit]) {
    for edit in edits {
        state.apply(edit).expect("valid edit");
    }
}

/// The states after 0, 1, … `n` groups, as text.
fn states(n: u64) -> Vec<String> {
    let mut state = initial();
    let mut all = vec![describe(&state)];
    for i in 1..=n {
        apply(&mut state, &group(i));
        all.push(describe(&state));
    }
    all
}

fn describe(state: &VersionState) -> String {
    format!("{state:?}")
}

fn written(groups: u64) -> (TestFs, ManifestWriter) {
    let fs = TestFs::default();
    let mut writer = ManifestWriter::create(Arc::new(fs.clone()), dir(), 3, &initial()).expect("created");
    for n in 1..=groups {
        writer.append(&group(n)).expect("appended");
    }
    (fs, writer)
}

fn manifest_bytes(fs: &TestFs) -> Vec<u8> {
    fs.read_all(&manifest_path(3)).expect("readable")
}

#[test]
fn what_was_written_is_recovered() {
    let (fs, writer) = written(4);
    let recovered = recover(&fs, dir()).expect("whole");
    assert_eq!(describe(&recovered.state), states(4)[4]);
    assert_eq!(
        (recovered.manifest_number, recovered.groups, recovered.torn_tail),
        (3, 4, None)
    );
    assert_eq!(writer.len_bytes(), manifest_bytes(&fs).len() as u64);
    let users = recovered.state.family_named("users").expect("there");
    assert_eq!(users.levels()[3].len(), 4);
    assert_eq!(users.record.merge_operator.as_deref(), Some("append"));
}

#[test]
fn acknowledged_groups_survive_a_power_cut_at_every_call() {
    let expected = states(3);
    let (fs, _) = written(3);
    let calls = fs.calls();
    for at in 0..calls {
        for (keep, names) in [(0, false), (0, true), (7, false), (40, true), (usize::MAX, true)] {
            let fs = TestFs::default();
            fs.fail_after(Some(at));
            let mut acknowledged = None;
            if let Ok(mut writer) = ManifestWriter::create(Arc::new(fs.clone()), dir(), 3, &initial()) {
                acknowledged = Some(0);
                for n in 1..=3 {
                    if writer.append(&group(n)).is_err() {
                        assert!(writer.has_failed());
                        assert_eq!(writer.append(&group(n)).unwrap_err().kind(), ErrorKind::ReadOnly);
                        break;
                    }
                    acknowledged = Some(n as usize);
                }
            }
            let after = recover(&fs.crash(keep, names), dir());
            match (after, acknowledged) {
                (Ok(recovered), acknowledged) => {
                    let groups = recovered.groups as usize;
                    assert_eq!(describe(&recovered.state), expected[groups], "whole groups only");
                    let known = acknowledged.unwrap_or(0);
                    assert!(
                        groups == known || groups == known + 1,
                        "at most the failed one besides"
                    );
                }
                (Err(error), None) => assert_eq!(error.kind(), ErrorKind::NotFound, "call {at}: {error}"),
                (Err(error), Some(n)) => panic!("{n} groups lost at call {at}: {error}"),
            }
        }
    }
}

#[test]
fn a_roll_over_is_safe_at_every_call_and_makes_a_failed_manifest_usable_again() {
    for at in 0..40 {
        for (keep, names) in [(0, false), (0, true), (usize::MAX, true)] {
            let (fs, mut writer) = written(1);
            let mut state = initial();
            apply(&mut state, &group(1));
            fs.fail_after(Some(fs.calls()));
            writer.append(&group(2)).unwrap_err();
            fs.fail_after(Some(fs.calls() + at));
            let rolled = writer.roll_over(4, &state);
            let survived = recover(&fs.crash(keep, names), dir()).expect("one of both is whole");
            let known = states(2);
            assert!(
                known[1..].contains(&describe(&survived.state)),
                "group 1 is there"
            );
            if rolled.is_ok() {
                assert_eq!(
                    describe(&survived.state),
                    known[1],
                    "the failed group is gone for good"
                );
                assert_eq!(
                    (rolled.ok(), writer.number(), writer.has_failed()),
                    (Some(3), 4, false)
                );
                fs.fail_after(None);
                writer.append(&group(2)).expect("usable again");
                let recovered = recover(&fs.crash(0, false), dir()).expect("whole");
                assert_eq!(describe(&recovered.state), known[2]);
            } else {
                assert!(writer.has_failed(), "a writer that may not be live takes nothing");
            }
        }
    }
}

#[test]
fn a_failed_switch_closes_a_healthy_manifest_but_a_failed_snapshot_does_not() {
    let mut outcomes = Vec::new();
    for at in 0..40 {
        let (fs, mut writer) = written(1);
        let mut state = initial();
        apply(&mut state, &group(1));
        fs.fail_after(Some(fs.calls() + at));
        let rolled = writer.roll_over(4, &state).is_ok();
        fs.fail_after(None);
        let appended = writer.append(&group(2)).is_ok();
        outcomes.push((rolled, appended));
        if appended {
            let recovered = recover(&fs.crash(0, false), dir()).expect("whole");
            assert_eq!(
                describe(&recovered.state),
                states(2)[2],
                "what was acknowledged is found"
            );
        }
    }
    outcomes.dedup();
    assert_eq!(outcomes, [(false, true), (false, false), (true, true)]);
}

#[test]
fn every_cut_of_the_last_record_is_a_torn_tail() {
    let (fs, _) = written(2);
    let before = written(1).1.len_bytes() as usize;
    let bytes = manifest_bytes(&fs);
    for cut in before..bytes.len() {
        for fill in [0, 1, 3, bytes.len() - cut] {
            let mut torn = bytes[..cut].to_vec();
            torn.resize(cut + fill, 0);
            if torn.starts_with(&bytes) {
                continue;
            }
            fs.put(&manifest_path(3), &torn);
            let recovered = recover(&fs, dir()).expect("a torn tail is tolerated");
            assert_eq!(describe(&recovered.state), states(1)[1]);
            let tail = TornTail {
                offset: before as u64,
                len_bytes: (torn.len() - before) as u64,
            };
            assert_eq!(
                recovered.torn_tail,
                (torn.len() > before).then_some(tail),
                "cut {cut} fill {fill}"
            );
        }
    }
}

#[test]
fn damage_before_the_last_record_is_corruption_that_names_file_and_offset() {
    let (fs, _) = written(3);
    let bytes = manifest_bytes(&fs);
    let last = written(2).1.len_bytes() as usize;
    for at in 0..last {
        for flip in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            fs.put(&manifest_path(3), &damaged);
            let error = recover(&fs, dir()).unwrap_err();
            let newer = (8..12).contains(&at) && error.kind() == ErrorKind::Unsupported;
            assert!(
                newer || error.kind() == ErrorKind::Corruption,
                "byte {at}: {error}"
            );
            if !newer {
                assert_eq!(error.file(), Some(manifest_path(3).as_path()));
                assert!(
                    error.offset().is_some_and(|offset| offset <= at as u64),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn a_cut_snapshot_is_never_taken_for_a_torn_tail() {
    let (fs, writer) = written(0);
    let bytes = manifest_bytes(&fs);
    assert_eq!(bytes.len() as u64, writer.len_bytes());
    for cut in 0..bytes.len() {
        fs.put(&manifest_path(3), &bytes[..cut]);
        assert_eq!(
            recover(&fs, dir()).unwrap_err().kind(),
            ErrorKind::Corruption,
            "cut {cut}"
        );
    }
}

#[test]
fn a_record_from_another_place_or_manifest_is_not_read() {
    let (fs, _) = written(2);
    let (one, two) = (written(1).1.len_bytes() as usize, manifest_bytes(&fs));
    let mut repeated = two.clone();
    repeated.extend_from_slice(&two[one..]);
    fs.put(&manifest_path(3), &repeated);
    let recovered = recover(&fs, dir()).expect("tolerated as a tail");
    assert_eq!(
        (recovered.groups, recovered.torn_tail.map(|t| t.offset)),
        (2, Some(two.len() as u64))
    );
    // The same bytes under another manifest's name.
    let (fs, mut writer) = written(2);
    writer.roll_over(4, &initial()).expect("rolled");
    fs.put(&manifest_path(4), &two);
    let error = recover(&fs, dir()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corruption && error.message().contains("manifest 3, not 4"),
        "{error}"
    );
}

#[test]
fn newer_formats_are_unsupported_not_corrupt() {
    let (fs, _) = written(1);
    let bytes = manifest_bytes(&fs);
    let mut newer = bytes.clone();
    newer[8] = 2;
    fs.put(&manifest_path(3), &newer);
    assert_eq!(recover(&fs, dir()).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut flagged = bytes[..HEADER_LEN].to_vec();
    flagged[12] = 1;
    let crc = checksum(&[&flagged[..HEADER_LEN - 4]]);
    flagged[HEADER_LEN - 4..].copy_from_slice(&crc.to_le_bytes());
    flagged.extend_from_slice(&bytes[HEADER_LEN..]);
    fs.put(&manifest_path(3), &flagged);
    assert_eq!(recover(&fs, dir()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_folder_without_a_database_is_told_apart_from_a_damaged_one() {
    let cases: [(&[&str], ErrorKind, &str); 8] = [
        (&[], ErrorKind::NotFound, "there is no database"),
        (
            &["LOCK", "MANIFEST-000001", "CURRENT.tmp"],
            ErrorKind::NotFound,
            "there is no database",
        ),
        (&["thesis.txt", "LOCK"], ErrorKind::InvalidArgument, "thesis.txt"),
        (&["CURRENT.bak"], ErrorKind::InvalidArgument, "not empty"),
        (&["000007.sst", "000003.wal"], ErrorKind::Corruption, "000003.wal"),
        (
            &["MANIFEST-000004", "MANIFEST-000009"],
            ErrorKind::Corruption,
            "no CURRENT",
        ),
        (&["CURRENT"], ErrorKind::Corruption, "does not name"),
        (&["000007.sst", "notes"], ErrorKind::Corruption, "000007.sst"),
    ];
    for (names, kind, message) in cases {
        let fs = TestFs::default();
        for name in names {
            fs.put(&dir().join(name), b"x");
        }
        let error = recover(&fs, dir()).unwrap_err();
        assert_eq!(error.kind(), kind, "{names:?}: {error}");
        assert!(error.message().contains(message), "{names:?}: {error}");
    }
    let error = recover(&TestFs::default(), Path::new("/nowhere")).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::NotFound, "there is no database")
    );
}

#[test]
fn a_missing_manifest_is_corruption() {
    let (fs, _) = written(1);
    fs.remove(&manifest_path(3)).expect("removed");
    let error = recover(&fs, dir()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(manifest_path(3).as_path()));
}

#[test]
fn it_is_over_the_limit_only_when_far_larger_than_its_snapshot() {
    let (_, mut writer) = written(0);
    writer.set_roll_bytes_min(100);
    let snapshot = writer.len_bytes();
    let mut n = 0;
    while !writer.is_over_limit() {
        n += 1;
        writer.append(&group(n)).expect("appended");
    }
    assert!(writer.len_bytes() > 10 * snapshot && writer.len_bytes() < 11 * snapshot);
    let mut state = initial();
    (1..=n).for_each(|i| apply(&mut state, &group(i)));
    writer.roll_over(4, &state).expect("rolled");
    assert!(!writer.is_over_limit() && writer.len_bytes() < 10 * snapshot);
}

#[test]
fn a_number_that_is_not_drawn_yet_is_refused_without_a_trace() {
    let fs = TestFs::default();
    let error = ManifestWriter::create(Arc::new(fs.clone()), dir(), 5, &initial()).unwrap_err();
    assert_eq!((error.kind(), fs.calls()), (ErrorKind::Bug, 0));
    let (_, mut writer) = written(1);
    assert_eq!(
        writer.roll_over(3, &initial()).unwrap_err().kind(),
        ErrorKind::Bug
    );
}

/// The bytes of a manifest of this format, for ever: a change here breaks every stored database.
#[test]
fn the_format_is_as_it_was() {
    let (fs, _) = written(1);
    let bytes = manifest_bytes(&fs);
    assert_eq!((bytes.len(), checksum(&[&bytes])), (GOLDEN_LEN, GOLDEN_CRC));
    assert_eq!(&bytes[..8], b"ESKERMAN");
    let current = fs.read_all(&dir().join("CURRENT")).expect("there");
    assert_eq!(String::from_utf8_lossy(&current), GOLDEN_CURRENT);
}

const GOLDEN_LEN: usize = 331;
const GOLDEN_CRC: u32 = 2_162_872_316;
const GOLDEN_CURRENT: &str = "MANIFEST-000003 9fe8597d\n";

proptest! {
    #[test]
    fn noise_is_an_error_or_a_state(bytes: Vec<u8>, fix: bool) {
        fuzz_manifest(&bytes, fix);
    }

    #[test]
    fn damaged_manifests_never_panic(flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (fs, _) = written(2);
        let mut bytes = manifest_bytes(&fs);
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        fs.put(&manifest_path(3), &bytes);
        if let Ok(recovered) = recover(&fs, dir()) {
            let groups = recovered.groups as usize;
            prop_assert_eq!(describe(&recovered.state), states(2)[groups].clone());
        }
    }
}
