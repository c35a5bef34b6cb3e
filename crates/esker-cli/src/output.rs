//! Buffered output: text or JSON.

use std::io::{self, BufWriter, StdoutLock, Write};

/// Bytes that are collected before a system call.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output, and whether it is to be JSON.
pub struct Output {
    to: BufWriter<StdoutLock<'static>>,
    /// Write JSON, one object a line.
    pub json: bool,
}

impl Output {
    pub fn stdout(json: bool) -> Self {
        Self {
            to: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()),
            json,
        }
    }

    /// Writes a JSON value as one line.
    pub fn json_line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        writeln!(self.to, "{value}")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A number of bytes for people: `1.5 MiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_or_so() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 10, "1.5 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (5 << 40, "5.0 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
