//! WRITE 5: memtables to an SSTable of level 0, and large values to a blob file.

use std::sync::Arc;

use crate::error::Result;
use crate::key::{Cursor, FragmentedTombstones, Sequence};
use crate::memtable::Memtable;
use crate::read::MergingCursor;
use crate::rewrite::{OutputContext, Outputs, RowSource, Rows, Rules, Written, carried_tombstones};

/// Writes sealed memtables of one family, newest first, into one table and, if there are large
/// values, a blob file. Versions that no snapshot sees are dropped
/// on the way. `snapshots` are those that were alive after the memtables were sealed. Gives no file if nothing is
/// left.
pub fn run(
    memtables: &[Arc<Memtable>],
    snapshots: Vec<Sequence>,
    output: &OutputContext<'_>,
) -> Result<Written> {
    let order = output.options.key_order.clone();
    for memtable in memtables {
        memtable.sort();
    }
    let cursors = memtables.iter().map(Memtable::cursor).collect();
    let tombstones: Vec<_> = memtables.iter().map(|table| table.range_tombstones()).collect();
    let tombstones = FragmentedTombstones::merge(&order, tombstones.iter().map(Arc::as_ref));
    let tombstones = Arc::new(tombstones);
    let mut merging = MergingCursor::new(order.clone(), cursors);
    merging.seek_to_first()?;
    let carried = carried_tombstones(&order, &tombstones, &snapshots, false);
    let rules = Rules {
        order: order.clone(),
        snapshots,
        bottommost: false,
        level: 0,
        tombstones,
        end: None,
        merge_operator: output.options.merge_operator.clone(),
        filter: None,
        fetch: None,
    };
    // What lies below is not asked: a tombstone stays unless it is hidden itself.
    let mut rows = Rows::new(merging, |_: &[u8]| true, rules);
    let mut outputs = Outputs::new(output, Arc::new(carried));
    while rows.advance()? {
        outputs.add(rows.key(), rows.value(), RowSource::Memtable)?;
    }
    outputs.finish()
}
