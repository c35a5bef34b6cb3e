//! What a folder takes on disk.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes allocated to all files under `dir`, as `du` counts them. Files that vanish while it looks count as gone.
pub fn allocated_bytes(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => allocated_bytes(&entry.path()),
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Bytes free to us on the file system of `dir`.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

/// `bytes` for people: `1.5 GiB`.
pub fn display(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Reads `512MiB`, `1.5GiB`, `4k`, `10000`: units of 1024 (`K`, `KiB`, `KB` are one), case ignored.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a size: write 512MiB or 1.5GiB"))?;
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        other => {
            return Err(format!(
                "`{other}` is not a unit of size: use KiB, MiB, GiB or TiB"
            ));
        }
    };
    Ok((number * 1024f64.powi(power)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_shown() {
        assert_eq!(parse("512MiB"), Ok(512 << 20));
        assert_eq!(parse("1.5g"), Ok(3 << 29));
        assert_eq!(parse("10_000"), Ok(10_000));
        assert!(parse("many").is_err());
        assert!(parse("5 parsecs").is_err());
        assert_eq!(display((512u64 << 20) as f64), "512.0 MiB");
        assert_eq!(display(800.0), "800 B");
    }

    #[test]
    fn folders_count_their_blocks() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/file"), vec![1u8; 100_000]).unwrap();
        let bytes = allocated_bytes(dir.path());
        assert!((100_000..400_000).contains(&bytes), "{bytes}");
        assert_eq!(allocated_bytes(&dir.path().join("gone")), 0);
    }
}
