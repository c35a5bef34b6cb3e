//! The merge operators that come with the engine.

use super::MergeOperator;
use crate::error::{Error, Result};

/// Appends operands to the value, with a separator between two of them.
#[derive(Clone, Debug, Default)]
pub struct AppendOperator {
    /// What stands between two parts.
    pub separator: Vec<u8>,
}

impl AppendOperator {
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

impl MergeOperator for AppendOperator {
    fn name(&self) -> &str {
        "esker.append"
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
            "merge operator esker.u64-add takes values of 8 bytes; key {:?} has one of {}",
            String::from_utf8_lossy(key),
            bytes.len()
        ))
    })?;
    Ok(u64::from_le_bytes(bytes))
}

impl MergeOperator for U64AddOperator {
    fn name(&self) -> &str {
        "esker.u64-add"
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
    use super::*;

    #[test]
    fn append_is_independent_of_grouping() {
        let operator = AppendOperator {
            separator: b",".to_vec(),
        };
        let whole = operator.full_merge(b"k", Some(b"a"), &[b"b", b"c"]).unwrap();
        let partial = operator.partial_merge(b"k", &[b"b", b"c"]).unwrap();
        assert_eq!(whole, b"a,b,c");
        assert_eq!(operator.full_merge(b"k", Some(b"a"), &[&partial]).unwrap(), whole);
    }

    #[test]
    fn u64_add_refuses_other_widths() {
        let error = U64AddOperator.full_merge(b"k", Some(b"abc"), &[]).unwrap_err();
        assert!(error.message().contains("8 bytes"), "{error}");
        assert!(U64AddOperator.partial_merge(b"k", &[b"x"]).is_none());
    }
}
