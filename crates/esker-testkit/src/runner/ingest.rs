//! Changes that come in a table of their own.

use esker::{IngestOptions, TableFileWriter};
use esker_env::Env;

use super::*;

impl Runner {
    /// Writes the changes into a table and ingests it. Keys that are single-deleted in this run are left out: what the
    /// database may do with them depends on how they were written.
    /// Behind what is there, deletes make no sense, and keys that have values keep them.
    pub(super) fn ingest(
        &mut self,
        family: usize,
        changes: &[Change],
        behind: bool,
    ) -> std::result::Result<(), Failure> {
        self.resume();
        let family = self.family(family);
        let (id, handle) = (family.handle.id(), family.handle.clone());
        let singles = !self.scope.unlogged;
        let mut mutations: Vec<(Vec<u8>, Mutation)> = changes
            .iter()
            .filter(|change| !(singles && is_single(change.key)))
            .map(|change| changes::mutation(change, &family.settings, self.scope.large))
            .filter_map(|mutation| match &mutation {
                Mutation::Put(key, _) | Mutation::Delete(key) | Mutation::Merge(key, _) => {
                    Some((key.clone(), mutation))
                }
                _ => None,
            })
            .filter(|(_, mutation)| !(behind && matches!(mutation, Mutation::Delete(_))))
            .collect();
        let order = family.settings.model().order();
        mutations.sort_by(|a, b| order.compare(&a.0, &b.0));
        mutations.dedup_by(|a, b| a.0 == b.0);
        if mutations.is_empty() {
            return Ok(());
        }
        self.ingested += 1;
        let path = format!("/{}.table", self.ingested);
        let env = Env::simulated_on(self.fs.clone(), self.ingested as u64);
        let mut writer =
            TableFileWriter::create_on(&env, &path, &handle.options()).map_err(failed("create a table"))?;
        for (key, mutation) in &mutations {
            match mutation {
                Mutation::Put(_, value) => writer.put(key, value),
                Mutation::Merge(_, operand) => writer.merge(key, operand),
                _ => writer.delete(key),
            }
            .map_err(failed("write a table"))?;
        }
        writer.finish().map_err(failed("finish a table"))?;
        let how = IngestOptions {
            move_files: self.ingested.is_multiple_of(2),
            behind,
        };
        let made = self
            .db
            .ingest(&[(handle, vec![path.into()])], &how)
            .map_err(failed("ingest"))?;
        let came = |key: &Vec<u8>| !behind || self.oracle.family(id).get(key).is_none();
        let all = mutations.len();
        mutations.retain(|(key, _)| came(key));
        if made.left_out != (all - mutations.len()) as u64 {
            return Err(format!(
                "{made:?}, but {} of {all} rows have new keys",
                mutations.len()
            ));
        }
        if mutations.is_empty() {
            return Ok(());
        }
        let applied = mutations
            .into_iter()
            .map(|(_, mutation)| (id, mutation))
            .collect();
        // What was never logged was flushed first.
        self.oracle.flushed(id);
        self.oracle.commit(applied, Durability::Sync);
        Ok(())
    }
}
