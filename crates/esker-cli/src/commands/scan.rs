//! `scan`: prints rows in the order of keys, within bounds.

use std::io::Write;

use esker::{Db, Iter, KeyOrder, ReadOptions};

use crate::args::{Common, Scan};
use crate::database::{Access, family, open};
use crate::failure::{EXIT_OK, Result};
use crate::output::Output;

pub fn run(common: &Common, scan: &Scan, output: &mut Output) -> Result<u8> {
    print(common, scan, output, || open(common, Access::Read, None))
}

/// Prints the rows of the database that `open` gives, once it is clear which.
pub fn print(
    common: &Common,
    scan: &Scan,
    output: &mut Output,
    open: impl FnOnce() -> Result<Db>,
) -> Result<u8> {
    let parse = |what: &str, key: &Option<std::ffi::OsString>| {
        key.as_ref().map(|key| common.keys().parse(what, key)).transpose()
    };
    let bounds = Bounds {
        from: parse("--from", &scan.from)?,
        to: parse("--to", &scan.to)?,
        prefix: parse("--prefix", &scan.prefix)?.unwrap_or_default(),
    };
    let db = open()?;
    let family = family(&db, common)?;
    let (lower_bound, upper_bound) = bounds.of_iterator(&family.options().key_order);
    let options = ReadOptions {
        lower_bound,
        upper_bound,
        fill_cache: false,
        ..ReadOptions::default()
    };
    let mut rows = db.iter_cf(&family, options)?;
    let limit = scan.limit.unwrap_or(u64::MAX);
    let mut count = 0;
    if scan.reverse {
        rows.seek_to_last()?;
    } else {
        rows.seek_to_first()?;
    }
    while count < limit && rows.valid() {
        if rows.key().starts_with(&bounds.prefix) {
            count += 1;
            if !scan.count {
                row(common, scan, &rows, output)?;
            }
        }
        if scan.reverse {
            rows.prev()?;
        } else {
            rows.next()?;
        }
    }
    if scan.count {
        if output.json {
            writeln!(output, "{{\"count\":{count}}}")?;
        } else {
            writeln!(output, "{count}")?;
        }
    }
    Ok(EXIT_OK)
}

#[inline]
fn row(common: &Common, scan: &Scan, rows: &Iter, output: &mut Output) -> Result<()> {
    let (keys, values) = (common.keys(), common.values());
    if output.json {
        output.write_all(b"{\"key\":")?;
        keys.write_json(output, rows.key())?;
        if !scan.keys_only {
            output.write_all(b",\"value\":")?;
            values.write_json(output, rows.value())?;
        }
        output.write_all(b"}\n")?;
    } else {
        keys.write(output, rows.key())?;
        if !scan.keys_only {
            output.write_all(b"\t")?;
            values.write(output, rows.value())?;
        }
        output.write_all(b"\n")?;
    }
    Ok(())
}

/// What the command line asks for.
#[derive(Debug, Default)]
struct Bounds {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    prefix: Vec<u8>,
}

impl Bounds {
    /// The iterator's bounds: what lies within both the range and the prefix, but for a key or two that the prefix
    /// still has to be asked about.
    fn of_iterator(&self, order: &KeyOrder) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let (mut first, mut end) = (None, None);
        if !self.prefix.is_empty() {
            let behind = behind_prefix(&self.prefix);
            if order.is_bytewise() {
                (first, end) = (Some(self.prefix.clone()), behind);
            } else {
                // Descending: from what follows the prefix down to what precedes it. There is no longest key, so
                // the largest key before the prefix has no name; its shortest neighbour below is close enough.
                (first, end) = (behind, before(&self.prefix));
            }
        }
        let later = |a: Option<Vec<u8>>, b: Option<Vec<u8>>| match (a, b) {
            (Some(a), Some(b)) => Some(if order.compare(&a, &b).is_ge() { a } else { b }),
            (a, b) => a.or(b),
        };
        let earlier = |a: Option<Vec<u8>>, b: Option<Vec<u8>>| match (a, b) {
            (Some(a), Some(b)) => Some(if order.compare(&a, &b).is_le() { a } else { b }),
            (a, b) => a.or(b),
        };
        (later(self.from.clone(), first), earlier(self.to.clone(), end))
    }
}

/// The first key, by bytes, behind all that begin with `prefix`; `None` if there is none.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

/// A key that comes, by bytes, before `key`, as close as is easily named; `None` before the empty key.
fn before(key: &[u8]) -> Option<Vec<u8>> {
    let (&last, rest) = key.split_last()?;
    let mut before = rest.to_vec();
    if last > 0 {
        before.push(last - 1);
        before.extend_from_slice(&[0xff; 8]);
    }
    Some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::ReverseBytewiseComparator;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0xfe), Just(0xff)], 0..4)
    }

    proptest! {
        #[test]
        fn no_key_that_was_asked_for_is_out_of_bounds(
            from in prop::option::of(key()), to in prop::option::of(key()), prefix in key(), key in key(),
            reverse: bool,
        ) {
            let order = match reverse {
                true => KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
                false => KeyOrder::Bytewise,
            };
            let bounds = Bounds { from, to, prefix };
            let (first, end) = bounds.of_iterator(&order);
            let within = |first: &Option<Vec<u8>>, end: &Option<Vec<u8>>| {
                first.as_ref().is_none_or(|first| order.compare(&key, first).is_ge())
                    && end.as_ref().is_none_or(|end| order.compare(&key, end).is_lt())
            };
            let wanted = within(&bounds.from, &bounds.to) && key.starts_with(&bounds.prefix);
            let given = within(&first, &end) && key.starts_with(&bounds.prefix);
            prop_assert_eq!(given, wanted);
            if !reverse {
                prop_assert_eq!(within(&first, &end), wanted, "bytewise bounds are exact");
            }
        }
    }
}
