//! A copy of the database, held against the model.

use esker::CheckpointOptions;

use super::*;
use crate::crash::check_rows;

impl Runner {
    pub(super) fn checkpoint(&mut self, wal_bytes_max: u64) -> std::result::Result<(), Failure> {
        self.checkpoints += 1;
        let dir = format!("/copy{}", self.checkpoints);
        self.db
            .checkpoint_with(&dir, &CheckpointOptions { wal_bytes_max })
            .map_err(failed("checkpoint"))?;
        // It survives whatever the machine does.
        let fs = self.fs.crash(CrashMode::DropUnsynced);
        let number = self.seed ^ self.checkpoints as u64;
        let copy =
            open_in(&dir, &fs, self.seed, number, &self.settings).map_err(failed("open a checkpoint"))?;
        check_rows(&copy, &self.oracle).map_err(|problem| format!("checkpoint: {problem}"))?;
        self.check_prepared(&copy)?;
        copy.close().map_err(failed("close a checkpoint"))
    }
}
