//! Keys and values as text, out and back in.
//!
//! The plain form shows printable ASCII as it is, a backslash as `\\`, and every other byte as `\xNN`. Reading takes
//! that form back to the same bytes; it also takes `\n`, `\r`, `\t` and `\0`, and non-ASCII text as its UTF-8 bytes.
//! `--hex` is two digits a byte. `--u64` is for values only: eight bytes, little-endian, as a decimal number.

use std::ffi::OsStr;
use std::io::{self, Write};

use crate::failure::{Failure, Result};

/// How bytes are written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Printable ASCII, and escapes.
    Plain,
    /// Two digits a byte.
    Hex,
    /// A decimal number of eight bytes; bytes of another length as in `Plain`.
    U64,
}

impl Form {
    /// The bytes that `text` stands for. `what` names it in messages.
    pub fn parse(self, what: &str, text: &OsStr) -> Result<Vec<u8>> {
        let text = text.as_encoded_bytes();
        match self {
            Self::Plain => unescape(text).map_err(|at| {
                Failure::usage(
                    format!(
                        "{what}: no escape at byte {at} of '{}'",
                        String::from_utf8_lossy(text)
                    ),
                    r"escapes are \xNN, \\, \n, \r, \t and \0; a backslash itself is \\",
                )
            }),
            Self::Hex => from_hex(text).ok_or_else(|| {
                Failure::usage(
                    format!("{what}: '{}' is not hexadecimal", String::from_utf8_lossy(text)),
                    "with --hex, keys and values are two hexadecimal digits for each byte",
                )
            }),
            Self::U64 => {
                let number = std::str::from_utf8(text)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok());
                number.map(|number| number.to_le_bytes().to_vec()).ok_or_else(|| {
                    Failure::usage(
                        format!("{what}: '{}' is no number", String::from_utf8_lossy(text)),
                        "with --u64, values are numbers from 0 to 18446744073709551615",
                    )
                })
            }
        }
    }

    /// Writes bytes as text.
    pub fn write(self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain => escape(out, bytes),
            Self::Hex => bytes.iter().try_for_each(|byte| out.write_all(&hex(*byte))),
            Self::U64 => match <[u8; 8]>::try_from(bytes) {
                Ok(number) => write!(out, "{}", u64::from_le_bytes(number)),
                Err(_) => escape(out, bytes),
            },
        }
    }

    /// The text of bytes.
    pub fn text(self, bytes: &[u8]) -> String {
        let mut text = Vec::with_capacity(bytes.len());
        // Writing to memory can't fail, and what is written is ASCII.
        let _ = self.write(&mut text, bytes);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Appends the text of bytes as a JSON value: a string, or a number in the form `U64`.
    pub fn write_json(self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        if self == Self::U64 && bytes.len() == 8 {
            return self.write(out, bytes);
        }
        out.write_all(b"\"")?;
        if self == Self::Hex {
            self.write(out, bytes)?;
        } else {
            escape_json(out, bytes)?;
        }
        out.write_all(b"\"")
    }

    /// The JSON value of bytes.
    pub fn json(self, bytes: &[u8]) -> serde_json::Value {
        match <[u8; 8]>::try_from(bytes) {
            Ok(number) if self == Self::U64 => u64::from_le_bytes(number).into(),
            _ => self.text(bytes).into(),
        }
    }
}

fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte) && byte != b'\\'
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex(byte: u8) -> [u8; 2] {
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// Writes runs of plain bytes at once, and calls `other` for what stands between them.
fn runs<W: Write>(
    out: &mut W,
    mut bytes: &[u8],
    plain: impl Fn(u8) -> bool,
    other: impl Fn(&mut W, u8) -> io::Result<()>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let run = bytes.iter().position(|&byte| !plain(byte)).unwrap_or(bytes.len());
        out.write_all(&bytes[..run])?;
        if let Some(&byte) = bytes.get(run) {
            other(out, byte)?;
        }
        bytes = bytes.get(run + 1..).unwrap_or_default();
    }
    Ok(())
}

fn escape<W: Write>(out: &mut W, bytes: &[u8]) -> io::Result<()> {
    runs(out, bytes, is_plain, |out, byte| {
        if byte == b'\\' {
            return out.write_all(br"\\");
        }
        out.write_all(br"\x")?;
        out.write_all(&hex(byte))
    })
}

/// The plain form within a JSON string, where backslashes and quotes are escaped once more.
fn escape_json<W: Write>(out: &mut W, bytes: &[u8]) -> io::Result<()> {
    let plain = |byte| is_plain(byte) && byte != b'"';
    runs(out, bytes, plain, |out, byte| match byte {
        b'"' => out.write_all(br#"\""#),
        b'\\' => out.write_all(br"\\\\"),
        _ => {
            out.write_all(br"\\x")?;
            out.write_all(&hex(byte))
        }
    })
}

/// The bytes of escaped text, or where it is no escape.
fn unescape(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte != b'\\' {
            bytes.push(byte);
            at += 1;
            continue;
        }
        let (byte, len) = match text.get(at + 1) {
            Some(b'\\') => (b'\\', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(b'0') => (0, 2),
            Some(b'x') => {
                let digits = text.get(at + 2..at + 4).and_then(from_hex).ok_or(at)?;
                (*digits.first().ok_or(at)?, 4)
            }
            _ => return Err(at),
        };
        bytes.push(byte);
        at += len;
    }
    Ok(bytes)
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let pairs = text.chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_printed_can_be_typed(bytes: Vec<u8>) {
            for form in [Form::Plain, Form::Hex] {
                let text = form.text(&bytes);
                prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                prop_assert_eq!(&form.parse("KEY", OsStr::new(&text)).unwrap(), &bytes);
            }
        }

        #[test]
        fn json_holds_the_same_text(bytes: Vec<u8>) {
            for form in [Form::Plain, Form::Hex, Form::U64] {
                let mut out = Vec::new();
                form.write_json(&mut out, &bytes).unwrap();
                let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
                prop_assert_eq!(value, form.json(&bytes));
            }
        }

        #[test]
        fn numbers_come_back(number: u64) {
            let bytes = number.to_le_bytes();
            prop_assert_eq!(Form::U64.text(&bytes), number.to_string());
            prop_assert_eq!(Form::U64.parse("V", OsStr::new(&number.to_string())).unwrap(), bytes);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            for form in [Form::Plain, Form::Hex, Form::U64] {
                let _ = form.parse("KEY", OsStr::new(&text));
            }
        }
    }

    #[test]
    fn the_plain_form_is_as_documented() {
        assert_eq!(Form::Plain.text(b"a b\\\0\n\xff\"~"), r#"a b\\\x00\x0a\xff"~"#);
        let read = Form::Plain.parse("KEY", OsStr::new(r"\n\r\t\0\\é")).unwrap();
        assert_eq!(read, "\n\r\t\0\\é".as_bytes());
    }

    #[test]
    fn what_is_no_escape_is_refused_with_its_place() {
        for (text, at) in [(r"a\", 1), (r"\x", 0), (r"ab\xg0", 2), (r"\q", 0), (r"\x1", 0)] {
            assert_eq!(unescape(text.as_bytes()), Err(at), "{text}");
        }
        assert!(Form::Hex.parse("KEY", OsStr::new("abc")).is_err());
        assert!(Form::Hex.parse("KEY", OsStr::new("zz")).is_err());
        assert!(Form::U64.parse("VALUE", OsStr::new("-1")).is_err());
    }
}
