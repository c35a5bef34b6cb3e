//! A family that is exported and comes back beside itself.

use esker::ImportOptions;

use super::*;

impl Runner {
    /// Exports a family and imports it under another name, where there is room for one. Snapshots of before see nothing of it.
    pub(super) fn reimport(&mut self, at: usize) -> std::result::Result<(), Failure> {
        if self.families.len() >= FAMILIES_MAX {
            return Ok(());
        }
        let family = self.family(at);
        let (id, handle, settings) = (family.handle.id(), family.handle.clone(), family.settings.clone());
        let name = format!("family{}", self.created);
        let dir = format!("/export{}", self.created);
        self.created += 1;
        self.db
            .export_column_family(&handle, &dir)
            .map_err(failed("export"))?;
        self.oracle.flushed(id);
        let how = ImportOptions {
            move_files: self.created.is_multiple_of(2),
            column_family: Some(settings.options.clone()),
        };
        let (handle, _) = self
            .db
            .import_column_family(&name, &dir, &how)
            .map_err(failed("import"))?;
        self.oracle.synced();
        self.oracle.create(handle.id(), self.oracle.family(id).clone());
        for (_, state) in &mut self.snapshots {
            state.insert(handle.id(), settings.model());
        }
        self.settings.insert(name, settings.clone());
        self.families.push(OpenFamily { handle, settings });
        Ok(())
    }
}
