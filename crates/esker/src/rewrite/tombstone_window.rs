//! Notices, while a table is written, that many of its rows in a row are tombstones: a scan would wade through them.

/// Rows in a window.
const ROWS: u32 = 4096;

/// Parts of a window: it moves on by one of them at a time.
const PARTS: usize = 8;

/// Tombstones in a window, of `ROWS`, from which on a table should be compacted soon.
const TOMBSTONES: u32 = ROWS / 4 * 3;

/// A window that slides over the rows of a table.
#[derive(Debug, Default)]
pub(super) struct TombstoneWindow {
    /// Tombstones in each part; `at` is the one being filled.
    parts: [u32; PARTS],
    at: usize,
    rows_in_part: u32,
    is_dense: bool,
}

impl TombstoneWindow {
    /// Takes the next row.
    #[inline]
    pub fn add(&mut self, is_tombstone: bool) {
        self.parts[self.at] += u32::from(is_tombstone);
        self.rows_in_part += 1;
        if self.rows_in_part == ROWS / PARTS as u32 {
            self.end_part();
        }
    }

    fn end_part(&mut self) {
        self.is_dense |= self.parts.iter().sum::<u32>() >= TOMBSTONES;
        self.at = (self.at + 1) % PARTS;
        self.parts[self.at] = 0;
        self.rows_in_part = 0;
    }

    /// Whether some window had many, of the rows since the last call; the next table begins.
    pub fn take(&mut self) -> bool {
        std::mem::take(self).is_dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_dense(rows: impl IntoIterator<Item = bool>) -> bool {
        let mut window = TombstoneWindow::default();
        rows.into_iter().for_each(|row| window.add(row));
        let dense = window.take();
        assert!(!window.take(), "each table begins anew");
        dense
    }

    #[test]
    fn a_run_of_tombstones_is_noticed_wherever_it_is() {
        for before in [0, 1, 500, 4095, 100_000] {
            let values = |count| std::iter::repeat_n(false, count);
            let rows = |tombstones| {
                values(before)
                    .chain(std::iter::repeat_n(true, tombstones))
                    .chain(values(9000))
            };
            assert!(is_dense(rows(4096)), "{before}");
            assert!(!is_dense(rows(3000)), "{before}");
        }
    }

    #[test]
    fn tombstones_among_as_many_values_are_not() {
        assert!(!is_dense((0..100_000).map(|row| row % 2 == 0)));
        assert!(is_dense((0..100_000).map(|row| row % 5 > 0)));
        assert!(!is_dense((0..3000).map(|_| true)), "a small table costs little");
    }
}
