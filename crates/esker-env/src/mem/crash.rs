//! What is left of a file system after a crash.

use std::collections::BTreeMap;

use super::folders::FolderRenames;
use super::inode::Inode;
use super::names::Names;
use super::rng::Rng;
use super::world::World;

/// How the machine dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// A power cut that takes all that was not synced.
    DropUnsynced,
    /// The process is killed: what was handed to the system stays (and stays undurable: a power cut can still take
    /// it), what was buffered in the process is lost.
    KeepAll,
    /// A power cut that takes any part of what was not synced; the seed says which.
    Torn {
        /// The same seed after the same operations leaves the same.
        seed: u64,
    },
}

impl World {
    /// The world after a crash. Limits and locks are gone with the machine.
    pub(super) fn after(&self, mode: CrashMode) -> World {
        let mut folders = self.folders.clone();
        let mut folder_renames = FolderRenames::default();
        let (names, files) = match mode {
            CrashMode::KeepAll => {
                folder_renames = self.folder_renames.clone();
                (self.names.clone(), self.files.clone())
            }
            CrashMode::DropUnsynced => {
                let files = self.map_files(Inode::after_losing_all);
                let mut table = self.names.after_losing_all();
                self.folder_renames.lose_all(&mut table, &mut folders);
                (Names::durable(table), files)
            }
            CrashMode::Torn { seed } => {
                let mut rng = Rng(seed);
                let mut table = self.names.after_tearing(&mut rng);
                self.folder_renames.tear(&mut rng, &mut table, &mut folders);
                (
                    Names::durable(table),
                    self.map_files(|file| file.after_tearing(&mut rng)),
                )
            }
        };
        World::restored(names, files, folders, folder_renames, self.next_file)
    }

    fn map_files(&self, mut bytes: impl FnMut(&Inode) -> Vec<u8>) -> BTreeMap<u64, Inode> {
        self.files
            .iter()
            .map(|(&id, file)| (id, Inode::durable(bytes(file))))
            .collect()
    }
}
