//! Huge pages for memory that is long in use and read at random.

use std::mem::MaybeUninit;

/// Size and alignment of what [`advise_huge_pages`] is of use for, in bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks the system to back `memory` with huge pages when it is first touched, so that random reads of it miss the TLB
/// less often. A hint: where there are none, and for memory that does not begin at a multiple of [`HUGE_PAGE_BYTES`], nothing
/// or little changes. A huge page is held whole as soon as any byte of it is touched.
pub fn advise_huge_pages(memory: &mut [MaybeUninit<u8>]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: this advice changes what pages back the range, never what they hold, and the range is ours alone.
        // A range that does not begin at a page is refused; so is the advice by kernels that don't know it.
        let _ = unsafe { madvise(memory.as_mut_ptr().cast(), memory.len(), Advice::LinuxHugepage) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_memory_holds_stays_whatever_its_place() {
        let mut memory = vec![MaybeUninit::new(7_u8); 3 * HUGE_PAGE_BYTES];
        let skew = memory.as_ptr().align_offset(HUGE_PAGE_BYTES);
        advise_huge_pages(&mut memory[skew..][..HUGE_PAGE_BYTES]);
        advise_huge_pages(&mut memory[skew + 1..][..100]);
        advise_huge_pages(&mut []);
        memory[skew].write(8);
        for (at, byte) in memory.iter().enumerate() {
            // SAFETY: all bytes were written above.
            let byte = unsafe { byte.assume_init() };
            assert_eq!(byte, if at == skew { 8 } else { 7 });
        }
    }
}
