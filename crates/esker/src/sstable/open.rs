//! Opens tables.
//!
//! Opening reads the last 64 KiB of the file, which hold all that opening needs of most tables: footer, properties,
//! range tombstones and the top of index and filter. Partitions of index and filter stay with the table where they
//! are small; else they come and go through the block cache like data.
//!
//! A filter that is damaged or missing only costs speed: the table then answers without it, and a warning and
//! [`Table::verify`] name the damage.

use std::path::Path;
use std::sync::Arc;

use esker_env::RandomFile;

use super::block::Block;
use super::file::{TableFile, read_exact};
use super::filter::is_filter;
use super::format::{BlockHandle, FOOTER_LEN, Footer, HEADER_LEN, check_header};
use super::options::TableOpenOptions;
use super::properties::TableProperties;
use super::table::{Filter, Table};
use super::tombstones::decode_tombstones;
use crate::cache::{BlockCache, SharedBytes, zeroed};
use crate::error::{Error, Result};
use crate::key::{FragmentedTombstones, KeyOrder, RangeTombstone, SEQUENCE_MAX};
use crate::metrics::Metrics;

/// What is read from the file's end at once.
const TAIL_BYTES: u64 = 64 << 10;

impl Table {
    /// Opens a table. `number` names it in the cache; it is unique in the database for ever.
    ///
    /// # Errors
    /// `Corruption` with file and offset; `Unsupported` for a newer format; `InvalidArgument` if the table was
    /// written under another order of keys or by another database; and what the file says.
    pub fn open(
        file: Arc<dyn RandomFile>,
        path: &Path,
        number: u64,
        order: KeyOrder,
        cache: Arc<BlockCache>,
        metrics: Arc<Metrics>,
        options: &TableOpenOptions,
    ) -> Result<Self> {
        let len = file
            .len()
            .map_err(|error| Error::io("can't read table", error).in_file(path))?;
        let (tail_offset, tail) = read_tail(&*file, path, len)?;
        let footer_at = tail.len().saturating_sub(FOOTER_LEN);
        let footer = Footer::decode(&tail[footer_at..]).map_err(|error| {
            error
                .in_file(path)
                .at_offset(len.saturating_sub(FOOTER_LEN as u64))
        })?;
        if tail_offset == 0 {
            check_header(&tail[..HEADER_LEN.min(footer_at)])
                .map_err(|error| error.in_file(path).at_offset(0))?;
        }
        if options.database_id.is_some_and(|id| id != footer.database_id) {
            return Err(Error::invalid("the table belongs to another database").in_file(path));
        }
        let file = TableFile {
            file,
            path: path.to_owned(),
            number,
            file_id: footer.file_id,
            blocks_end: len - FOOTER_LEN as u64,
            cache,
            metrics,
        };
        let tail = Tail {
            file: &file,
            offset: tail_offset,
            bytes: tail,
        };
        let properties = TableProperties::decode(&tail.read(footer.properties)?)
            .ok_or_else(|| file.corrupt(footer.properties.offset, "properties are malformed"))?;
        if properties.comparator != order.name() {
            return Err(Error::invalid(format!(
                "the table is ordered by '{}', not by '{}'",
                properties.comparator,
                order.name()
            ))
            .in_file(path));
        }
        // Bounded, so that no sum of a stored number and the shift passes what a number can be.
        if properties.sequence_max.saturating_add(options.sequence_shift) > SEQUENCE_MAX {
            return Err(file.corrupt(footer.properties.offset, "a sequence number is impossible"));
        }
        let mut range_tombstones_stored = 0;
        let range_tombstones = if footer.range_tombstones.is_none() {
            FragmentedTombstones::default()
        } else {
            let raw = decode_tombstones(&tail.read(footer.range_tombstones)?).ok_or_else(|| {
                file.corrupt(footer.range_tombstones.offset, "range tombstones are malformed")
            })?;
            range_tombstones_stored = raw.len() as u64;
            let tombstones = raw.into_iter().map(|(start, end, sequence)| RangeTombstone {
                start,
                end,
                sequence: sequence.saturating_add(options.sequence_shift).min(SEQUENCE_MAX),
            });
            FragmentedTombstones::new(&order, tombstones)
        };
        let index = tail.block(footer.index)?;
        let index_pinned = if footer.index_partitioned {
            read_partitions(&tail, &index, options.index_pinned_bytes_max)?
                .into_iter()
                .map(|(handle, contents)| file.parse(handle, contents))
                .collect::<Result<Vec<_>>>()?
        } else {
            Vec::new()
        };
        let filter = open_filter(&tail, &footer, &properties, options).unwrap_or_else(|error| {
            tracing::warn!(%error, "reading a table without its filter");
            None
        });
        drop(tail);
        let mut table = Self {
            file,
            order,
            footer,
            index,
            index_pinned,
            filter,
            range_tombstones: Arc::new(range_tombstones),
            range_tombstones_stored,
            sequence_shift: options.sequence_shift,
            properties,
            memory_bytes: 0,
        };
        table.memory_bytes = table.count_memory();
        Ok(table)
    }
}

/// The end of the file that was read at once.
struct Tail<'a> {
    file: &'a TableFile,
    offset: u64,
    bytes: Vec<u8>,
}

impl Tail<'_> {
    /// The contents of a block, out of the tail or else from the file; in memory of its own.
    fn read(&self, handle: BlockHandle) -> Result<SharedBytes> {
        let len = self.file.stored_len(handle)?;
        let inside = handle
            .offset
            .checked_sub(self.offset)
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| self.bytes.get(at..at.checked_add(len)?));
        match inside {
            Some(stored) => self.file.contents(&Arc::from(stored), 0, handle, true),
            None => self.file.read(handle, true),
        }
    }

    fn block(&self, handle: BlockHandle) -> Result<Block> {
        self.file.parse(handle, self.read(handle)?)
    }
}

fn read_tail(file: &dyn RandomFile, path: &Path, len: u64) -> Result<(u64, Vec<u8>)> {
    if len < (HEADER_LEN + FOOTER_LEN) as u64 {
        let error = Error::corruption(format!("a file of {len} bytes is too short to be an SSTable"));
        return Err(error.in_file(path));
    }
    let offset = len.saturating_sub(TAIL_BYTES);
    let mut tail = vec![0; (len - offset) as usize];
    read_exact(file, path, offset, &mut tail)?;
    Ok((offset, tail))
}

/// The partitions that `index` leads to, in one read, if they take at most `bytes_max`; else none.
fn read_partitions(
    tail: &Tail<'_>,
    index: &Block,
    bytes_max: u64,
) -> Result<Vec<(BlockHandle, SharedBytes)>> {
    let file = tail.file;
    let handles = (0..index.len())
        .map(|i| BlockHandle::parse(index.value(i)))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| file.corrupt(file.blocks_end, "an index entry is malformed"))?;
    let total: u64 = handles
        .iter()
        .fold(0, |sum, handle| sum.saturating_add(handle.size));
    if total > bytes_max {
        return Ok(Vec::new());
    }
    let contiguous = handles
        .windows(2)
        .all(|pair| pair[0].end() == Some(pair[1].offset));
    let (Some(first), Some(end)) = (handles.first(), handles.last().and_then(BlockHandle::end)) else {
        return Ok(Vec::new());
    };
    if !contiguous || first.offset >= tail.offset || end > file.blocks_end {
        return handles
            .iter()
            .map(|&handle| Ok((handle, tail.read(handle)?)))
            .collect();
    }
    let mut buffer = zeroed((end - first.offset) as usize);
    if let Some(bytes) = Arc::get_mut(&mut buffer) {
        read_exact(&*file.file, &file.path, first.offset, bytes)?;
    }
    handles
        .iter()
        .map(|&handle| {
            let at = (handle.offset - first.offset) as usize;
            Ok((handle, file.contents(&buffer, at, handle, true)?))
        })
        .collect()
}

fn open_filter(
    tail: &Tail<'_>,
    footer: &Footer,
    properties: &TableProperties,
    options: &TableOpenOptions,
) -> Result<Option<Filter>> {
    let prefixes = properties.prefix_extractor;
    if footer.filter.is_none() || !(properties.whole_key_filter || prefixes.is_some()) {
        return Ok(None);
    }
    let index = tail.block(footer.filter)?;
    let pinned = read_partitions(tail, &index, options.filter_pinned_bytes_max)?
        .into_iter()
        .map(|(handle, bits)| {
            if is_filter(&bits) {
                Ok(bits)
            } else {
                Err(tail.file.corrupt(handle.offset, "filter is malformed"))
            }
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(Filter {
        index,
        pinned,
        whole_keys: properties.whole_key_filter,
        prefixes,
    }))
}
