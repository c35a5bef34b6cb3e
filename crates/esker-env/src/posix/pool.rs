//! Buffers that outlive the file they were made for: touching a fresh one costs a page fault every 4 KiB.

use parking_lot::Mutex;

use super::aligned::{AlignedBuffer, round_up};

/// Bytes of idle buffers kept at most.
const IDLE_BYTES_MAX: usize = 16 << 20;

/// Idle buffers of any sizes, the last one returned first (its pages are the likeliest in the CPU's cache).
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    idle: Mutex<Vec<AlignedBuffer>>,
}

impl BufferPool {
    /// A buffer of `len` bytes rounded up to whole blocks; what it holds is anything.
    pub(super) fn take(&self, len: usize) -> AlignedBuffer {
        let len = round_up(len.max(1));
        {
            let mut idle = self.idle.lock();
            if let Some(at) = idle.iter().rposition(|buffer| buffer.len() == len) {
                return idle.remove(at);
            }
        }
        AlignedBuffer::new(len)
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: AlignedBuffer) {
        let mut idle = self.idle.lock();
        let idle_bytes: usize = idle.iter().map(|buffer| buffer.len()).sum();
        if idle_bytes + buffer.len() <= IDLE_BYTES_MAX {
            idle.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_taken_again_and_the_pool_is_bounded() {
        let pool = BufferPool::default();
        let buffer = pool.take(8192);
        let address = buffer.as_ptr().addr();
        pool.give(buffer);
        let other = pool.take(4096);
        assert_ne!(other.as_ptr().addr(), address);
        assert_eq!(pool.take(8000).as_ptr().addr(), address);

        for _ in 0..20 {
            pool.give(AlignedBuffer::new(1 << 20));
        }
        assert_eq!(pool.idle.lock().len(), 16);
    }
}
