//! Save points: what a statement has written and locked can be taken back by itself.

use esker::Result;

use super::Transaction;

impl Transaction {
    /// Remembers what is written and locked now, on top of earlier save points.
    ///
    /// # Errors
    /// `InvalidArgument` if it is prepared or has ended.
    pub fn set_save_point(&mut self) -> Result<()> {
        self.check_active()?;
        self.writes.set_save_point();
        self.control.set_save_point();
        self.fetched.set_save_point();
        Ok(())
    }

    /// Takes back all that was written and locked since the last save point, and forgets that one; an upgrade becomes shared
    /// again. The snapshot stays. False if there is none.
    ///
    /// # Errors
    /// `InvalidArgument` if it is prepared or has ended.
    pub fn roll_back_to_save_point(&mut self) -> Result<bool> {
        self.check_active()?;
        if !self.writes.roll_back_to_save_point() {
            return Ok(false);
        }
        self.control.roll_back_to_save_point();
        self.fetched.roll_back_to_save_point();
        self.count();
        Ok(true)
    }

    /// Forgets the last save point, and keeps what was written and locked since. False if there is none.
    ///
    /// # Errors
    /// `InvalidArgument` if it is prepared or has ended.
    pub fn pop_save_point(&mut self) -> Result<bool> {
        self.check_active()?;
        if !self.writes.pop_save_point() {
            return Ok(false);
        }
        self.control.pop_save_point();
        self.fetched.pop_save_point();
        Ok(true)
    }
}
