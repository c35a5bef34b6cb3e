//! The mutation that a change stands for in a family with these settings.

use super::*;

/// The mutation; values are larger in `large` runs.
pub(super) fn mutation(change: &Change, settings: &FamilySettings, large: bool) -> Mutation {
    let key_of = key(change.key);
    let mut rng = Rng::new(change.value);
    let value = |rng: &mut Rng| match settings.merge {
        Merge::Add => rng.bits().to_le_bytes().to_vec(),
        _ => {
            let len = match rng.below(10) {
                0 => 0,
                1..5 => rng.below(20),
                _ if large => 500 + rng.below(3000),
                5..9 => rng.below(900),
                _ => rng.below(4000),
            };
            // Some compress and some don't.
            let runs = if rng.one_in(2) { 1 } else { 50 };
            let mut byte = 0;
            let next = |at: usize| {
                if at.is_multiple_of(runs) {
                    byte = rng.bits() as u8;
                }
                byte
            };
            (0..len).map(next).collect()
        }
    };
    match change.kind {
        ChangeKind::Delete => Mutation::Delete(key_of),
        ChangeKind::DeleteRange => {
            // Ends that are near each other in the order of keys, and sometimes no range at all.
            let mut keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
            let order = settings.model().order();
            keys.sort_by(|a, b| order.compare(a, b));
            let at = change.key % KEYS;
            let end = keys[(at + change.span).min(KEYS - 1)].clone();
            Mutation::DeleteRange(keys[at].clone(), end)
        }
        ChangeKind::Merge if settings.merge == Merge::Append => {
            let len = rng.below(12);
            Mutation::Merge(key_of, vec![b'a' + (change.value % 26) as u8; len])
        }
        ChangeKind::Merge if settings.merge == Merge::Add => Mutation::Merge(key_of, value(&mut rng)),
        ChangeKind::Put | ChangeKind::Merge => {
            let value = value(&mut rng);
            Mutation::Put(key_of, value)
        }
    }
}

/// Adds the mutation to a batch.
pub(super) fn add(batch: &mut WriteBatch, handle: &ColumnFamily, mutation: &Mutation) -> Result<()> {
    match mutation {
        Mutation::Put(key, value) => batch.put_cf(handle, key, value),
        Mutation::Delete(key) => batch.delete_cf(handle, key),
        Mutation::SingleDelete(key) => batch.single_delete_cf(handle, key),
        Mutation::DeleteRange(start, end) => batch.delete_range_cf(handle, start, end),
        Mutation::Merge(key, operand) => batch.merge_cf(handle, key, operand),
    }
}
