//! What a transaction of one update costs beside the plain put.
//!
//! `cargo bench -p esker-txn --bench commit -- CASE COUNT` with the case `put`, `transaction`, `write`, or `optimistic`; the difference of
//! two counts under `valgrind --tool=callgrind` gives instructions for one.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a measurement ends with the first surprise"
)]

use std::hint::black_box;

use esker::{Opener, Options};
use esker_env::Env;
use esker_txn::{OptimisticDb, TransactionDb, TransactionOptions, TransactionSettings};

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let case = arguments.first().map_or("transaction", String::as_str);
    let count: u64 = arguments.get(1).map_or(10_000, |count| count.parse().unwrap());
    let env = Env::simulated(1).0;
    let clock = Env::posix().clock;
    let db = Opener::new(Options::default()).env(env).open("db").unwrap();
    let family = db.default_column_family();
    let settings = TransactionSettings::default();
    let options = TransactionOptions::default();
    let value = [7; 100];
    let key = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let start = clock.now();
    match case {
        "put" => {
            for i in 0..count {
                db.put_cf(&family, black_box(&key(i)), &value).unwrap();
            }
        }
        "write" => {
            let db = TransactionDb::new(db.clone(), &settings).unwrap();
            for i in 0..count {
                db.put(&family, black_box(&key(i)), &value).unwrap();
            }
        }
        "transaction" | "optimistic" => {
            let mut transaction = match case {
                "transaction" => TransactionDb::new(db.clone(), &settings).unwrap().begin(&options),
                _ => OptimisticDb::new(db.clone(), &settings).unwrap().begin(&options),
            };
            for i in 0..count {
                transaction.restart(&options);
                transaction.put(&family, black_box(&key(i)), &value).unwrap();
                transaction.commit().unwrap();
            }
        }
        _ => panic!("no case {case}"),
    }
    let spent = clock.now() - start;
    println!("{case}: {:.0} ns each", spent.as_nanos() as f64 / count as f64);
}
