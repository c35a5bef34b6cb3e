//! What the test `kill_loop` and its child agree upon.

/// Keys are used again, so that there is something to compact.
const KEYS: u64 = 500;

/// The key of a write.
pub fn key(number: u64) -> Vec<u8> {
    format!("key{:06}", number * 7919 % KEYS).into_bytes()
}

/// The value of a write: its number, and some weight.
pub fn value(number: u64) -> Vec<u8> {
    let weight = "x".repeat((number % 300) as usize);
    format!("{number} {weight}").into_bytes()
}

/// The number of the write that made a value, if it is whole.
pub fn number(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let number = text.split(' ').next()?.parse().ok()?;
    (value(number) == bytes).then_some(number)
}
