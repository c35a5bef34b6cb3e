//! WRITE: the segments of the log as the leader uses them: one after the other, synced, left behind when an append failed.
//!
//! Invariant: a segment holds every batch that is prepared and not resolved at its end. It begins with those of the segment
//! before, durable before anybody learns of it (`wal/recycle.rs`), and what is prepared later is logged in it. So the mark by
//! which a batch is committed stands in a segment that holds the batch, a memtable needs no segment but those in which its
//! rows were committed, and a segment can go without a look at what was prepared in it.

use std::sync::Arc;

use super::core::Core;
use super::write::Token;
use crate::error::{Error, Result};
use crate::memtable::InsertHint;

impl Core {
    /// Ends the current WAL segment, unless nothing was written to it, and starts the next.
    pub fn rotate_wal(&self, token: &mut Token) -> Result<()> {
        match &token.wal {
            None => return Ok(()),
            Some(wal) if wal.records() == 0 => return Ok(()),
            Some(_) => {}
        }
        self.start_segment(token)
    }

    /// Starts a segment with all that is prepared; the one before waits for its sync, if it is still whole.
    fn start_segment(&self, token: &mut Token) -> Result<()> {
        let number = self.new_file_number();
        // Under the token nothing is prepared or resolved meanwhile.
        let carried = self.prepared.lock().all();
        let records: Vec<&[u8]> = carried.iter().map(|batch| batch.as_bytes()).collect();
        let next = {
            let _rotation = self.wal_rotation.lock();
            self.wal.start(number, &records)?
        };
        if next.carried_bytes() > 0 {
            self.metrics.wal_bytes.add(next.carried_bytes());
            self.metrics.wal_syncs.add(1);
        }
        token.wal_number = number;
        if let Some(mut old) = token.wal.replace(next) {
            self.wal.set_bytes(old.id().number, old.len());
            if let Err(error) = old.seal() {
                let next = token.wal.replace(old);
                let error = self.break_segment(token, error);
                token.wal = next;
                return Err(error);
            }
            // With the mark of its end.
            self.wal.set_bytes(old.id().number, old.len());
            self.wal_unsynced.lock().push(old);
        }
        Ok(())
    }

    /// Makes everything logged so far durable. A failed sync is final: nobody knows what the device holds.
    pub fn sync_wal(&self, token: &mut Token) -> Result<()> {
        if token.wal_broken {
            self.leave_broken_segment(token, false)?;
        }
        self.sync_closed_wal()?;
        if let Some(wal) = &mut token.wal {
            let started = self.env.clock.now();
            wal.sync().map_err(|error| self.health.fail(&error))?;
            let took = self.env.clock.now().saturating_sub(started);
            self.metrics.wal_sync_us.record(took);
        }
        self.metrics.wal_syncs.add(1);
        Ok(())
    }

    /// Makes the segments durable that are not written to any more.
    pub fn sync_closed_wal(&self) -> Result<()> {
        let mut unsynced = self.wal_unsynced.lock();
        for segment in unsynced.iter_mut() {
            segment.sync().map_err(|error| self.health.fail(&error))?;
        }
        for segment in unsynced.drain(..) {
            self.wal.hand_back(segment);
        }
        Ok(())
    }

    /// Lets segments go whose rows are all in SSTables, or that hold none. For the leader, when no memtable holds a row: then
    /// no flush comes that would do it.
    pub fn let_log_go(&self) -> Result<()> {
        {
            let mut manifest = self.manifest.lock();
            let edits = self.idle_log_edits(&manifest, None);
            self.commit_edits(&mut manifest, edits)?;
        }
        self.release_wal();
        Ok(())
    }

    /// Ends the current segment, whose append has failed with `error`; gives the error for the writer. What the file
    /// may hold of what was refused is cut off, as it must not come back with a restart. The rest is made durable: else
    /// a power cut between the flushes that follow could take a batch from one family and leave it in another.
    #[cold]
    pub(super) fn break_segment(&self, token: &mut Token, error: Error) -> Error {
        token.wal_broken = true;
        match token.wal.take().map(|mut torn| torn.finish(true)) {
            Some(Err(failure)) => self.health.fail(&failure),
            _ => error,
        }
    }

    /// After a failed append: brings everything into SSTables, which makes the broken segment unneeded, and starts a
    /// new one. Fails, and can be tried again, as long as the device is full.
    pub fn leave_broken_segment(&self, token: &mut Token, no_wait: bool) -> Result<()> {
        // As for the broken one: nothing of the log may be lost while some families are flushed and others aren't.
        self.sync_closed_wal()?;
        if token.wal.is_none() {
            self.start_segment(token)?;
        }
        for family in token.families.by_id.values().filter(|family| !family.dropped()) {
            if !family.view().active.table.is_empty() {
                self.replace_active(token.wal_number, family);
            }
        }
        token.default_hint = InsertHint::default();
        let families = Arc::clone(&token.families);
        self.wait_for_flush_if(no_wait, || {
            families
                .by_id
                .values()
                .all(|family| family.view().sealed.is_empty())
        })?;
        // Recovery must not come across the broken segment once there are records behind it.
        self.let_log_go()?;
        tracing::info!("writes resume after a failed WAL append");
        token.wal_broken = false;
        Ok(())
    }
}
