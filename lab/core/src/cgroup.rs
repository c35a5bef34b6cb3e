//! Memory limits through control groups, version 1 or 2, where we are permitted to make one.
//!
//! The parent makes a [`Group`] below its own (or, if that is refused, below the root of the hierarchy), the child
//! enters it before it does anything else, and the parent removes it. The limit counts the page cache that the
//! child fills, so buffered and direct I/O are held to the same memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result, error::Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    V1,
    V2,
}

/// Where a hierarchy that can limit memory is mounted, and our place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    hierarchy: Hierarchy,
    mount: PathBuf,
    own: PathBuf,
}

/// A control group of our own with a memory limit; removed when dropped.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    hierarchy: Hierarchy,
    limit_bytes: u64,
}

/// Finds the hierarchies in the kernel's lists; version 1 first, since a memory controller that is mounted there
/// is not available in version 2.
fn places(mounts: &str, own: &str) -> Vec<Place> {
    let mount_of = |kind: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (path, found, options) = (words.next()?, words.next()?, words.next()?);
            let wanted = found == kind && option.is_none_or(|o| options.split(',').any(|have| have == o));
            wanted.then(|| PathBuf::from(path))
        })
    };
    let own_in = |wanted: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let mut places = Vec::new();
    if let (Some(mount), Some(path)) = (
        mount_of("cgroup", Some("memory")),
        own_in(&|c| c.split(',').any(|c| c == "memory")),
    ) {
        places.push(Place {
            hierarchy: Hierarchy::V1,
            own: mount.join(path),
            mount,
        });
    }
    if let (Some(mount), Some(path)) = (mount_of("cgroup2", None), own_in(&str::is_empty)) {
        places.push(Place {
            hierarchy: Hierarchy::V2,
            own: mount.join(path),
            mount,
        });
    }
    places
}

fn write(path: &Path, file: &str, value: &str) -> std::result::Result<(), String> {
    let path = path.join(file);
    fs::write(&path, value).map_err(|e| format!("{}: {e}", path.display()))
}

fn try_make(
    parent: &Path,
    hierarchy: Hierarchy,
    name: &str,
    limit_bytes: u64,
) -> std::result::Result<Group, String> {
    if hierarchy == Hierarchy::V2 {
        let offered = fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
        if !offered.split_whitespace().any(|c| c == "memory") {
            return Err(format!("{}: no memory controller there", parent.display()));
        }
        let enabled = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
        if !enabled.split_whitespace().any(|c| c == "memory") {
            write(parent, "cgroup.subtree_control", "+memory")?;
        }
    }
    let path = parent.join(name);
    fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    // Removes the folder again if a limit is refused.
    let group = Group {
        path,
        hierarchy,
        limit_bytes,
    };
    let limit = limit_bytes.to_string();
    match hierarchy {
        Hierarchy::V1 => {
            write(&group.path, "memory.limit_in_bytes", &limit)?;
            // Swapping would hide the limit behind a slow disk; not every kernel has these.
            let _ = write(&group.path, "memory.swappiness", "0");
            let _ = write(&group.path, "memory.memsw.limit_in_bytes", &limit);
        }
        Hierarchy::V2 => {
            write(&group.path, "memory.max", &limit)?;
            let _ = write(&group.path, "memory.swap.max", "0");
        }
    }
    Ok(group)
}

impl Group {
    /// Makes a group named `name` that limits memory to `limit_bytes`. The error lists what was tried and who
    /// refused.
    pub fn create(name: &str, limit_bytes: u64) -> Result<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut refusals = Vec::new();
        for place in places(&mounts, &own) {
            let mut parents = vec![&place.own];
            if place.own != place.mount {
                parents.push(&place.mount);
            }
            for parent in parents {
                match try_make(parent, place.hierarchy, name, limit_bytes) {
                    Ok(group) => return Ok(group),
                    Err(refusal) => refusals.push(refusal),
                }
            }
        }
        if refusals.is_empty() {
            refusals.push("no control group hierarchy is mounted".to_owned());
        }
        Err(Error::new(
            Kind::Io,
            format!("no memory limit can be set here ({})", refusals.join("; ")),
        ))
    }

    /// Its folder, to hand to [`enter`] in the child.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its limit, in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Processes that the kernel killed in it for want of memory.
    pub fn kills(&self) -> u64 {
        let file = match self.hierarchy {
            Hierarchy::V1 => "memory.oom_control",
            Hierarchy::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        text.lines()
            .find_map(|l| l.strip_prefix("oom_kill ")?.trim().parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that still holds a dying process can't be removed at once; the kernel needs a moment.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }
}

/// Moves this process into the group at `path`, all its threads included.
pub fn enter(path: &Path) -> Result<()> {
    admit(path, std::process::id())
}

/// Moves another process into the group at `path`. What it has in memory by then is not counted, so do it at once.
pub fn admit(path: &Path, process: u32) -> Result<()> {
    fs::write(path.join("cgroup.procs"), process.to_string())
        .map_err(|e| Error::io(format_args!("entering {}", path.display()), &e))
}

/// Most memory that the group at `path` ever used, page cache included, in bytes.
pub fn peak_bytes(path: &Path) -> Option<u64> {
    ["memory.max_usage_in_bytes", "memory.peak"]
        .iter()
        .find_map(|file| fs::read_to_string(path.join(file)).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
            cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "4:memory:/jobs/7\n1:cpu:/\n0::/\n";
        let found = places(mounts, own);
        assert_eq!(
            found,
            [
                Place {
                    hierarchy: Hierarchy::V1,
                    mount: "/sys/fs/cgroup/memory".into(),
                    own: "/sys/fs/cgroup/memory/jobs/7".into()
                },
                Place {
                    hierarchy: Hierarchy::V2,
                    mount: "/sys/fs/cgroup/unified".into(),
                    own: "/sys/fs/cgroup/unified/".into()
                },
            ]
        );
        assert!(places("", "").is_empty());
    }

    #[test]
    fn a_limit_is_set_or_refused_in_words() {
        let name = format!("esker-lab-test-{}", std::process::id());
        match Group::create(&name, 64 << 20) {
            Ok(group) => {
                let path = group.path().to_owned();
                assert!(path.is_dir());
                assert_eq!(group.limit_bytes(), 64 << 20);
                assert_eq!(group.kills(), 0);
                drop(group);
                assert!(!path.exists());
            }
            Err(error) => assert!(
                error.to_string().contains("no memory limit can be set here"),
                "{error}"
            ),
        }
    }
}
