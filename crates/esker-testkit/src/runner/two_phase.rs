//! Batches that are prepared and, some steps later, committed or rolled back.

use super::*;

/// What may be prepared at one time.
const PREPARED_MAX: usize = 6;

impl Runner {
    /// Prepares the changes. Keys that are single-deleted in this run are left out: what may be done with them depends on what
    /// is written before the commit.
    pub(super) fn prepare(
        &mut self,
        changes: &[Change],
        durability: Durability,
    ) -> std::result::Result<(), Failure> {
        if self.prepared.len() == PREPARED_MAX {
            return Ok(());
        }
        let singles = !self.scope.unlogged;
        let mut batch = WriteBatch::new();
        let mut prepared = Changes::new();
        for change in changes
            .iter()
            .filter(|change| change.kind != ChangeKind::DeleteRange && !(singles && is_single(change.key)))
        {
            let family = self.family(change.family);
            let mutation = changes::mutation(change, &family.settings, self.scope.large);
            changes::add(&mut batch, &family.handle, &mutation).map_err(failed("batch"))?;
            prepared.push((family.handle.id(), mutation));
        }
        self.named += 1;
        let name = format!("name {}", self.named).into_bytes();
        self.db
            .prepare(&name, &mut batch, &WriteOptions::durability(durability))
            .map_err(failed("prepare"))?;
        self.prepared.insert(name, prepared);
        if durability == Durability::Sync {
            self.oracle.synced();
        }
        Ok(())
    }

    /// Commits or rolls back what was prepared. Of families that were dropped meanwhile, the model knows nothing either.
    pub(super) fn resolve(
        &mut self,
        at: usize,
        commit: bool,
        durability: Durability,
    ) -> std::result::Result<(), Failure> {
        let Some(name) = self.prepared.keys().nth(at % self.prepared.len().max(1)).cloned() else {
            return Ok(());
        };
        let options = WriteOptions::durability(durability);
        let changes = self.prepared.remove(&name).unwrap_or_default();
        if commit {
            let bytes = self
                .db
                .prepared_named(&name)
                .map_or(0, |batch| batch.size_bytes());
            self.make_room(bytes + 100 * changes.len());
            self.db
                .commit_prepared(&name, &options)
                .map_err(failed("commit_prepared"))?;
            self.oracle.commit(changes, durability);
        } else {
            self.db
                .roll_back_prepared(&name, &options)
                .map_err(failed("roll_back_prepared"))?;
            if durability == Durability::Sync {
                self.oracle.synced();
            }
        }
        Ok(())
    }

    /// That exactly what is prepared in the model is prepared in `db`.
    pub(super) fn check_prepared(&self, db: &Db) -> std::result::Result<(), Failure> {
        let found: Vec<(Vec<u8>, usize)> = db
            .prepared()
            .iter()
            .map(|prepared| (prepared.name().to_vec(), prepared.len()))
            .collect();
        let wanted: Vec<(Vec<u8>, usize)> = self
            .prepared
            .iter()
            .map(|(name, changes)| (name.clone(), changes.len()))
            .collect();
        if found == wanted {
            return Ok(());
        }
        let told = |all: &[(Vec<u8>, usize)]| -> Vec<String> {
            all.iter()
                .map(|(name, len)| format!("{} with {len}", show(name)))
                .collect()
        };
        Err(format!(
            "prepared are {:?}, not {:?}",
            told(&found),
            told(&wanted)
        ))
    }

    /// After a crash, which may have taken what was prepared, or its end. What the model takes for resolved is rolled back.
    pub(super) fn recover_prepared(&mut self) -> std::result::Result<(), Failure> {
        for prepared in self.db.prepared() {
            if !self.prepared.contains_key(prepared.name()) {
                self.db
                    .roll_back_prepared(prepared.name(), &WriteOptions::default())
                    .map_err(failed("roll_back_prepared"))?;
            }
        }
        let db = &self.db;
        self.prepared.retain(|name, _| db.prepared_named(name).is_some());
        self.check_prepared(&self.db)
    }
}
