//! What this process, or another one, spent: processor time, storage traffic, memory, all from the kernel's own books.
//!
//! Linux keeps `/proc/self/io`: `write_bytes` counts pages when they are dirtied (or handed to the device, for direct
//! I/O), mapped writes included, so a file that is deleted before it reaches the device counts too, for every engine
//! alike. `syscr` counts read calls, which for an engine without a page-cache bypass includes those that the page
//! cache answered.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The process's counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    at: Instant,
    cpu: Duration,
    io: Io,
    device: Option<Device>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Io {
    read_calls: u64,
    read_bytes: u64,
    write_bytes: u64,
    written_chars: u64,
}

#[derive(Clone, Copy, Debug)]
struct Device {
    reads: u64,
    read_bytes: u64,
    write_bytes: u64,
}

/// What was spent between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// User and system time of all threads, in microseconds.
    pub cpu_us: f64,
    /// Read calls.
    pub read_calls: u64,
    /// Bytes that came from storage.
    pub read_bytes: u64,
    /// Bytes that went to storage.
    pub write_bytes: u64,
    /// Reads that the device served, for anyone; `None` where the kernel does not say.
    pub device_reads: Option<u64>,
    /// Bytes that the device read, for anyone.
    pub device_read_bytes: Option<u64>,
    /// Bytes that the device wrote, for anyone.
    pub device_write_bytes: Option<u64>,
}

fn fields(text: &str, wanted: &str) -> u64 {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(wanted)?
                .strip_prefix(':')?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// A file of the kernel's about a process; about this one without a number.
fn books(process: Option<u32>, file: &str) -> String {
    let name = process.map_or("self".to_owned(), |number| number.to_string());
    std::fs::read_to_string(format!("/proc/{name}/{file}")).unwrap_or_default()
}

fn process_io(process: Option<u32>) -> Io {
    let text = books(process, "io");
    Io {
        read_calls: fields(&text, "syscr"),
        read_bytes: fields(&text, "read_bytes"),
        write_bytes: fields(&text, "write_bytes"),
        written_chars: fields(&text, "wchar"),
    }
}

/// The folder in `/sys` of the block device that holds `path`.
pub(crate) fn device_folder(path: &Path) -> Option<std::path::PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let id = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(id), rustix::fs::minor(id));
    let folder = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    folder.join("stat").exists().then_some(folder)
}

fn device(path: &Path) -> Option<Device> {
    const SECTOR_BYTES: u64 = 512;
    let text = std::fs::read_to_string(device_folder(path)?.join("stat")).ok()?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    Some(Device {
        reads: *numbers.first()?,
        read_bytes: numbers.get(2)? * SECTOR_BYTES,
        write_bytes: numbers.get(6)? * SECTOR_BYTES,
    })
}

/// User and system time that all threads of this process, ended ones included, have used.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The same of another process, to a hundredth of a second; none if there is no such process.
fn cpu_time_of(process: u32) -> Duration {
    let text = books(Some(process), "stat");
    // Behind the name, which may hold anything, user and system time are the 12th and 13th.
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut numbers = behind_name.split_whitespace().skip(11);
    let ticks = |word: Option<&str>| word.and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
    let ticks = ticks(numbers.next()) + ticks(numbers.next());
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

impl Account {
    /// Reads the books; `dir` tells which device's to read beside the process's own.
    pub fn now(dir: &Path) -> Self {
        Account {
            at: Instant::now(),
            cpu: cpu_time(),
            io: process_io(None),
            device: device(dir),
        }
    }

    /// The books of another process.
    pub fn of(process: u32, dir: &Path) -> Self {
        Account {
            at: Instant::now(),
            cpu: cpu_time_of(process),
            io: process_io(Some(process)),
            device: device(dir),
        }
    }

    /// What was spent from `earlier` until this.
    pub fn since(&self, earlier: &Account) -> Spent {
        let device = self.device.zip(earlier.device);
        Spent {
            seconds: (self.at - earlier.at).as_secs_f64(),
            cpu_us: self.cpu.saturating_sub(earlier.cpu).as_secs_f64() * 1e6,
            read_calls: self.io.read_calls.saturating_sub(earlier.io.read_calls),
            read_bytes: self.io.read_bytes.saturating_sub(earlier.io.read_bytes),
            write_bytes: self.io.write_bytes.saturating_sub(earlier.io.write_bytes),
            device_reads: device.map(|(now, then)| now.reads.saturating_sub(then.reads)),
            device_read_bytes: device.map(|(now, then)| now.read_bytes.saturating_sub(then.read_bytes)),
            device_write_bytes: device.map(|(now, then)| now.write_bytes.saturating_sub(then.write_bytes)),
        }
    }

    /// Bytes ever written through calls, and bytes ever sent to storage: when both stand still, nobody writes.
    pub fn written() -> (u64, u64) {
        let io = process_io(None);
        (io.written_chars, io.write_bytes)
    }
}

fn status(process: Option<u32>, field: &str) -> u64 {
    fields(&books(process, "status"), field) * 1024
}

/// Most memory this process ever had resident, in bytes.
pub fn peak_rss_bytes() -> u64 {
    status(None, "VmHWM")
}

/// Memory that another process has resident, in bytes.
pub fn rss_bytes_of(process: u32) -> u64 {
    status(Some(process), "VmRSS")
}

/// Memory this process has resident, in bytes.
pub fn rss_bytes() -> u64 {
    status(None, "VmRSS")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn work_shows_up_in_the_books() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let before = Account::now(dir.path());
        let mut file = std::fs::File::create(dir.path().join("file")).unwrap();
        file.write_all(&vec![7u8; 4 << 20]).unwrap();
        file.sync_all().unwrap();
        let mut x = 1u64;
        while cpu_time() - before.cpu < Duration::from_millis(5) {
            x = crate::data::mix(x);
        }
        assert_ne!(x, 0);
        let spent = Account::now(dir.path()).since(&before);
        assert!(spent.cpu_us >= 5_000.0);
        assert!(spent.seconds > 0.0);
        assert!(spent.write_bytes >= 4 << 20, "{spent:?}");
        let own = std::process::id();
        let as_another = Account::of(own, dir.path()).since(&before);
        assert!(as_another.cpu_us >= spent.cpu_us - 20_000.0, "{as_another:?}");
        assert!(
            as_another.write_bytes >= 4 << 20 && rss_bytes_of(own) > 0,
            "{as_another:?}"
        );
        assert!(peak_rss_bytes() >= rss_bytes() / 2 && rss_bytes() > 0);
    }
}
