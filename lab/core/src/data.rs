//! The rows: keys, values that prove themselves, and reproducible random choices.
//!
//! A key is the row's number in decimal, zero-padded to ten digits, so numeric order is byte order. A value is
//! eight bytes of row number, eight bytes of version (0 from the load, `i + 1` from the `i`-th later write),
//! then a slice out of a fixed pool whose place is a hash of both. So a value read back says which write it
//! claims to be, all of its bytes are checked against that claim, and making one costs a memory copy.
//!
//! The pool is what db_bench's generator makes: pieces of 100 bytes, each a random part repeated to give the wanted
//! compressibility.

/// Length of every key, in bytes, as in the report.
pub const KEY_BYTES: usize = 10;

/// Rows there can be at most: ten digits.
pub const ROWS_MAX: u64 = 10_000_000_000;

/// Shortest value there can be: the row and version numbers.
pub const VALUE_BYTES_MIN: usize = 16;

const POOL_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 100;

/// A key's bytes.
pub type Key = [u8; KEY_BYTES];

/// Mixes a number into one that looks random (the finalizer of SplitMix64); a bijection.
#[inline]
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The `i`-th random choice below `n` of the stream `seed`: uniform, with replacement, and computable for any `i`
/// without the ones before it.
#[inline]
pub fn pick(seed: u64, i: u64, n: u64) -> u64 {
    ((u128::from(mix(seed ^ mix(i))) * u128::from(n)) >> 64) as u64
}

/// Writes row number `row` (below [`ROWS_MAX`]) as a key.
#[inline]
pub fn write_key(row: u64, key: &mut Key) {
    let mut rest = row;
    for pair in key.rchunks_exact_mut(2) {
        let two = (rest % 100) as u8;
        rest /= 100;
        pair[0] = b'0' + two / 10;
        pair[1] = b'0' + two % 10;
    }
}

/// Row number `row` as a key.
#[inline]
pub fn key(row: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    write_key(row, &mut key);
    key
}

/// The row number that a key names, if it is one of ours.
#[inline]
pub fn row_of(key: &[u8]) -> Option<u64> {
    if key.len() != KEY_BYTES {
        return None;
    }
    key.iter().try_fold(0u64, |row, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| row * 10 + u64::from(digit))
    })
}

/// Makes values and checks them. Cheap to share by reference; immutable.
pub struct Values {
    pool: Vec<u8>,
    value_bytes: usize,
    seed: u64,
}

impl Values {
    /// Values of `value_bytes` bytes (at least [`VALUE_BYTES_MIN`]) that compress to `compressibility` (0 to 1) of
    /// their size. The same arguments make the same values in every process.
    pub fn new(seed: u64, value_bytes: usize, compressibility: f64) -> Self {
        let value_bytes = value_bytes.max(VALUE_BYTES_MIN);
        let random_bytes =
            ((PIECE_BYTES as f64 * compressibility.clamp(0.0, 1.0)) as usize).clamp(1, PIECE_BYTES);
        let mut pool = Vec::with_capacity(POOL_BYTES + value_bytes);
        let mut state = seed;
        while pool.len() < POOL_BYTES + value_bytes {
            let mut part = [0u8; PIECE_BYTES];
            for byte in &mut part[..random_bytes] {
                state = state.wrapping_add(1);
                *byte = b' ' + (mix(state) % 95) as u8;
            }
            pool.extend((0..PIECE_BYTES).map(|i| part[i % random_bytes]));
        }
        Values {
            pool,
            value_bytes,
            seed,
        }
    }

    /// Length of every value, in bytes.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    fn filling(&self, row: u64, version: u64) -> &[u8] {
        let at = pick(self.seed, row ^ version.rotate_left(32), POOL_BYTES as u64) as usize;
        &self.pool[at..at + self.value_bytes - VALUE_BYTES_MIN]
    }

    /// Writes the value that write number `version` gives `row`; `value` must have [`Self::value_bytes`] bytes.
    #[inline]
    pub fn write(&self, row: u64, version: u64, value: &mut [u8]) {
        value[..8].copy_from_slice(&row.to_le_bytes());
        value[8..16].copy_from_slice(&version.to_le_bytes());
        value[16..].copy_from_slice(self.filling(row, version));
    }

    /// The version of `value`, or `None` if its bytes are not those of any write to `row`.
    #[inline]
    pub fn check(&self, row: u64, value: &[u8]) -> Option<u64> {
        if value.len() != self.value_bytes {
            return None;
        }
        let (head, filling) = value.split_at(VALUE_BYTES_MIN);
        let (written_row, version) = head.split_at(8);
        if written_row != row.to_le_bytes() {
            return None;
        }
        let version = u64::from_le_bytes(version.try_into().ok()?);
        (filling == self.filling(row, version)).then_some(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

    #[test]
    fn keys_are_ten_digits() {
        assert_eq!(&key(0), b"0000000000");
        assert_eq!(&key(1_234_567_890), b"1234567890");
        assert_eq!(&key(ROWS_MAX - 1), b"9999999999");
        assert_eq!(row_of(b"00000000.1"), None);
        assert_eq!(row_of(b"000000001"), None);
    }

    proptest! {
        #[test]
        fn key_order_is_row_order(a in 0..ROWS_MAX, b in 0..ROWS_MAX) {
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
            prop_assert_eq!(row_of(&key(a)), Some(a));
        }

        #[test]
        fn values_prove_themselves(row in 0..ROWS_MAX, version in any::<u64>(), at in 0usize..800, bit in 0u8..8) {
            let values = Values::new(7, 800, 0.5);
            let mut value = vec![0; 800];
            values.write(row, version, &mut value);
            prop_assert_eq!(values.check(row, &value), Some(version));
            prop_assert_eq!(values.check(row + 1, &value), None);
            prop_assert_eq!(values.check(row, &value[1..]), None);
            value[at] ^= 1 << bit;
            prop_assert_eq!(values.check(row, &value), None);
        }

        #[test]
        fn picks_stay_below(seed in any::<u64>(), i in any::<u64>(), n in 1u64..1 << 40) {
            prop_assert!(pick(seed, i, n) < n);
        }
    }

    #[test]
    fn picks_are_uniform() {
        let mut counts = [0u32; 64];
        for i in 0..64_000 {
            counts[pick(3, i, 64) as usize] += 1;
        }
        // 1000 expected in each; six standard deviations is 190.
        assert!(counts.iter().all(|&c| (810..1190).contains(&c)), "{counts:?}");
    }

    #[test]
    fn rows_are_cheap_to_make() {
        let values = Values::new(7, 800, 0.5);
        let mut value = vec![0; 800];
        let mut best_ns = f64::MAX;
        let mut sink = 0u64;
        for round in 0..20u64 {
            let start = Instant::now();
            for i in 0..10_000 {
                let row = pick(1, i, 2_500_000);
                let key = key(row);
                values.write(row, round, &mut value);
                sink = sink.wrapping_add(u64::from(key[9]) + u64::from(value[700]));
            }
            best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / 10_000.0);
        }
        assert_ne!(sink, 0);
        // Some 30 ns when optimised; this bound only catches a generator that has become a workload of its own.
        assert!(best_ns < 400.0, "{best_ns} ns a row");
    }
}
