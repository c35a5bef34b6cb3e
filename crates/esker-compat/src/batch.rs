//! A write batch as C has it: adding to it can't fail, so what can't be added fails its commit; and it keeps what it
//! holds when it is committed.

use esker::{ColumnFamily, Db, Error, WriteBatch, WriteOptions};

use crate::status::Result;

/// Mutations and the first one that was refused.
#[derive(Clone, Default)]
pub struct Batch {
    inner: WriteBatch,
    refused: Option<Error>,
}

impl Batch {
    /// Empties it.
    pub fn clear(&mut self) {
        self.inner.clear();
        self.refused = None;
    }

    /// What it holds.
    pub fn mutations(&self) -> &WriteBatch {
        &self.inner
    }

    /// Changes what it holds; the first refusal is kept for the commit.
    pub fn change(&mut self, change: impl FnOnce(&mut WriteBatch) -> esker::Result<()>) {
        if let Err(error) = change(&mut self.inner) {
            self.refused.get_or_insert(error);
        }
    }

    /// Adds all that `other` holds.
    pub fn append(&mut self, other: &Batch) {
        self.change(|batch| batch.append(&other.inner));
        if self.refused.is_none() {
            self.refused.clone_from(&other.refused);
        }
    }

    /// Commits it. It holds the same afterwards.
    pub fn commit(&mut self, db: &Db, options: &WriteOptions) -> Result<()> {
        match &self.refused {
            Some(error) => Err(error.clone().into()),
            None => Ok(db.write_and_keep(&mut self.inner, options)?),
        }
    }

    /// `put` in the family, or in the default one.
    pub fn put(&mut self, family: Option<&ColumnFamily>, key: &[u8], value: &[u8]) {
        self.change(|batch| match family {
            None => batch.put(key, value),
            Some(family) => batch.put_cf(family, key, value),
        });
    }

    /// `delete` in the family, or in the default one.
    pub fn delete(&mut self, family: Option<&ColumnFamily>, key: &[u8]) {
        self.change(|batch| match family {
            None => batch.delete(key),
            Some(family) => batch.delete_cf(family, key),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::Options;

    #[test]
    fn what_can_not_be_added_fails_the_commit_until_the_batch_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db"), Options::default()).unwrap();
        let mut batch = Batch::default();
        batch.put(None, b"key", b"value");
        batch.put(None, &vec![0; (64 << 10) + 1], b"");
        let options = WriteOptions::default();
        let status = batch.commit(&db, &options).unwrap_err();
        assert!(status.to_string().starts_with("Invalid argument: "), "{status}");
        assert!(db.get(b"key").unwrap().is_none());
        let mut other = Batch::default();
        other.append(&batch);
        assert!(other.commit(&db, &options).is_err());
        batch.clear();
        batch.put(None, b"key", b"value");
        batch.commit(&db, &options).unwrap();
        assert_eq!(batch.mutations().len(), 1);
        db.delete(b"key").unwrap();
        batch.commit(&db, &options).unwrap();
        assert_eq!(db.get(b"key").unwrap().unwrap(), b"value");
    }
}
