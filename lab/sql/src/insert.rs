//! The insert benchmark: rows in order of the primary key with three secondary indexes in random order, and short range queries that
//! an index covers, beside a writer that keeps to a rate.

use std::fmt::Write;

use esker_lab_core::Result;
use esker_lab_core::data::pick;
use esker_lab_workloads::measure::Pacer;

use crate::server::{Connection, Server};

/// Rows of an INSERT, which is a transaction.
pub const ROWS_PER_COMMIT: u64 = 100;

/// Rows that a query asks for.
const LIMIT: u64 = 10;

const TABLE: &str = "purchases";

/// Different values of the columns.
const REGISTERS: u64 = 1_000;
const CUSTOMERS: u64 = 100_000;
const PRODUCTS: u64 = 10_000;
const PRICES: u64 = 50_000;

/// The statement that makes the table.
pub fn create(engine: &str) -> String {
    format!(
        "CREATE TABLE {TABLE} (transactionid BIGINT NOT NULL AUTO_INCREMENT, dateandtime DATETIME, cashregisterid INT NOT NULL, \
         customerid INT NOT NULL, productid INT NOT NULL, price INT NOT NULL, data VARCHAR(4000), PRIMARY KEY (transactionid), \
         KEY marketsegment (price, customerid), KEY registersegment (cashregisterid, price, customerid), \
         KEY pdc (price, dateandtime, customerid)) ENGINE={engine}"
    )
}

/// Indexes by which all rows must be found.
const INDEXES: [&str; 4] = ["PRIMARY", "marketsegment", "registersegment", "pdc"];

/// Writes the INSERT of rows `first` and following into `statement`.
fn insert(statement: &mut String, seed: u64, first: u64) {
    statement.clear();
    statement.push_str("INSERT INTO ");
    statement.push_str(TABLE);
    statement.push_str(" (dateandtime, cashregisterid, customerid, productid, price, data) VALUES ");
    for row in first..first + ROWS_PER_COMMIT {
        let choose = |column: u64, values: u64| pick(seed ^ (column << 56), row, values);
        // A thousand rows a second, from the first of January on.
        let second = row / 1000;
        let separator = if row == first { "" } else { "," };
        // Writing to a string can't fail.
        let _ = write!(
            statement,
            "{separator}('2026-{:02}-{:02} {:02}:{:02}:{:02}',{},{},{},{},'{:010x}')",
            second / 2_419_200 % 12 + 1,
            second / 86_400 % 28 + 1,
            second / 3_600 % 24,
            second / 60 % 60,
            second % 60,
            choose(1, REGISTERS),
            choose(2, CUSTOMERS),
            choose(3, PRODUCTS),
            choose(4, PRICES),
            choose(5, 1 << 40),
        );
    }
}

/// The query number `i`: ten rows from a random place of a random index, which has all that is asked for.
fn query(seed: u64, i: u64, rows: u64) -> String {
    let place = |values: u64| pick(seed ^ 0x51, i, values);
    match pick(seed ^ 0x50, i, 4) {
        0 => format!(
            "SELECT transactionid FROM {TABLE} WHERE transactionid >= {} ORDER BY transactionid LIMIT {LIMIT}",
            place(rows)
        ),
        1 => format!(
            "SELECT price, customerid FROM {TABLE} FORCE INDEX (marketsegment) WHERE price >= {} \
             ORDER BY price, customerid LIMIT {LIMIT}",
            place(PRICES)
        ),
        2 => format!(
            "SELECT cashregisterid, price, customerid FROM {TABLE} FORCE INDEX (registersegment) WHERE cashregisterid >= {} \
             ORDER BY cashregisterid, price, customerid LIMIT {LIMIT}",
            place(REGISTERS)
        ),
        _ => format!(
            "SELECT price, dateandtime, customerid FROM {TABLE} FORCE INDEX (pdc) WHERE price >= {} \
             ORDER BY price, dateandtime, customerid LIMIT {LIMIT}",
            place(PRICES)
        ),
    }
}

/// A thread that inserts rows from `first` on, `per_s` a second or as fast as it can.
pub fn write(
    server: &Server,
    pacer: &mut Pacer<'_>,
    seed: u64,
    first: u64,
    per_s: Option<f64>,
) -> Result<()> {
    let mut connection = server.connect()?;
    let mut statement = String::new();
    while let Some(i) = pacer.next() {
        if let Some(per_s) = per_s {
            pacer.wait_for_turn(i, per_s);
            if pacer.next().is_none() {
                break;
            }
        }
        insert(&mut statement, seed, first + i);
        connection.run(&statement)?;
        pacer.done_many(ROWS_PER_COMMIT);
    }
    Ok(())
}

/// A thread that asks one query after the other. All find rows but those at the end of an index.
pub fn read(server: &Server, pacer: &mut Pacer<'_>, seed: u64, rows: u64) -> Result<()> {
    let mut connection = server.connect()?;
    while let Some(i) = pacer.next() {
        connection.count(&query(seed, i, rows))?;
        pacer.done();
    }
    Ok(())
}

/// Looks whether every index has the `rows` that were acknowledged, and all indexes the same ones.
pub fn check(connection: &mut Connection, rows: u64) -> Result<()> {
    crate::suite::same_in_all(
        connection,
        TABLE,
        &INDEXES,
        "COUNT(*), SUM(transactionid), SUM(customerid)",
        Some(rows),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_hundred_and_depend_on_their_number_only() {
        let mut first = String::new();
        insert(&mut first, 7, 5_000);
        assert_eq!(first.matches("('2026-01-01 00:00:05'").count(), 100);
        let mut again = String::from("other");
        insert(&mut again, 7, 5_000);
        assert_eq!(first, again);
        insert(&mut again, 7, 86_400_000);
        assert!(again.contains("('2026-01-02 00:00:00'"), "{again}");
    }

    #[test]
    fn queries_take_all_indexes_in_turn() {
        let queries: Vec<String> = (0..100).map(|i| query(3, i, 1000)).collect();
        for index in &INDEXES[1..] {
            assert!(queries.iter().any(|q| q.contains(index)), "{index}");
        }
        assert!(queries.iter().any(|q| !q.contains("INDEX")));
        assert!(queries.iter().all(|q| q.ends_with("LIMIT 10")));
    }
}
