//! The fuzz target's way into the decoding of batches.

use super::{Entry, RawBatch, StepKind};

/// Any bytes decode to entries or to an error, and entries that decode can be pushed again and decode to the same.
///
/// # Panics
/// If that does not hold.
pub fn fuzz_decode(bytes: &[u8]) {
    let Ok(batch) = RawBatch::from_bytes(bytes.to_vec()) else {
        return;
    };
    let Ok(entries) = batch.iter().collect::<Result<Vec<Entry<'_>>, _>>() else {
        return;
    };
    assert_eq!(entries.len(), batch.count() as usize);
    let mut again = RawBatch::default();
    again.set_sequence(batch.sequence());
    for entry in &entries {
        let pushed = again.push(entry.family, entry.kind, entry.key, entry.value);
        assert!(pushed.is_ok(), "what was decoded is refused: {pushed:?}");
    }
    if batch.kind() != StepKind::Batch {
        let named = again.make_step(batch.kind(), batch.name());
        assert!(named.is_ok(), "a name that was decoded is refused: {named:?}");
    }
    let Ok(again) = RawBatch::from_bytes(again.as_bytes().to_vec()) else {
        panic!("what was encoded is refused");
    };
    assert_eq!(
        (again.sequence(), again.kind(), again.name()),
        (batch.sequence(), batch.kind(), batch.name())
    );
    let decoded = again.iter().collect::<Result<Vec<_>, _>>();
    assert_eq!(decoded.as_deref().ok(), Some(entries.as_slice()));
}
