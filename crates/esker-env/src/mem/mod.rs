//! A simulated machine: files in memory that a crash can tear, a logical clock, seeded randomness.
//!
//! | file | what it is |
//! |---|---|
//! | `fs` | [`MemFs`] |
//! | `world` | its state: names, files, limits |
//! | `files` | open files and locks |
//! | `inode` | a file's bytes: durable ones, and the later writes a crash may take |
//! | `names` | the names of files: durable ones, and the later changes a crash may take |
//! | `crash` | what is left after a crash |
//! | `machine` | [`LogicalClock`], [`SeededRandom`] |

mod crash;
mod files;
mod folders;
mod fs;
mod inode;
mod machine;
mod names;
mod rng;
#[cfg(test)]
mod tests;
mod world;

use std::sync::Arc;

pub use crash::CrashMode;
pub use fs::MemFs;
pub use machine::{LogicalClock, SeededRandom};

use crate::Env;
use crate::posix::SystemThreads;

impl Env {
    /// A simulated machine with an empty file system, which is returned beside it for its crashes and limits.
    /// The clock moves only when it is asked; threads are real.
    #[must_use]
    pub fn simulated(seed: u64) -> (Self, MemFs) {
        let fs = MemFs::new();
        (Self::simulated_on(fs.clone(), seed), fs)
    }

    /// A simulated machine on a file system that is there already, such as one that survived a crash.
    #[must_use]
    pub fn simulated_on(fs: MemFs, seed: u64) -> Self {
        Self {
            fs: Arc::new(fs),
            clock: Arc::new(LogicalClock::default()),
            random: Arc::new(SeededRandom::new(seed)),
            spawn: Arc::new(SystemThreads),
        }
    }
}
