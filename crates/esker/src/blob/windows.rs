//! Reads values of many blob files for somebody who goes through keys in order.
//!
//! Whoever follows pointers in key order meets each file in ascending offsets, with gaps where values are dead or wanted
//! by nobody, and several files in turn. So there is a state for each file that was met lately, and a window of
//! those that turn out to be read in order:
//!
//! - The first value of a file is read alone. Once the next lies behind it, no further than [`GAP_BYTES_MAX`], a window
//!   of 16 KiB is read there, and each next window is twice as long, up to the share of this file: `window_bytes_max`, or
//!   `total_bytes_max` divided by the windows there are. Gaps inside a window cost nothing.
//! - A jump ahead beyond that gap, or backwards, is read alone and leaves the window as it is. If the values behind the
//!   jump are in order again, a window begins there.
//! - Two steps back in order make a window that ends at the record, for reverse scans.
//! - A value that is longer than the window would be is read alone.
//!
//! Memory is bounded by `total_bytes_max`, plus the largest value twice (as stored and as decompressed): the window
//! that was not used for the longest time goes first. With more files in turn than `files_max`, states are forgotten before they
//! are of use, and values are read one by one: slower, but nothing is read in vain.

use super::format::RECORD_HEADER_LEN;
use super::pointer::BlobPointer;
use super::reader::BlobReader;
use super::window::Window;
use crate::codec::decompress_into;
use crate::error::Result;
use crate::options::Compression;

/// The first window, in bytes.
const WINDOW_BYTES_FIRST: usize = 16 << 10;

/// A gap up to this is read over: a device of the class that Esker is for reads as many bytes in order in the time of
/// one more random read (1.1 GB/s and 56 us, each by direct I/O at depth 1).
pub const GAP_BYTES_MAX: u64 = 64 << 10;

/// Steps in order before a window is read: forward, backward.
const FORWARD_AFTER: u32 = 1;
const BACKWARD_AFTER: u32 = 2;

/// Bounds of [`BlobWindows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// The longest window, in bytes.
    pub window_bytes_max: usize,
    /// All windows together, in bytes.
    pub total_bytes_max: usize,
    /// Files whose reading is followed at a time.
    pub files_max: usize,
}

impl WindowOptions {
    /// For scans of users: windows up to 256 KiB, 4 MiB in all, 64 files.
    pub const SCAN: Self = Self {
        window_bytes_max: 256 << 10,
        total_bytes_max: 4 << 20,
        files_max: 64,
    };

    /// For each key range of a compaction, for values that may come back into tables: windows up to 512 KiB, 6 MiB in all,
    /// 128 files.
    pub const COMPACTION: Self = Self {
        window_bytes_max: 512 << 10,
        total_bytes_max: 6 << 20,
        files_max: 128,
    };
}

/// Reads of files that were made, for counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowReads {
    /// Calls.
    pub reads: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Reads values of many blob files in key order. For one thread; made for one scan or one compaction.
#[derive(Debug)]
pub struct BlobWindows {
    options: WindowOptions,
    /// File numbers of `states`, at the same places.
    files: Vec<u64>,
    states: Vec<State>,
    /// The place that was used last.
    last: usize,
    /// Grows with each value; says who was used last.
    now: u64,
    /// A record that was read alone.
    single: Window,
    /// A decompressed value.
    raw: Vec<u8>,
    reads: WindowReads,
}

/// How a file is being read.
#[derive(Debug)]
struct State {
    window: Window,
    /// The record that was asked for last.
    offset: u64,
    end: u64,
    forward: u32,
    backward: u32,
    /// The next window's length.
    next_bytes: usize,
    used: u64,
}

impl State {
    /// No record was asked for yet, and the first is next to none.
    fn new() -> Self {
        Self {
            window: Window::default(),
            offset: 0,
            end: u64::MAX,
            forward: 0,
            backward: 0,
            next_bytes: WINDOW_BYTES_FIRST,
            used: 0,
        }
    }

    /// Takes note of the next record.
    #[inline]
    fn step(&mut self, offset: u64, end: u64) {
        if offset >= self.end && offset - self.end <= GAP_BYTES_MAX {
            self.forward = self.forward.saturating_add(1);
            self.backward = 0;
        } else if end <= self.offset && self.offset - end <= GAP_BYTES_MAX {
            self.backward = self.backward.saturating_add(1);
            self.forward = 0;
        } else if offset != self.offset {
            (self.forward, self.backward) = (0, 0);
            self.next_bytes = WINDOW_BYTES_FIRST;
        }
        (self.offset, self.end) = (offset, end);
    }
}

impl BlobWindows {
    /// Knows no file yet.
    pub fn new(options: WindowOptions) -> Self {
        Self {
            options,
            files: Vec::new(),
            states: Vec::new(),
            last: 0,
            now: 0,
            single: Window::default(),
            raw: Vec::new(),
            reads: WindowReads::default(),
        }
    }

    /// The value that `pointer` points to, valid until the next call: at most one read of the file, and no copy unless it is
    /// compressed. `verify` as in [`BlobReader::read`].
    ///
    /// # Errors
    /// As [`BlobReader::read`].
    #[inline]
    pub fn get(&mut self, reader: &BlobReader, pointer: &BlobPointer, verify: bool) -> Result<&[u8]> {
        let len = reader.checked_len(pointer)?;
        let (offset, end) = (pointer.offset, pointer.offset + len as u64);
        let place = self.place(pointer.file);
        self.now += 1;
        let state = &mut self.states[place];
        state.used = self.now;
        state.step(offset, end);
        let alone = !state.window.holds(offset, end) && !self.read_window(reader, place, len)?;
        if alone {
            self.count(|windows| windows.single.fill_exact(reader, offset, end))?;
        }
        let window = if alone {
            &self.single
        } else {
            &self.states[place].window
        };
        let record = window
            .get(offset, end)
            .ok_or_else(|| reader.corrupt(offset, "blob record is cut short"))?;
        let stored = &record[RECORD_HEADER_LEN..];
        match reader.check(offset, record, verify)? {
            Compression::None => Ok(stored),
            kind => {
                decompress_into(kind, stored, &mut self.raw).ok_or_else(|| reader.undecodable(offset))?;
                Ok(&self.raw)
            }
        }
    }

    /// Forgets all files, and takes no memory for windows.
    pub fn clear(&mut self) {
        self.files = Vec::new();
        self.states = Vec::new();
        self.last = 0;
    }

    /// Reads of files so far.
    pub fn reads(&self) -> WindowReads {
        self.reads
    }

    /// Bytes that the windows take.
    pub fn memory_bytes(&self) -> usize {
        self.states.iter().map(|state| state.window.memory_bytes()).sum()
    }

    /// Where the state of a file is; makes one if there is none.
    #[inline]
    fn place(&mut self, file: u64) -> usize {
        if self.files.get(self.last) != Some(&file) {
            self.last = match self.files.iter().position(|&number| number == file) {
                Some(place) => place,
                None => self.new_place(file),
            };
        }
        self.last
    }

    fn new_place(&mut self, file: u64) -> usize {
        if self.files.len() < self.options.files_max.max(1) {
            self.files.push(file);
            self.states.push(State::new());
            return self.files.len() - 1;
        }
        let place = self.oldest(|_| true).unwrap_or(0);
        self.files[place] = file;
        self.states[place] = State::new();
        place
    }

    /// The state that was not used for the longest time, among those that `want` says.
    fn oldest(&self, want: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.states.len())
            .filter(|&place| want(place))
            .min_by_key(|&place| self.states[place].used)
    }

    /// Reads the window for the record that `place` was asked for, if one pays; else gives false.
    #[cold]
    fn read_window(&mut self, reader: &BlobReader, place: usize, record_bytes: usize) -> Result<bool> {
        let others = (0..self.states.len())
            .filter(|&other| other != place && self.states[other].window.memory_bytes() > 0)
            .count();
        // So that all of them fit with the blocks around them: else each would push out the next that is needed.
        let share = Window::bytes_for(self.options.total_bytes_max / (others + 1));
        let share = share.min(self.options.window_bytes_max);
        let state = &mut self.states[place];
        let backward = state.backward >= BACKWARD_AFTER;
        if !backward && state.forward < FORWARD_AFTER {
            return Ok(false);
        }
        let bytes = state.next_bytes.max(WINDOW_BYTES_FIRST).min(share);
        state.next_bytes = (bytes * 2).min(self.options.window_bytes_max);
        if record_bytes >= bytes {
            return Ok(false);
        }
        let (from, end) = if backward {
            (state.end.saturating_sub(bytes as u64), state.end)
        } else {
            (state.offset, state.offset.saturating_add(bytes as u64))
        };
        self.make_room(place, Window::room(bytes));
        self.count(|windows| windows.states[place].window.fill(reader, from, end))?;
        Ok(true)
    }

    /// Lets windows go until one of `room` bytes fits at `place`.
    fn make_room(&mut self, place: usize, room: usize) {
        let mut others = self.memory_bytes() - self.states[place].window.memory_bytes();
        let taken = self.states[place].window.memory_bytes();
        if taken > room && others + taken > self.options.total_bytes_max {
            self.states[place].window.clear();
        }
        while others + room > self.options.total_bytes_max {
            let Some(oldest) =
                self.oldest(|other| other != place && self.states[other].window.memory_bytes() > 0)
            else {
                return;
            };
            others -= self.states[oldest].window.memory_bytes();
            self.states[oldest].window.clear();
        }
    }

    #[inline]
    fn count(&mut self, read: impl FnOnce(&mut Self) -> Result<usize>) -> Result<()> {
        self.reads.reads += 1;
        self.reads.bytes += read(self)? as u64;
        Ok(())
    }
}
