//! An ordered map behind a lock: the simplest engine that keeps its promises, for the lab's own tests.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use esker_lab_core::Result;
use esker_lab_core::engine::{Database, Durability, Engine, OpenSettings, Session, Start, Variant};
use esker_lab_core::transaction::{Begin, Control, TransactionSession};

/// The engine.
pub struct Memory;

const VARIANTS: &[Variant] = &[
    Variant {
        name: "default",
        about: "an ordered map in memory, for the lab's tests",
        default: true,
        control: None,
    },
    Variant {
        name: "locks",
        about: "transactions over it, one at a time",
        default: true,
        control: Some(Control::Locks),
    },
];

impl Engine for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn version(&self) -> Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn open(&self, dir: &Path, _: &str, _: &OpenSettings) -> Result<Box<dyn Database>> {
        Ok(Box::new(Map::open(dir)))
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

struct Map {
    rows: RwLock<Rows>,
    /// Held by the transaction that runs.
    turn: Mutex<()>,
    file: std::path::PathBuf,
}

impl Map {
    /// Reads back what [`Map::save`] wrote, so that a closed database can be opened again.
    fn open(dir: &Path) -> Map {
        let file = dir.join("rows");
        let mut rows = Rows::new();
        let bytes = std::fs::read(&file).unwrap_or_default();
        let mut rest = bytes.as_slice();
        let mut next = || {
            let (length, tail) = rest.split_first_chunk::<4>()?;
            let (item, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = tail;
            Some(item.to_vec())
        };
        while let (Some(key), Some(value)) = (next(), next()) {
            rows.insert(key, value);
        }
        Map {
            rows: RwLock::new(rows),
            turn: Mutex::new(()),
            file,
        }
    }

    fn save(&self) -> Result<()> {
        let mut bytes = Vec::new();
        for (key, value) in self.read().iter() {
            for item in [key, value] {
                bytes.extend_from_slice(&(item.len() as u32).to_le_bytes());
                bytes.extend_from_slice(item);
            }
        }
        std::fs::write(&self.file, bytes).map_err(|e| esker_lab_core::Error::io(self.file.display(), &e))
    }

    fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.rows.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Database for Map {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self))
    }

    fn transactions(&self) -> Result<Box<dyn TransactionSession + '_>> {
        Ok(Box::new(Transaction {
            map: self,
            turn: None,
            writes: Rows::new(),
        }))
    }

    fn flush(&self) -> Result<()> {
        self.save()
    }

    fn compact_all(&self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        Ok(true)
    }

    fn stats(&self) -> String {
        format!("{} rows", self.read().len())
    }

    fn applied(&self) -> Vec<(String, String)> {
        vec![("structure".into(), "BTreeMap".into())]
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.save()
    }
}

impl Session for &Map {
    fn put(&mut self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        self.write().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], _: Durability) -> Result<()> {
        self.write()
            .extend(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.read().get(key).map(|value| found(value)).is_some())
    }

    fn delete(&mut self, key: &[u8], _: Durability) -> Result<()> {
        self.write().remove(key);
        Ok(())
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], durability: Durability) -> Result<()> {
        self.put(key, operand, durability)
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let rows = self.read();
        let from = (
            if let Start::At(key) = start {
                Bound::Included(key)
            } else {
                Bound::Unbounded
            },
            Bound::Unbounded,
        );
        let mut range = rows.range::<[u8], _>(from);
        while let Some((key, value)) = if start == Start::Last {
            range.next_back()
        } else {
            range.next()
        } {
            if !row(key, value) {
                break;
            }
        }
        Ok(())
    }
}

/// Whoever begins waits for the one before to end.
struct Transaction<'a> {
    map: &'a Map,
    turn: Option<MutexGuard<'a, ()>>,
    writes: Rows,
}

impl TransactionSession for Transaction<'_> {
    fn begin(&mut self, _: Begin) -> Result<()> {
        self.roll_back()?;
        self.turn = Some(self.map.turn.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if let Some(value) = self.writes.get(key) {
            found(value);
            return Ok(true);
        }
        let mut map = self.map;
        map.get(key, found)
    }

    fn get_for_update(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.get(key, found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.writes.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.map.write().append(&mut self.writes);
        self.turn = None;
        Ok(())
    }

    fn roll_back(&mut self) -> Result<()> {
        self.writes.clear();
        self.turn = None;
        Ok(())
    }
}
