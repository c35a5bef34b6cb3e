//! Transactions: what a commit costs, and what others at the same rows cost it.
//!
//! Each test gets a fresh folder, loaded and opened again as in the flash report. All rows fit into memory, so that it is
//! transactions that are measured: every row is read once before them. Time-bounded, after a warm-up of a fifth of the time.
//!
//! **An operation is a committed transaction.** One that lost against others (a conflict, a deadlock, a lock that did not come
//! free in time) is rolled back and run again at once with the same rows; its time counts, up to the commit.
//!
//! **Rows are counters.** A value's version is how often its row was updated: an update reads the row for update, checks
//! every byte, and writes the version after the one it read. In the end all rows are read and their versions added up:
//! fewer than the updates that were committed, and some were lost; more, and something that was rolled back is there. Either
//! makes the row a failed one.
//!
//! **Plain puts** on the same database, opened without transactions, are what the cost of a commit is compared with. There
//! each thread has rows of its own, so that what each row must hold in the end is known.

mod client;
mod put;
mod read;
mod tally;
mod update;

use esker_lab_core::Result;

use crate::runner::Runner;
use crate::suite::Test;

const fn plain(name: &'static str, threads: usize, run: fn(&mut Runner<'_>) -> Result<()>) -> Test {
    Test {
        name,
        about: "plain puts into random rows, without transactions",
        default: true,
        threads,
        transactions: false,
        run,
    }
}

const fn transactions(
    name: &'static str,
    threads: usize,
    run: fn(&mut Runner<'_>) -> Result<()>,
    about: &'static str,
) -> Test {
    Test {
        name,
        about,
        default: true,
        threads,
        transactions: true,
        run,
    }
}

const PUT_ONE: &str = "put-one";
const PUT: &str = "put";
const PUT_SYNC: &str = "put-sync";

/// Every test; the plain puts before what is compared with them.
pub(crate) const TESTS: &[Test] = &[
    plain(PUT_ONE, 1, put::buffered),
    transactions(
        "update-one",
        1,
        update::one_thread,
        "a random row read for update and written, one thread",
    ),
    plain(PUT, 8, put::buffered),
    transactions(
        "update",
        8,
        update::many_threads,
        "a random row read for update and written",
    ),
    plain(PUT_SYNC, 8, put::synced),
    transactions(
        "update-sync",
        8,
        update::synced,
        "the same, each commit on the device before the answer",
    ),
    transactions(
        "readwrite",
        4,
        update::mixed,
        "five reads and five updates of random rows",
    ),
    transactions(
        "hot",
        8,
        update::hot,
        "two updates among a hundred rows, chosen by Zipf's distribution",
    ),
    transactions(
        "readonly",
        4,
        read::snapshot,
        "ten reads of random rows, all of the moment at which the transaction began",
    ),
];
