//! The engine that does nothing: what a workload costs on it is what the harness costs.
//!
//! Reads make the value that the load would have written, so that the check of it is measured too.

use std::path::Path;

use esker_lab_core::data::{Dataset, Key, Values};
use esker_lab_core::engine::{Database, Durability, Engine, OpenSettings, Session, Start, Variant};
use esker_lab_core::transaction::{Begin, Control, TransactionSession};
use esker_lab_core::{Error, Result};

/// The engine.
pub struct Null;

const VARIANTS: &[Variant] = &[
    Variant {
        name: "default",
        about: "keeps nothing: the cost of the harness",
        default: true,
        control: None,
    },
    Variant {
        name: "locks",
        about: "transactions that keep nothing: the cost of the harness",
        default: true,
        control: Some(Control::Locks),
    },
];

impl Engine for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn version(&self) -> Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn keeps_data(&self) -> bool {
        false
    }

    fn open(&self, _: &Path, _: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        Ok(Box::new(Nothing {
            values: settings.dataset.values(),
            dataset: settings.dataset,
        }))
    }
}

struct Nothing {
    values: Values,
    dataset: Dataset,
}

impl Nothing {
    fn idle(&self) -> Idle<'_> {
        Idle {
            database: self,
            key: self.dataset.keys.first(),
            value: vec![0; self.values.value_bytes()],
        }
    }
}

impl Database for Nothing {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self.idle()))
    }

    fn transactions(&self) -> Result<Box<dyn TransactionSession + '_>> {
        Ok(Box::new(self.idle()))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact_all(&self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        Ok(true)
    }

    fn stats(&self) -> String {
        String::new()
    }

    fn applied(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Idle<'a> {
    database: &'a Nothing,
    key: Key,
    value: Vec<u8>,
}

impl Session for Idle<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        std::hint::black_box((key, value));
        Ok(())
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], _: Durability) -> Result<()> {
        std::hint::black_box(rows);
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(row) = self.database.dataset.keys.row_of(key) else {
            return Ok(false);
        };
        self.database.values.write(row, 0, &mut self.value);
        found(&self.value);
        Ok(true)
    }

    fn delete(&mut self, key: &[u8], _: Durability) -> Result<()> {
        std::hint::black_box(key);
        Ok(())
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], _: Durability) -> Result<()> {
        std::hint::black_box((key, operand));
        Ok(())
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let last = self.database.dataset.rows.saturating_sub(1);
        let mut at = match start {
            Start::At(key) => {
                let row = self.database.dataset.keys.row_of(key);
                row.ok_or_else(|| Error::usage("not one of the lab's keys"))?
            }
            Start::First => 0,
            Start::Last => last,
        };
        loop {
            self.database.values.write(at, 0, &mut self.value);
            if !row(self.key.set(at), &self.value) {
                return Ok(());
            }
            at = match start {
                Start::Last if at > 0 => at - 1,
                Start::First | Start::At(_) if at < last => at + 1,
                _ => return Ok(()),
            };
        }
    }
}

impl TransactionSession for Idle<'_> {
    fn begin(&mut self, begin: Begin) -> Result<()> {
        std::hint::black_box(begin);
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Session::get(self, key, found)
    }

    fn get_for_update(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Session::get(self, key, found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        std::hint::black_box((key, value));
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }
}
