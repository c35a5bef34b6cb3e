//! The rows: keys, values that prove themselves, and reproducible random choices.
//!
//! A key is the row's number in decimal, zero-padded to the run's length of keys (ten digits at least), so numeric
//! order is byte order. [`Keys`] is the one place that makes keys. A value is
//! eight bytes of row number, eight bytes of version (0 from the load, `i + 1` from the `i`-th later write),
//! then a slice out of a fixed pool whose place is a hash of both. So a value read back says which write it
//! claims to be, all of its bytes are checked against that claim, and making one costs a memory copy.
//!
//! The pool is what db_bench's generator makes: pieces of 100 bytes, each a random part repeated to give the wanted
//! compressibility.

/// Digits of a row's number in its key, and so the shortest key, in bytes: the report's.
pub const KEY_BYTES_MIN: usize = 10;

/// The longest key, in bytes: what Esker takes.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// Rows there can be at most: ten digits.
pub const ROWS_MAX: u64 = 10_000_000_000;

/// Shortest value there can be: the row and version numbers.
pub const VALUE_BYTES_MIN: usize = 16;

const POOL_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 100;

/// What all rows of a run follow from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dataset {
    /// Rows of the loaded database.
    pub rows: u64,
    /// How keys are made.
    pub keys: Keys,
    /// Length of values, in bytes.
    pub value_bytes: usize,
    /// Share of its size that a value compresses to.
    pub compressibility: f64,
    /// Seed of the values.
    pub seed: u64,
}

impl Dataset {
    /// Key and value bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        (self.keys.key_bytes + self.value_bytes) as u64
    }

    /// Key and value bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.row_bytes())
    }

    /// The maker of its values.
    pub fn values(&self) -> Values {
        Values::new(self.seed, self.value_bytes, self.compressibility)
    }
}

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

/// The keys of a run: all of one length, as in db_bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    key_bytes: usize,
}

impl Keys {
    /// Keys of `key_bytes` bytes, from [`KEY_BYTES_MIN`] to [`KEY_BYTES_MAX`]; what is outside is taken to the nearer
    /// of both.
    pub fn new(key_bytes: usize) -> Keys {
        Keys {
            key_bytes: key_bytes.clamp(KEY_BYTES_MIN, KEY_BYTES_MAX),
        }
    }

    /// Length of every key, in bytes.
    pub fn key_bytes(self) -> usize {
        self.key_bytes
    }

    /// The key of row 0, to be set to other rows.
    pub fn first(self) -> Key {
        Key {
            bytes: vec![b'0'; self.key_bytes],
        }
    }

    /// The row number that `key` names, if it is one of these keys.
    #[inline]
    pub fn row_of(self, key: &[u8]) -> Option<u64> {
        let (padding, digits) = key.split_last_chunk::<KEY_BYTES_MIN>()?;
        if key.len() != self.key_bytes || padding.iter().any(|&byte| byte != b'0') {
            return None;
        }
        digits.iter().try_fold(0u64, |row, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| row * 10 + u64::from(digit))
        })
    }
}

/// A key, in a buffer that is set from row to row: only the digits are written again.
#[derive(Clone, Debug)]
pub struct Key {
    bytes: Vec<u8>,
}

impl Key {
    /// Makes it the key of row number `row` (below [`ROWS_MAX`]).
    #[inline]
    pub fn set(&mut self, row: u64) -> &[u8] {
        let mut rest = row;
        if let Some(digits) = self.bytes.last_chunk_mut::<KEY_BYTES_MIN>() {
            for pair in digits.rchunks_exact_mut(2) {
                let two = (rest % 100) as u8;
                rest /= 100;
                pair[0] = b'0' + two / 10;
                pair[1] = b'0' + two % 10;
            }
        }
        &self.bytes
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
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
    use rustix::time::{ClockId, clock_gettime};

    #[test]
    fn keys_end_in_ten_digits() {
        let mut key = Keys::new(10).first();
        assert_eq!(key.bytes(), b"0000000000");
        assert_eq!(key.set(1_234_567_890), b"1234567890");
        assert_eq!(key.set(ROWS_MAX - 1), b"9999999999");
        let keys = Keys::new(16);
        assert_eq!(keys.first().set(1_234_567_890), b"0000001234567890");
        assert_eq!(keys.row_of(b"0000001234567890"), Some(1_234_567_890));
        for other in [
            "1234567890",
            "000001234567890",
            "00000012345678.0",
            "1000001234567890",
            "0000001234567890.",
        ] {
            assert_eq!(keys.row_of(other.as_bytes()), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn key_order_is_row_order(a in 0..ROWS_MAX, b in 0..ROWS_MAX, key_bytes in 10usize..100) {
            let keys = Keys::new(key_bytes);
            let (mut first, mut second) = (keys.first(), keys.first());
            prop_assert_eq!(first.set(a).cmp(second.set(b)), a.cmp(&b));
            prop_assert_eq!(first.bytes().len(), key_bytes);
            // The same buffer, set again, keeps nothing of the row before.
            first.set(b);
            prop_assert_eq!(keys.row_of(first.set(a)), Some(a));
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

    /// What this thread has used: others may use more.
    fn own_cpu_ns() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    }

    #[test]
    fn rows_are_cheap_to_make() {
        let values = Values::new(7, 800, 0.5);
        let (mut key, mut value) = (Keys::new(KEY_BYTES_MIN).first(), vec![0; 800]);
        let mut best_ns = f64::MAX;
        let mut sink = 0u64;
        for round in 0..20u64 {
            let start = own_cpu_ns();
            for i in 0..10_000 {
                let row = pick(1, i, 2_500_000);
                values.write(row, round, &mut value);
                sink = sink.wrapping_add(u64::from(key.set(row)[9]) + u64::from(value[700]));
            }
            best_ns = best_ns.min((own_cpu_ns() - start) / 10_000.0);
        }
        assert_ne!(sink, 0);
        // Some 30 ns when optimised; this bound only catches a generator that has become a workload of its own.
        assert!(best_ns < 400.0, "{best_ns} ns a row");
    }
}
