//! The merge operators that come with the engine, and how a database that was opened by nothing but stored names gets
//! them back.

use std::fmt::Write as _;
use std::sync::Arc;

use super::MergeOperator;
use crate::error::{Error, Result};

const APPEND: &str = "esker.append";
const U64_ADD: &str = "esker.u64-add";

/// The operator that the engine itself has under this stored name; `None` for one of the user's own.
pub fn builtin_operator(name: &str) -> Option<Arc<dyn MergeOperator>> {
    if name == U64_ADD {
        return Some(Arc::new(U64AddOperator));
    }
    let operator = match name.strip_prefix(APPEND)? {
        "" => AppendOperator::default(),
        rest => AppendOperator::new(unescape(rest.strip_prefix(':')?)?),
    };
    // Each separator has one name: what is spelt otherwise was not written by this engine.
    (operator.name == name).then(|| Arc::new(operator) as Arc<dyn MergeOperator>)
}

/// Appends operands to the value, with a separator between two of them.
///
/// Its stored name carries the separator, as rows that were folded with one can't be read with another: opening with
/// another one is refused like any other operator. The name is `esker.append` without a separator, else
/// `esker.append:` and the separator, in which printable ASCII other than the backslash stands for itself and every
/// other byte as `\xNN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendOperator {
    separator: Vec<u8>,
    /// Follows from the separator.
    name: String,
}

impl Default for AppendOperator {
    fn default() -> Self {
        Self::new([])
    }
}

impl AppendOperator {
    /// With `separator` between two parts; empty: none.
    pub fn new(separator: impl Into<Vec<u8>>) -> Self {
        let separator = separator.into();
        let mut name = APPEND.to_owned();
        if !separator.is_empty() {
            name.push(':');
        }
        for &byte in &separator {
            match byte {
                b' '..=b'~' if byte != b'\\' => name.push(byte as char),
                _ => {
                    // Writing to a string can't fail.
                    let _ = write!(name, "\\x{byte:02x}");
                }
            }
        }
        Self { separator, name }
    }

    /// What stands between two parts.
    pub fn separator(&self) -> &[u8] {
        &self.separator
    }

    fn join<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, part) in parts.enumerate() {
            if i > 0 {
                out.extend_from_slice(&self.separator);
            }
            out.extend_from_slice(part);
        }
        out
    }
}

/// The bytes of a separator as names spell it; `None` if it is misspelt.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let [b'x', high, low, after @ ..] = rest else {
            return None;
        };
        rest = after;
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        bytes.push((digit(high)? * 16 + digit(low)?) as u8);
    }
    Some(bytes)
}

impl MergeOperator for AppendOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(self.join(base.into_iter().chain(operands.iter().copied())))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.join(operands.iter().copied()))
    }
}

/// Adds little-endian `u64` operands to the value, wrapping around; an absent value counts as 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct U64AddOperator;

fn number(key: &[u8], bytes: &[u8]) -> Result<u64> {
    let bytes = bytes.try_into().map_err(|_| {
        Error::invalid(format!(
            "merge operator {U64_ADD} takes values of 8 bytes; key {:?} has one of {}",
            String::from_utf8_lossy(key),
            bytes.len()
        ))
    })?;
    Ok(u64::from_le_bytes(bytes))
}

impl MergeOperator for U64AddOperator {
    fn name(&self) -> &str {
        U64_ADD
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let mut sum = base.map_or(Ok(0), |base| number(key, base))?;
        for operand in operands {
            sum = sum.wrapping_add(number(key, operand)?);
        }
        Ok(sum.to_le_bytes().to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn append_is_independent_of_grouping() {
        let operator = AppendOperator::new(*b",");
        let whole = operator.full_merge(b"k", Some(b"a"), &[b"b", b"c"]).unwrap();
        let partial = operator.partial_merge(b"k", &[b"b", b"c"]).unwrap();
        assert_eq!(whole, b"a,b,c");
        assert_eq!(operator.full_merge(b"k", Some(b"a"), &[&partial]).unwrap(), whole);
    }

    #[test]
    fn names_of_separators_are_as_the_format_says() {
        for (separator, name) in [
            (&b""[..], "esker.append"),
            (b",", "esker.append:,"),
            (b": ", "esker.append:: "),
            (b"\\\n\xff", r"esker.append:\x5c\x0a\xff"),
        ] {
            assert_eq!(AppendOperator::new(separator).name(), name);
        }
    }

    proptest! {
        #[test]
        fn every_separator_comes_back_from_its_name(separator: Vec<u8>) {
            let operator = AppendOperator::new(separator);
            let again = builtin_operator(operator.name()).unwrap();
            prop_assert_eq!(again.name(), operator.name());
            let parts: [&[u8]; 2] = [b"a", b"b"];
            prop_assert_eq!(again.partial_merge(b"k", &parts), operator.partial_merge(b"k", &parts));
        }

        #[test]
        fn a_name_that_is_known_is_the_only_one_of_its_operator(
            name in r"(esker\.(append|u64-add)?)?:?[,x]?(\\x?[0-9a-fA-F]{0,2}|.){0,3}",
        ) {
            if let Some(operator) = builtin_operator(&name) {
                prop_assert_eq!(operator.name(), name);
            }
        }
    }

    #[test]
    fn names_of_others_are_not_known() {
        for name in [
            "",
            "append",
            "esker.append:",
            "esker.append,",
            r"esker.append:\x2c",
            r"esker.append:\xFF",
            r"esker.append:\x0",
            "esker.append:\u{e9}",
            "esker.u64-add:",
        ] {
            assert!(builtin_operator(name).is_none(), "{name}");
        }
    }

    #[test]
    fn u64_add_refuses_other_widths() {
        let error = U64AddOperator.full_merge(b"k", Some(b"abc"), &[]).unwrap_err();
        assert!(error.message().contains("8 bytes"), "{error}");
        assert!(U64AddOperator.partial_merge(b"k", &[b"x"]).is_none());
    }
}
