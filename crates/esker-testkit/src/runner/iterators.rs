//! Iterators that stay open over many steps, beside their models.

use super::*;

impl Runner {
    pub(super) fn open_iterator(
        &mut self,
        family: usize,
        snapshot: Option<usize>,
        bounds: [Option<usize>; 2],
        prefix_same: bool,
    ) -> std::result::Result<(), Failure> {
        if self.iterators.len() >= 6 {
            self.iterators.remove(0);
        }
        let family = self.family(family);
        let id = family.handle.id();
        let snapshot = snapshot
            .filter(|_| !self.snapshots.is_empty())
            .map(|at| &self.snapshots[at % self.snapshots.len()])
            .filter(|(_, state)| state.contains_key(&id));
        let limits = Limits {
            lower: bounds[0].map(key),
            upper: bounds[1].map(key),
            prefix: family.settings.options.prefix_extractor.filter(|_| prefix_same),
        };
        let options = ReadOptions {
            snapshot: snapshot.map(|(snapshot, _)| snapshot.clone()),
            lower_bound: limits.lower.clone(),
            upper_bound: limits.upper.clone(),
            prefix_same,
            ..ReadOptions::default()
        };
        let iter = self.db.iter_cf(&family.handle, options).map_err(failed("iter"))?;
        let pinned = snapshot.map(|(_, state)| state.clone());
        let model = pinned.as_ref().unwrap_or(self.oracle.state());
        let scan = Scan::new(&model[&id], limits.clone());
        self.iterators.push(OpenIter {
            iter,
            scan,
            family: id,
            limits,
            pinned,
        });
        Ok(())
    }

    pub(super) fn move_iterator(&mut self, at: usize, to: Move) -> std::result::Result<(), Failure> {
        if self.iterators.is_empty() {
            return Ok(());
        }
        let at = at % self.iterators.len();
        let OpenIter {
            iter,
            scan,
            family,
            limits,
            pinned,
        } = &mut self.iterators[at];
        let check = |iter: &Iter, scan: &Scan, step: &str| {
            let found = iter.valid().then(|| (iter.key(), iter.value()));
            if found == scan.row() {
                return Ok(());
            }
            let show_row = |row: Option<(&[u8], &[u8])>| {
                row.map_or("nothing".to_owned(), |(key, value)| {
                    format!("{}={}", show(key), show(value))
                })
            };
            Err(format!(
                "iterator of family {family} ({limits:?}) after {step}: {}, not {}",
                show_row(found),
                show_row(scan.row())
            ))
        };
        match to {
            Move::First => {
                iter.seek_to_first().map_err(failed("seek_to_first"))?;
                scan.seek_to_first();
            }
            Move::Last => {
                iter.seek_to_last().map_err(failed("seek_to_last"))?;
                scan.seek_to_last();
            }
            Move::Seek(number) => {
                iter.seek(&key(number)).map_err(failed("seek"))?;
                scan.seek(&key(number));
            }
            Move::SeekForPrev(number) => {
                iter.seek_for_prev(&key(number))
                    .map_err(failed("seek_for_prev"))?;
                scan.seek_for_prev(&key(number));
            }
            Move::Next(steps) => {
                for _ in 0..steps {
                    iter.next().map_err(failed("next"))?;
                    scan.next();
                    check(iter, scan, "next")?;
                }
            }
            Move::Prev(steps) => {
                for _ in 0..steps {
                    iter.prev().map_err(failed("prev"))?;
                    scan.prev();
                    check(iter, scan, "prev")?;
                }
            }
            Move::Narrow(lower, upper) => {
                let (lower, upper) = (lower.map(key), upper.map(key));
                iter.set_bounds(lower.as_deref(), upper.as_deref());
                scan.set_bounds(lower.as_deref(), upper.as_deref());
            }
            Move::Refresh => {
                let state = pinned.as_ref().unwrap_or(self.oracle.state());
                // A dropped family stays readable, as it was when it was dropped, which the model has forgotten.
                let Some(model) = state.get(family) else {
                    self.iterators.remove(at);
                    return Ok(());
                };
                iter.refresh().map_err(failed("refresh"))?;
                *scan = Scan::new(model, limits.clone());
            }
        }
        check(iter, scan, &format!("{to:?}"))
    }
}
