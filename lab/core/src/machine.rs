//! The machine that a run was measured on.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What the kernel says about the machine. Empty texts and zeros mean that it does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Processor's model name.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Memory limit that the lab itself was started under, in bytes; 0 without one.
    pub inherited_limit_bytes: u64,
    /// Operating system and kernel.
    pub kernel: String,
    /// File system type of the database folder.
    pub file_system: String,
    /// Block device below it.
    pub device: String,
    /// Instruction set.
    pub architecture: String,
}

fn line_after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|l| {
        l.strip_prefix(label)?
            .trim_start()
            .strip_prefix(':')
            .map(str::trim)
    })
}

fn file_system(dir: &Path, mounts: &str) -> String {
    let Ok(dir) = fs::canonicalize(dir) else {
        return String::new();
    };
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (path, kind) = (words.next()?, words.next()?);
            dir.starts_with(path).then_some((path.len(), kind))
        })
        .max_by_key(|&(length, _)| length)
        .map(|(_, kind)| kind.to_owned())
        .unwrap_or_default()
}

fn inherited_limit() -> u64 {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let candidates = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        match controllers {
            "memory" => Some(
                Path::new("/sys/fs/cgroup/memory")
                    .join(path)
                    .join("memory.limit_in_bytes"),
            ),
            "" => Some(Path::new("/sys/fs/cgroup").join(path).join("memory.max")),
            _ => None,
        }
    });
    candidates
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
        .filter(|&limit| limit < 1 << 60)
        .min()
        .unwrap_or(0)
}

impl Machine {
    /// Looks at this machine; `dir` is the folder that databases are made in.
    pub fn look(dir: &Path) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let memory_kib: u64 = line_after(&meminfo, "MemTotal")
            .and_then(|v| v.split_whitespace().next()?.parse().ok())
            .unwrap_or(0);
        let uname = rustix::system::uname();
        let device = crate::account::device_folder(dir)
            .and_then(|f| Some(f.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default();
        Machine {
            cpu: line_after(&cpuinfo, "model name").unwrap_or_default().to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib * 1024,
            inherited_limit_bytes: inherited_limit(),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            file_system: file_system(dir, &mounts),
            device,
            architecture: std::env::consts::ARCH.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_names_the_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let deep = fs::canonicalize(dir.path()).unwrap();
        let mounts = format!("a / ext4 rw\nb {} xfs rw\n", deep.display());
        assert_eq!(file_system(&deep, &mounts), "xfs");
        assert_eq!(file_system(Path::new("/"), &mounts), "ext4");
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        let machine = Machine::look(Path::new("."));
        assert!(machine.cpus >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.kernel.starts_with("Linux"));
    }
}
