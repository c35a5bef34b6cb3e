//! Writes for ever while others read along, until it is killed: the child of the test `following`.
//!
//! `esker-follow-child <folder> <seed>`: round n puts n under the same few keys of two families, in one batch or in one that is
//! prepared before, with rows around them that keep flushes and compactions busy; prints `<n>` once it is acknowledged.

use std::error::Error;
use std::io::Write as _;

use esker::{Db, Durability, WriteBatch, WriteOptions};
use esker_testkit::random::Rng;
use esker_testkit::{crash, follow};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, seed] = args.as_slice() else {
        return Err("usage: esker-follow-child <folder> <seed>".into());
    };
    let mut rng = Rng::new(seed.parse()?);
    let db = Db::open(dir, crash::options())?;
    let second = match db.column_family(follow::SECOND) {
        Ok(family) => family,
        Err(_) => db.create_column_family(follow::SECOND, crash::family_options())?,
    };
    for prepared in db.prepared() {
        db.roll_back_prepared(prepared.name(), &WriteOptions::default())?;
    }
    let first = follow::round(&db)?.unwrap_or(0) + 1;
    let mut out = std::io::stdout().lock();
    for round in first.. {
        let mut batch = WriteBatch::new();
        for key in follow::KEYS {
            let value = follow::value(round, &mut rng);
            batch.put(key, &value)?;
            batch.put_cf(&second, key, &value)?;
        }
        for _ in 0..rng.below(4) {
            let key = (rng.below(5000) as u64).to_be_bytes();
            batch.put(&key, &[1; 60])?;
            match rng.below(30) {
                0 => batch.delete_range(&key, &(u64::from_be_bytes(key) + 100).to_be_bytes())?,
                _ => batch.put_cf(&second, &key, &[2; 20])?,
            }
        }
        let durability = match rng.below(50) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        let options = WriteOptions::durability(durability);
        if rng.one_in(10) {
            db.prepare(b"round", &mut batch, &options)?;
            db.commit_prepared(b"round", &options)?;
        } else {
            db.write_with(&mut batch, &options)?;
        }
        // The pipe is written through at once.
        writeln!(out, "{round}")?;
        match rng.below(2000) {
            0 => db.flush()?,
            1 => db.compact_range(None, None)?,
            _ => {}
        }
    }
    Ok(())
}
