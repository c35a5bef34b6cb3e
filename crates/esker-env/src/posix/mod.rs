//! The real machine: files of the operating system, its clock, its randomness, its threads.
//!
//! | file | what it is |
//! |---|---|
//! | `fs` | [`PosixFs`]: names, and which kind of file to open |
//! | `buffered` | files through the page cache |
//! | `direct_read`, `direct_write` | files past it (`O_DIRECT`) |
//! | `in_flight` | the threads that keep several direct writes under way |
//! | `read_many`, `uring` | many reads at once |
//! | `read_ahead` | the threads that read while the caller goes on |
//! | `workers` | what those threads have in common |
//! | `aligned`, `pool` | the aligned memory that direct I/O asks for, and its reuse |
//! | `traffic` | small reads before large transfers |
//! | `locked` | the front of a file in memory, where appending is a copy |
//! | `lock` | exclusive locks |
//! | `machine` | clock, randomness, threads |

mod aligned;
mod buffered;
mod direct_read;
mod direct_write;
mod fs;
mod in_flight;
mod lock;
mod locked;
mod machine;
mod pool;
mod read_ahead;
mod read_many;
mod system;
#[cfg(test)]
mod tests;
mod traffic;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod uring;
mod workers;

use std::sync::Arc;

pub use fs::PosixFs;
pub use machine::{SystemClock, SystemRandom, SystemThreads};

use crate::Env;

impl Env {
    /// The machine that the process runs on.
    #[must_use]
    pub fn posix() -> Self {
        Self {
            fs: Arc::new(PosixFs::new()),
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SystemRandom::new()),
            spawn: Arc::new(SystemThreads),
        }
    }
}
