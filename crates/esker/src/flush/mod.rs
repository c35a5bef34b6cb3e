//! WRITE 5: memtables to an SSTable of level 0, and large values to a blob file.

use std::sync::Arc;

use crate::error::Result;
use crate::hooks::{CompactionFilter, FilterContext, RewriteCause};
use crate::key::{Cursor, FragmentedTombstones, Sequence};
use crate::memtable::Memtable;
use crate::read::MergingCursor;
use crate::rewrite::{
    Expired, OutputContext, Outputs, RowFilter, RowSource, Rows, Rules, Written, carried_tombstones,
};
use crate::sstable::WriteTimes;

/// Writes sealed memtables of one family, newest first, into one table and, if there are large
/// values, a blob file. Versions that no snapshot sees are dropped
/// on the way. `snapshots` are those that were alive after the memtables were sealed. Gives no file if nothing is
/// left. `read_back` says that readers will want the rows, and that the cache has room for them.
pub fn run(
    memtables: &[Arc<Memtable>],
    snapshots: Vec<Sequence>,
    output: &OutputContext<'_>,
    read_back: bool,
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
        tombstones,
        end: None,
        merge_operator: output.options.merge_operator.clone(),
        filter: RowFilter::new(user_filter(output), Expired::Nothing),
        keep_sequences: false,
        fetch: None,
    };
    // What lies below is not asked: a tombstone stays unless it is hidden itself.
    let mut rows = Rows::new(merging, |_: &[u8]| true, rules);
    let mut outputs =
        Outputs::new(output, Arc::new(carried)).with_write_times(write_times(memtables, output));
    while rows.advance()? {
        outputs.add(rows.key(), rows.value(), RowSource::Memtable { read_back })?;
    }
    let dropped = rows.dropped();
    output.metrics.rows_filtered.add(dropped.removed);
    output.metrics.rows_changed.add(dropped.changed);
    outputs.finish()
}

/// The family's filter, if it is for flushes too.
fn user_filter(output: &OutputContext<'_>) -> Option<Box<dyn CompactionFilter>> {
    let factory = output.options.hooks.compaction_filter.as_ref()?;
    let context = FilterContext::new(0, false, RewriteCause::Flush);
    factory.filters_flushes().then(|| factory.create(&context))?
}

/// Where rows expire: all that is in the memtables was written by now.
fn write_times(memtables: &[Arc<Memtable>], output: &OutputContext<'_>) -> WriteTimes {
    let newest = memtables.iter().map(|memtable| memtable.sequence_max()).max();
    let now = output.env.clock.unix_seconds();
    let expires = output.options.aging.row_limit().is_some();
    WriteTimes::new(newest.filter(|_| expires).map(|sequence| (sequence, now)))
}
