//! What the engine says, held against what the model says.

use super::*;

impl Runner {
    pub(super) fn get_some(
        &self,
        family: usize,
        keys: &[usize],
        snapshot: Option<usize>,
        together: bool,
    ) -> std::result::Result<(), Failure> {
        let family = self.family(family);
        let id = family.handle.id();
        let snapshot = snapshot
            .filter(|_| !self.snapshots.is_empty())
            .map(|at| &self.snapshots[at % self.snapshots.len()])
            .filter(|(_, state)| state.contains_key(&id));
        let state = snapshot.map_or(self.oracle.state(), |(_, state)| state);
        let options = ReadOptions {
            snapshot: snapshot.map(|(snapshot, _)| snapshot.clone()),
            ..ReadOptions::default()
        };
        self.check_gets(family, keys, &options, state, together)
    }

    pub(super) fn check_gets(
        &self,
        family: &OpenFamily,
        keys: &[usize],
        options: &ReadOptions,
        state: &State,
        together: bool,
    ) -> std::result::Result<(), Failure> {
        let id = family.handle.id();
        let keys: Vec<Vec<u8>> = keys.iter().map(|&number| key(number)).collect();
        let found: Vec<Option<Vec<u8>>> = if together {
            let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            self.db
                .multi_get(&family.handle, &slices, options)
                .map_err(failed("multi_get"))?
                .into_iter()
                .map(|value| value.map(|value| value.into_vec()))
                .collect()
        } else {
            keys.iter()
                .map(|key| {
                    let value = self.db.get_with(&family.handle, key, options);
                    Ok(value.map_err(failed("get"))?.map(|value| value.into_vec()))
                })
                .collect::<std::result::Result<_, Failure>>()?
        };
        for (key, found) in keys.iter().zip(found) {
            let wanted = state[&id].get(key);
            if found.as_deref() != wanted {
                return Err(format!(
                    "get of {} from family {id}{}: {:?}, not {:?}",
                    show(key),
                    if options.snapshot.is_some() {
                        " in a snapshot"
                    } else {
                        ""
                    },
                    found.as_deref().map(show),
                    wanted.map(show)
                ));
            }
        }
        Ok(())
    }

    /// Compares everything: all rows both ways and all keys, now and in every snapshot.
    pub(super) fn check_all(&self) -> std::result::Result<(), Failure> {
        self.check_view(&ReadOptions::default(), self.oracle.state(), "now")?;
        for (snapshot, state) in &self.snapshots {
            let options = ReadOptions {
                snapshot: Some(snapshot.clone()),
                ..ReadOptions::default()
            };
            self.check_view(&options, state, &format!("{snapshot:?}"))?;
        }
        Ok(())
    }

    pub(super) fn check_view(
        &self,
        options: &ReadOptions,
        state: &State,
        when: &str,
    ) -> std::result::Result<(), Failure> {
        let all: Vec<usize> = (0..KEYS).collect();
        for family in &self.families {
            let id = family.handle.id();
            let Some(model) = state.get(&id) else { continue };
            let wanted = model.rows();
            let found = scan(&self.db, &family.handle, options.clone()).map_err(failed("scan"))?;
            if found != wanted {
                let difference = difference(&found, &wanted);
                return Err(format!("scan of family {id}, {when}: {difference}"));
            }
            let mut back =
                scan_back(&self.db, &family.handle, options.clone()).map_err(failed("scan back"))?;
            back.reverse();
            if back != wanted {
                let difference = difference(&back, &wanted);
                return Err(format!("scan back of family {id}, {when}: {difference}"));
            }
            for together in [false, true] {
                self.check_gets(family, &all, options, state, together)?;
            }
            if options.snapshot.is_none() {
                for (key, _) in &wanted {
                    let may = self.db.key_may_exist(&family.handle, key);
                    if !may.map_err(failed("key_may_exist"))? {
                        return Err(format!("key_may_exist denies {} of family {id}", show(key)));
                    }
                }
            }
        }
        Ok(())
    }
}
