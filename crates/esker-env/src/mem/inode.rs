//! A file's bytes: the durable ones, and the writes since then, in order.
//!
//! Invariant: applying `pending` to `durable`, in order, gives `current`.

use super::rng::Rng;

/// A change of a file's bytes that was handed to the system.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write { offset, data } => put(bytes, *offset, data),
            Change::SetLen(len) => bytes.resize(*len, 0),
        }
    }
}

/// Writes `data` at `offset`, with zeros in what lies between.
fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let end = offset + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(data);
}

/// A file's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    durable: Vec<u8>,
    current: Vec<u8>,
    pending: Vec<Change>,
    /// Bytes reserved on the device, whether used or not.
    pub(super) reserved: usize,
    /// Names that lead here now.
    pub(super) names: usize,
}

impl Inode {
    /// A file that holds `bytes`, all of them durable.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            current: bytes.clone(),
            durable: bytes,
            ..Self::default()
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.current
    }

    /// What the file takes on the device.
    pub(super) fn charged(&self) -> usize {
        self.current.len().max(self.reserved)
    }

    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        put(&mut self.current, offset, data);
        // Appends in a row are one change, so that many small ones stay cheap; a crash can cut it anywhere.
        if let Some(Change::Write {
            offset: last,
            data: sum,
        }) = self.pending.last_mut()
            && *last + sum.len() == offset
            && sum.len() < 4096
        {
            sum.extend_from_slice(data);
        } else {
            self.pending.push(Change::Write {
                offset,
                data: data.to_vec(),
            });
        }
    }

    pub(super) fn set_len(&mut self, len: usize) {
        if len != self.current.len() {
            self.current.resize(len, 0);
            self.pending.push(Change::SetLen(len));
        }
    }

    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
        debug_assert!(self.durable == self.current);
    }

    /// The durable bytes alone.
    pub(super) fn after_losing_all(&self) -> Vec<u8> {
        self.durable.clone()
    }

    /// The durable bytes, with such a part of the later changes as a power cut may leave: none, all, the first
    /// few, or any of them; the last one that survives may be cut at any byte, with zeros or garbage behind the
    /// cut; the file may have grown before its bytes arrived. Zeros and garbage stand only where nothing was
    /// durable (fresh blocks): a device replaces a sector as a whole or leaves it, so that writing a block again,
    /// as direct files do with their tail, does not endanger the durable bytes in it.
    pub(super) fn after_tearing(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let kept: Vec<&Change> = match rng.below(4) {
            0 => Vec::new(),
            1 => self.pending.iter().collect(),
            2 => {
                let count = rng.below(self.pending.len() + 1);
                self.pending.iter().take(count).collect()
            }
            _ => self.pending.iter().filter(|_| rng.one_in(2)).collect(),
        };
        if let Some((last, before)) = kept.split_last() {
            for change in before {
                change.apply(&mut bytes);
            }
            match last {
                Change::Write { offset, data } if rng.one_in(2) => {
                    let cut = rng.below(data.len() + 1);
                    put(&mut bytes, *offset, &data[..cut]);
                    let fresh = (*offset + cut).max(self.durable.len());
                    let end = *offset + data.len();
                    fill_torn(&mut bytes, fresh, end.saturating_sub(fresh), rng);
                }
                change => change.apply(&mut bytes),
            }
        }
        if bytes.len() < self.current.len() && rng.one_in(3) {
            let at = bytes.len().max(self.durable.len());
            let room = self.current.len().saturating_sub(at);
            let grown = rng.below(room + 1);
            fill_torn(&mut bytes, at, grown, rng);
        }
        bytes
    }
}

/// What stands where a write did not arrive: nothing new, zeros, or garbage.
fn fill_torn(bytes: &mut Vec<u8>, offset: usize, len: usize, rng: &mut Rng) {
    match rng.below(3) {
        0 => {}
        1 => put(bytes, offset, &vec![0; len]),
        _ => {
            let garbage: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
            put(bytes, offset, &garbage);
        }
    }
}
