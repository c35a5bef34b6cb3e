//! Writes for ever, and says what was acknowledged, until it is killed: the child of the test `kill_loop`.
//!
//! `esker-kill-child <folder> <first number> <seed>`: write number n puts `n` under `key(n)` in one or two families
//! and prints `<n> <durability>` once it is acknowledged (s: sync, b: buffered, n: none).

use std::error::Error;
use std::io::Write as _;

use esker::{Db, Durability, WriteBatch, WriteOptions};
use esker_testkit::random::Rng;
use esker_testkit::{crash, kill};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, first, seed] = args.as_slice() else {
        return Err("usage: esker-kill-child <folder> <first number> <seed>".into());
    };
    let mut rng = Rng::new(seed.parse()?);
    let db = Db::open(dir, crash::options())?;
    let second = match db.column_family("second") {
        Ok(family) => family,
        Err(_) => db.create_column_family("second", crash::family_options())?,
    };
    let mut out = std::io::stdout().lock();
    for number in first.parse::<u64>()?.. {
        let (durability, letter) = match rng.below(100) {
            0..4 => (Durability::Sync, 's'),
            4..90 => (Durability::Buffered, 'b'),
            _ => (Durability::None, 'n'),
        };
        let mut batch = WriteBatch::new();
        let value = kill::value(number);
        batch.put(&kill::key(number), &value)?;
        batch.put_cf(&second, &kill::key(number), &value)?;
        db.write_with(&mut batch, &WriteOptions::durability(durability))?;
        // The pipe is written through at once: an acknowledgement that is lost would only weaken the test.
        writeln!(out, "{number} {letter}")?;
        match rng.below(400) {
            0 => db.flush()?,
            1 => db.compact_range(None, None)?,
            2 => db.sync_wal()?,
            _ => {}
        }
    }
    Ok(())
}
