//! The rows that a golden database must have, as text that a person can read and compare.
//!
//! ```text
//! [family]
//! key = value                  printable bytes as they are, others as \xx
//! key : length checksum        of longer values; the checksum is CRC-32C, in hexadecimal digits
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use esker::codec::checksum;

/// Values up to this length stand in the text themselves.
const INLINE_LEN_MAX: usize = 24;

/// For each family the text of every row, by the text of its key.
pub struct Expected {
    families: BTreeMap<String, BTreeMap<String, String>>,
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.,+".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(text, "\\{byte:02x}");
        }
    }
    text
}

fn value_text(value: &[u8]) -> String {
    if value.len() <= INLINE_LEN_MAX {
        format!("= {}", escaped(value))
    } else {
        format!(": {} {:08x}", value.len(), checksum(&[value]))
    }
}

impl Expected {
    /// Of the rows that an oracle holds.
    pub fn new<'a>(families: impl IntoIterator<Item = (&'a str, &'a BTreeMap<Vec<u8>, Vec<u8>>)>) -> Self {
        let row = |(key, value): (&Vec<u8>, &Vec<u8>)| (escaped(key), value_text(value));
        Self {
            families: families
                .into_iter()
                .map(|(name, rows)| (name.to_owned(), rows.iter().map(row).collect()))
                .collect(),
        }
    }

    /// The families.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, rows) in &self.families {
            let _ = writeln!(text, "[{name}]");
            for (key, value) in rows {
                let _ = writeln!(text, "{key} {value}");
            }
        }
        text
    }

    pub fn from_text(text: &str) -> Self {
        let mut families: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                family = name.to_owned();
                families.entry(family.clone()).or_default();
            } else {
                let (key, value) = line.split_once(' ').expect("a row");
                let rows = families.entry(family.clone()).or_default();
                rows.insert(key.to_owned(), value.to_owned());
            }
        }
        Self { families }
    }

    /// Fails unless `rows` are exactly those of the family.
    pub fn compare(&self, family: &str, rows: &[(Vec<u8>, Vec<u8>)]) {
        let expected = &self.families[family];
        for (key, value) in rows {
            let key = escaped(key);
            assert_eq!(expected.get(&key), Some(&value_text(value)), "{family}: {key}");
        }
        assert_eq!(rows.len(), expected.len(), "{family}: rows are missing");
    }
}
