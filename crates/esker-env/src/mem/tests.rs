//! The simulated file system against a naive model, and what its crashes may and may not leave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{CreateOptions, Fs, IoMode, WriteFile};

const DIR: &str = "/db";

fn fs() -> MemFs {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs
}

fn path(name: u8) -> std::path::PathBuf {
    Path::new(DIR).join(name.to_string())
}

fn put(fs: &MemFs, name: u8, data: &[u8]) -> Box<dyn WriteFile> {
    let mut file = fs.create(&path(name), CreateOptions::default()).unwrap();
    file.append(data).unwrap();
    file
}

fn state(fs: &MemFs) -> BTreeMap<String, Vec<u8>> {
    let names = fs.list(Path::new(DIR)).unwrap();
    names
        .into_iter()
        .map(|name| {
            let bytes = fs.read_all(&Path::new(DIR).join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Append(u8, Vec<u8>),
    Sync(u8),
    Rename(u8, u8),
    Remove(u8),
    Link(u8, u8),
    SyncDir,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0_u8..4;
    prop_oneof![
        2 => name().prop_map(Step::Create),
        4 => (name(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(n, d)| Step::Append(n, d)),
        2 => name().prop_map(Step::Sync),
        1 => (name(), name()).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => name().prop_map(Step::Remove),
        1 => (name(), name()).prop_map(|(a, b)| Step::Link(a, b)),
        1 => Just(Step::SyncDir),
    ]
}

/// The model: every state that each file and the folder went through, copied whole at each step.
#[derive(Default)]
struct Model {
    /// Bytes now, durable bytes.
    files: Vec<(Vec<u8>, Vec<u8>)>,
    /// The longest that each file ever was.
    longest: BTreeMap<usize, usize>,
    names: BTreeMap<u8, usize>,
    durable_names: BTreeMap<u8, usize>,
}

impl Model {
    fn now(&self) -> BTreeMap<String, Vec<u8>> {
        let show = |(name, &file): (&u8, &usize)| (name.to_string(), self.files[file].0.clone());
        self.names.iter().map(show).collect()
    }

    fn durable(&self) -> BTreeMap<String, Vec<u8>> {
        let show = |(name, &file): (&u8, &usize)| (name.to_string(), self.files[file].1.clone());
        self.durable_names.iter().map(show).collect()
    }
}

fn play(steps: &[Step]) -> (MemFs, Model) {
    let fs = fs();
    let mut model = Model::default();
    // One writer a file (not a name), kept open across renames, as the engine does.
    let mut writers: BTreeMap<usize, Box<dyn WriteFile>> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Create(name) => {
                let writer = fs.create(&path(*name), CreateOptions::default()).unwrap();
                let file = *model.names.entry(*name).or_insert_with(|| {
                    model.files.push(Default::default());
                    model.files.len() - 1
                });
                model.files[file].0.clear();
                writers.insert(file, writer);
            }
            Step::Append(name, data) => {
                if let Some(file) = model.names.get(name) {
                    writers.get_mut(file).unwrap().append(data).unwrap();
                    model.files[*file].0.extend_from_slice(data);
                    let longest = model.longest.entry(*file).or_default();
                    *longest = (*longest).max(model.files[*file].0.len());
                }
            }
            Step::Sync(name) => {
                if let Some(file) = model.names.get(name) {
                    writers.get_mut(file).unwrap().sync().unwrap();
                    let (now, durable) = &mut model.files[*file];
                    durable.clone_from(now);
                }
            }
            Step::Rename(from, to) => {
                let result = fs.rename(&path(*from), &path(*to));
                match model.names.get(from).copied() {
                    None => assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound),
                    Some(file) => {
                        result.unwrap();
                        if model.names.get(to) != Some(&file) {
                            model.names.remove(from);
                            model.names.insert(*to, file);
                        }
                    }
                }
            }
            Step::Remove(name) => {
                assert_eq!(
                    fs.remove(&path(*name)).is_ok(),
                    model.names.remove(name).is_some()
                );
            }
            Step::Link(from, to) => {
                let fine = model.names.contains_key(from) && !model.names.contains_key(to);
                assert_eq!(fs.hard_link(&path(*from), &path(*to)).is_ok(), fine);
                if fine {
                    model.names.insert(*to, model.names[from]);
                }
            }
            Step::SyncDir => {
                fs.sync_dir(Path::new(DIR)).unwrap();
                model.durable_names.clone_from(&model.names);
            }
        }
        assert_eq!(state(&fs), model.now());
        let sizes: BTreeMap<usize, usize> = model
            .names
            .values()
            .map(|&file| (file, model.files[file].0.len()))
            .collect();
        assert_eq!(fs.used_bytes(), sizes.values().sum::<usize>() as u64);
    }
    (fs, model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn agrees_with_the_model(steps in prop::collection::vec(step(), 0..40)) {
        let (fs, model) = play(&steps);
        let killed = fs.crash(CrashMode::KeepAll);
        prop_assert_eq!(state(&killed), model.now());
        let durable = model.durable();
        prop_assert_eq!(state(&fs.crash(CrashMode::DropUnsynced)), durable.clone());
        // A kill makes nothing durable.
        prop_assert_eq!(state(&killed.crash(CrashMode::DropUnsynced)), durable);
    }

    #[test]
    fn a_tear_takes_only_what_was_not_synced(steps in prop::collection::vec(step(), 0..40), seed: u64) {
        let (fs, model) = play(&steps);
        let torn = fs.crash(CrashMode::Torn { seed });
        prop_assert_eq!(state(&torn), state(&fs.crash(CrashMode::Torn { seed })), "one seed, one outcome");
        // What survived is durable.
        prop_assert_eq!(state(&torn), state(&torn.crash(CrashMode::DropUnsynced)));
        // Each file that survived is one that some name led to, with no byte beyond what it ever held.
        let longest = model.longest.values().copied().max().unwrap_or(0);
        prop_assert!(state(&torn).values().all(|bytes| bytes.len() <= longest));

        // Once all is synced, nothing can be taken.
        let (fs, model) = play(&[steps, (0..4).map(Step::Sync).collect(), vec![Step::SyncDir]].concat());
        prop_assert_eq!(state(&fs.crash(CrashMode::Torn { seed })), model.now());
    }
}

#[test]
fn synced_bytes_under_a_durable_name_survive_every_tear() {
    for seed in 0..300 {
        let fs = fs();
        let mut file = put(&fs, 1, b"synced");
        file.sync().unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        file.append(b" and not").unwrap();
        let seen = fs.crash(CrashMode::Torn { seed }).read_all(&path(1)).unwrap();
        assert!(seen.starts_with(b"synced") && seen.len() <= 14, "{seen:?}");
    }
}

#[test]
fn a_block_written_again_does_not_endanger_the_synced_bytes_in_it() {
    let direct = CreateOptions {
        mode: IoMode::Direct,
        preallocate_bytes: 1 << 16,
        buffer_bytes: 8192,
        ..CreateOptions::default()
    };
    for seed in 0..300 {
        let fs = fs();
        let mut file = fs.create(&path(1), direct).unwrap();
        file.append(&[1; 100]).unwrap();
        file.sync().unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        file.append(&[2; 9000]).unwrap();
        file.flush().unwrap();
        let seen = fs.crash(CrashMode::Torn { seed }).read_all(&path(1)).unwrap();
        assert!(seen[..100].iter().all(|&byte| byte == 1));
    }
}

#[test]
fn tears_show_every_kind_of_damage() {
    let mut seen = BTreeSet::new();
    for seed in 0..2000 {
        let fs = fs();
        let mut file = put(&fs, 1, b"");
        file.sync().unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        for part in [[1; 5000], [2; 5000], [3; 5000]] {
            file.append(&part).unwrap();
        }
        let bytes = fs.crash(CrashMode::Torn { seed }).read_all(&path(1)).unwrap();
        let at = |offset: usize| bytes.get(offset).copied();
        seen.insert(match (bytes.len(), at(0), at(5000), at(14_999)) {
            (0, ..) => "nothing",
            (15_000, Some(1), Some(2), Some(3)) if bytes[10_000..].iter().all(|&b| b == 3) => "all",
            (_, Some(0), Some(2), _) | (_, Some(0), _, Some(3)) => "hole",
            (len, ..) if len % 5000 != 0 && bytes[len - 1] == bytes[len - len % 5000] => "cut",
            (.., Some(0)) => "zeros",
            _ if bytes.iter().any(|&b| b > 3) => "garbage",
            _ => "other",
        });
    }
    for kind in ["nothing", "all", "hole", "cut", "zeros", "garbage"] {
        assert!(seen.contains(kind), "no {kind} in {seen:?}");
    }
}

#[test]
fn a_torn_rename_shows_the_old_or_the_new_file_never_neither() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..100 {
        let fs = fs();
        put(&fs, 1, b"old").sync().unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        put(&fs, 2, b"new").sync().unwrap();
        fs.rename(&path(2), &path(1)).unwrap();
        let crashed = fs.crash(CrashMode::Torn { seed });
        let seen = crashed.read_all(&path(1)).unwrap();
        outcomes.insert((seen, crashed.exists(&path(2)).unwrap()));
    }
    let expected = [(&b"new"[..], false), (b"old", false), (b"old", true)];
    assert_eq!(
        outcomes,
        expected.map(|(bytes, there)| (bytes.to_vec(), there)).into()
    );
}

#[test]
fn a_file_recreated_after_removal_is_not_mixed_with_the_old_one() {
    for seed in 0..200 {
        let fs = fs();
        put(&fs, 1, b"old").sync().unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        fs.remove(&path(1)).unwrap();
        put(&fs, 1, b"new").sync().unwrap();
        let crashed = fs.crash(CrashMode::Torn { seed });
        if crashed.exists(&path(1)).unwrap() {
            let seen = crashed.read_all(&path(1)).unwrap();
            assert!(seen == b"old" || seen == b"new", "{seen:?}");
        }
    }
}

#[test]
fn a_kill_takes_what_was_buffered_in_the_process() {
    let fs = fs();
    let options = CreateOptions {
        buffer_bytes: 10,
        ..CreateOptions::default()
    };
    let mut file = fs.create(&path(1), options).unwrap();
    file.append(b"12345678").unwrap();
    file.append(b"abcdefgh").unwrap();
    let read = |fs: &MemFs| fs.crash(CrashMode::KeepAll).read_all(&path(1)).unwrap();
    assert_eq!(read(&fs), b"12345678");
    file.flush().unwrap();
    assert_eq!(read(&fs), b"12345678abcdefgh");

    let direct = CreateOptions {
        mode: IoMode::Direct,
        buffer_bytes: 8192,
        ..CreateOptions::default()
    };
    let mut file = fs.create(&path(2), direct).unwrap();
    file.append(&[7; 5000]).unwrap();
    file.flush().unwrap();
    assert_eq!(fs.file_len(&path(2)).unwrap(), 4096, "whole blocks only");
    file.sync().unwrap();
    assert_eq!(fs.file_len(&path(2)).unwrap(), 5000);
    file.append(&[8; 5000]).unwrap();
    file.finish(true).unwrap();
    let bytes = fs.read_all(&path(2)).unwrap();
    assert!(bytes[..5000].iter().all(|&b| b == 7) && bytes[5000..].iter().all(|&b| b == 8));
    assert_eq!(bytes.len(), 10_000);
}

#[test]
fn a_rewound_file_keeps_its_stale_bytes_until_it_is_finished() {
    let fs = fs();
    let mut file = put(&fs, 1, b"stale bytes");
    fs.rename(&path(1), &path(2)).unwrap();
    file.rewind().unwrap();
    file.append(b"fresh").unwrap();
    assert_eq!(fs.read_all(&path(2)).unwrap(), b"fresh bytes");
    assert!(!fs.exists(&path(1)).unwrap());
    file.finish(false).unwrap();
    assert_eq!(fs.read_all(&path(2)).unwrap(), b"fresh");
}

#[test]
fn the_machine_stops_after_any_number_of_operations() {
    let work = |fs: &MemFs| -> std::io::Result<()> {
        let mut file = fs.create(&path(1), CreateOptions::default())?;
        file.append(&[1; 100])?;
        file.sync()?;
        fs.sync_dir(Path::new(DIR))?;
        fs.rename(&path(1), &path(2))?;
        file.append(&[2; 100])?;
        file.finish(true)?;
        fs.remove(&path(2))
    };
    let whole = fs();
    let before = whole.operations();
    work(&whole).unwrap();
    let total = whole.operations() - before;
    assert_eq!(total, 8);
    let mut cut_inside = false;
    for n in 0..total {
        let fs = fs();
        fs.stop_after(Some(n));
        work(&fs).unwrap_err();
        assert!(fs.is_stopped());
        assert!(
            fs.create(&path(3), CreateOptions::default()).is_err(),
            "stopped for good"
        );
        if n == 5 {
            let len = fs.file_len(&path(2)).unwrap();
            assert!((100..=200).contains(&len));
            cut_inside = len > 100 && len < 200;
        }
        fs.stop_after(None);
        put(&fs, 3, b"on again");
    }
    assert!(cut_inside, "an append that is stopped leaves a part");
}

#[test]
fn a_full_device_says_so_and_has_room_again_after_a_removal() {
    let fs = fs();
    fs.set_capacity_bytes(Some(100));
    let mut file = put(&fs, 1, &[1; 60]);
    let error = file.append(&[1; 50]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(file.len(), 60);
    assert_eq!(fs.free_bytes(Path::new(DIR)).unwrap(), 40);
    let reserve = CreateOptions {
        preallocate_bytes: 41,
        ..CreateOptions::default()
    };
    assert_eq!(
        fs.create(&path(2), reserve).unwrap_err().kind(),
        ErrorKind::StorageFull
    );
    drop(file);
    fs.remove(&path(1)).unwrap();
    let mut file = fs.create(&path(2), reserve).unwrap();
    assert_eq!(fs.used_bytes(), 41);
    file.append(&[2; 100]).unwrap();
    fs.set_capacity_bytes(None);
    file.append(&[2; 100]).unwrap();
    assert_eq!(fs.used_bytes(), 200);
}

#[test]
fn handles_survive_renames_and_removals_but_stay_in_their_world() {
    let fs = fs();
    let mut file = put(&fs, 1, b"a");
    let reader = fs.open(&path(1), IoMode::Direct).unwrap();
    let crashed = fs.crash(CrashMode::KeepAll);
    fs.rename(&path(1), &path(2)).unwrap();
    fs.remove(&path(2)).unwrap();
    fs.sync_dir(Path::new(DIR)).unwrap();
    file.append(b"b").unwrap();
    let mut buf = [0; 3];
    assert_eq!(reader.read_at(0, &mut buf).unwrap(), 2);
    assert_eq!(crashed.read_all(&path(1)).unwrap(), b"a");
    assert_eq!(fs.used_bytes(), 0);
}

#[test]
fn locks_exclude_and_end_with_the_machine() {
    let fs = fs();
    let lock = fs.lock(&path(9)).unwrap();
    assert_eq!(fs.lock(&path(9)).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(fs.crash(CrashMode::KeepAll).lock(&path(9)).unwrap());
    drop(lock);
    drop(fs.lock(&path(9)).unwrap());
}

#[test]
fn names_need_their_folder() {
    let fs = fs();
    let lost = Path::new("/nowhere/f");
    for error in [
        fs.create(lost, CreateOptions::default()).unwrap_err(),
        fs.list(Path::new("/nowhere")).unwrap_err(),
        fs.open(lost, IoMode::Buffered).unwrap_err(),
        fs.sync_dir(Path::new("/nowhere")).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    fs.create_dir_all(Path::new("/db/a/b/")).unwrap();
    assert_eq!(fs.list(Path::new("/db/./a")).unwrap(), ["b"]);
    assert!(fs.exists(Path::new("/db/a")).unwrap());
}

#[test]
fn a_rename_between_folders_is_one_change() {
    for seed in 0..100 {
        for synced in ["/db", "/db/sub", ""] {
            let fs = fs();
            let (from, to) = (path(1), Path::new("/db/sub/2"));
            fs.create_dir_all(Path::new("/db/sub")).unwrap();
            put(&fs, 1, b"x").sync().unwrap();
            fs.rename(&from, to).unwrap();
            if !synced.is_empty() {
                fs.sync_dir(Path::new(synced)).unwrap();
            }
            let crashed = fs.crash(CrashMode::Torn { seed });
            let there = (crashed.exists(&from).unwrap(), crashed.exists(to).unwrap());
            match synced {
                "" => assert_ne!(there, (true, true)),
                _ => assert_eq!(there, (false, true)),
            }
        }
    }
}

#[test]
fn a_folder_is_in_its_old_or_its_new_place_and_takes_its_files_along() {
    let (old, new) = (Path::new("/old"), Path::new("/new"));
    let mut places = BTreeSet::new();
    for seed in 0..40 {
        for synced in [false, true] {
            let fs = fs();
            fs.create_dir_all(old).unwrap();
            let mut file = fs.create(&old.join("1"), CreateOptions::default()).unwrap();
            file.append(b"x").unwrap();
            file.sync().unwrap();
            fs.sync_dir(old).unwrap();
            fs.create(&old.join("2"), CreateOptions::default()).unwrap();
            fs.rename(old, new).unwrap();
            assert_eq!(fs.read_all(&new.join("1")).unwrap(), b"x");
            assert!(!fs.exists(old).unwrap() && !fs.exists(&old.join("1")).unwrap());
            if synced {
                fs.sync_dir(Path::new("/")).unwrap();
            }
            let crashed = fs.crash(CrashMode::Torn { seed });
            let place = if crashed.exists(new).unwrap() { new } else { old };
            assert!(place == new || !synced);
            assert_eq!(crashed.read_all(&place.join("1")).unwrap(), b"x");
            let second = crashed.exists(&place.join("2")).unwrap();
            places.insert((place.to_owned(), second));
            let lost = fs.crash(CrashMode::DropUnsynced);
            assert_eq!(lost.exists(new).unwrap(), synced);
            assert!(!lost.exists(&new.join("2")).unwrap());
            let kept = fs.crash(CrashMode::KeepAll);
            assert!(kept.exists(&new.join("2")).unwrap());
        }
    }
    assert_eq!(places.len(), 4, "{places:?}");
}

#[test]
fn only_an_empty_folder_is_removed_and_only_a_free_name_is_taken_by_one() {
    let fs = fs();
    put(&fs, 1, b"x");
    fs.create_dir_all(Path::new("/other")).unwrap();
    assert!(fs.remove_dir(Path::new(DIR)).is_err());
    assert!(fs.rename(Path::new("/other"), Path::new(DIR)).is_err());
    fs.remove_dir(Path::new("/other")).unwrap();
    assert!(!fs.exists(Path::new("/other")).unwrap());
}

#[test]
fn a_file_that_an_earlier_process_wrote_can_be_made_durable() {
    let fs = fs();
    drop(put(&fs, 1, b"x"));
    fs.sync_dir(Path::new(DIR)).unwrap();
    assert_eq!(state(&fs.crash(CrashMode::DropUnsynced))["1"], b"");
    fs.sync_file(&path(1)).unwrap();
    assert_eq!(state(&fs.crash(CrashMode::DropUnsynced))["1"], b"x");
}

#[test]
fn two_simulated_machines_of_one_seed_agree() {
    let (a, _) = Env::simulated(5);
    let (b, fs) = Env::simulated(5);
    assert_eq!(a.random.next_u64(), b.random.next_u64());
    assert_eq!(a.clock.now(), b.clock.now());
    b.fs.create_dir_all(Path::new(DIR)).unwrap();
    assert!(fs.exists(Path::new(DIR)).unwrap());
}
