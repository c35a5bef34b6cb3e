//! Open files and locks of the simulated file system.

use std::io;
use std::path::PathBuf;

use super::fs::MemFs;
use super::inode::Inode;
use super::names::FileId;
use super::rng::Rng;
use super::world::World;
use crate::{CreateOptions, FileLock, IoMode, RandomFile, WriteFile};

/// What direct files write in whole multiples of, in bytes.
const BLOCK_BYTES: usize = 4096;
/// What direct files buffer where the caller names nothing, in bytes.
const DIRECT_BUFFER_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct MemLock {
    pub(super) fs: MemFs,
    pub(super) path: PathBuf,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.fs.lock_world().locked.remove(&self.path);
    }
}

/// Keeps a file alive while it is open.
#[derive(Debug)]
pub(super) struct Handle {
    fs: MemFs,
    file: FileId,
}

impl Handle {
    pub(super) fn new(fs: MemFs, world: &mut World, file: FileId) -> Self {
        *world.open.entry(file).or_default() += 1;
        Self { fs, file }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut world = self.fs.lock_world();
        let Some(count) = world.open.get_mut(&self.file) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            world.open.remove(&self.file);
            let nameless = world.files.get(&self.file).is_some_and(|inode| inode.names == 0);
            if nameless {
                world.forget_unreachable();
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct MemRandomFile(pub(super) Handle);

impl RandomFile for MemRandomFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let world = self.0.fs.lock_world();
        let bytes = world.inode(self.0.file)?.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buf.len().min(bytes.len() - start);
        buf[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        let world = self.0.fs.lock_world();
        Ok(world.inode(self.0.file)?.bytes().len() as u64)
    }
}

/// Buffers as the real files do: a buffered one hands on all it has, a direct one whole blocks, and its tail only
/// with `sync` and `finish`, padded while the file is longer than its appended length anyway.
#[derive(Debug)]
pub(super) struct MemWriteFile {
    handle: Handle,
    written: usize,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    direct: bool,
    cut_at_finish: bool,
    /// Bytes that count as locked in memory once the file was rewound.
    lock_bytes: u64,
    rewound: bool,
}

impl MemWriteFile {
    pub(super) fn new(handle: Handle, options: CreateOptions) -> Self {
        let buffer_bytes = match (options.mode, options.buffer_bytes) {
            (IoMode::Direct, 0) => DIRECT_BUFFER_BYTES,
            (IoMode::Direct, bytes) => bytes.next_multiple_of(BLOCK_BYTES),
            (IoMode::Buffered, bytes) => bytes,
        };
        Self {
            handle,
            written: 0,
            buffer: Vec::new(),
            buffer_bytes,
            direct: options.mode == IoMode::Direct,
            cut_at_finish: options.preallocate_bytes > 0,
            lock_bytes: if options.lock_in_memory {
                options.preallocate_bytes
            } else {
                0
            },
            rewound: false,
        }
    }

    /// Hands `data` to the system at `offset`.
    fn write(&self, offset: usize, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let mut world = self.handle.fs.lock_world();
        let file = self.handle.file;
        let end = offset + data.len();
        match world.operate() {
            Ok(()) => world.change(file, end, |inode| inode.write(offset, data)),
            Err(error) => {
                // Only the first call after the stop finds the count where the stop left it.
                if world.stop_at == Some(world.operations) {
                    world.operations += 1;
                    let cut = Rng(world.operations).below(data.len() + 1);
                    world.change(file, offset + cut, |inode| inode.write(offset, &data[..cut]))?;
                }
                Err(error)
            }
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let whole = if self.direct {
            self.buffer.len() / BLOCK_BYTES * BLOCK_BYTES
        } else {
            self.buffer.len()
        };
        self.write(self.written, &self.buffer[..whole])?;
        self.written += whole;
        self.buffer.drain(..whole);
        Ok(())
    }

    /// A direct file's tail; it stays in the buffer.
    fn write_tail(&self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut tail = self.buffer.clone();
        if self.cut_at_finish {
            tail.resize(tail.len().next_multiple_of(BLOCK_BYTES), 0);
        }
        self.write(self.written, &tail)
    }
}

impl WriteFile for MemWriteFile {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if !self.direct && self.buffer.len() + data.len() > self.buffer_bytes {
            self.write_out()?;
            if data.len() >= self.buffer_bytes {
                self.write(self.written, data)?;
                self.written += data.len();
                return Ok(());
            }
        }
        self.buffer.extend_from_slice(data);
        if self.direct && self.buffer.len() >= self.buffer_bytes {
            self.write_out()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.write_tail()?;
        let mut world = self.handle.fs.lock_world();
        world.operate()?;
        world.change(self.handle.file, 0, Inode::sync)
    }

    fn len(&self) -> u64 {
        (self.written + self.buffer.len()) as u64
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.buffer.clear();
        self.written = 0;
        (self.cut_at_finish, self.rewound) = (true, true);
        Ok(())
    }

    fn locked_bytes(&self) -> u64 {
        if self.rewound { self.lock_bytes } else { 0 }
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        self.write_out()?;
        self.write_tail()?;
        let len = self.written + self.buffer.len();
        let mut world = self.handle.fs.lock_world();
        world.operate()?;
        world.change(self.handle.file, 0, |inode| {
            inode.reserved = 0;
            inode.set_len(len);
            if sync {
                inode.sync();
            }
        })
    }
}
