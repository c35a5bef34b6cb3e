//! The reports that can be run, and what their tests have in common: how each is named, run and turned into a row.

use esker_lab_core::engine::Engine;
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::runner::Runner;
use crate::{Context, Load, Spec, flash, txn};

/// A report: a list of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Report 004: db_bench's tests on flash storage.
    Flash,
    /// Transactions, with locks and optimistic ones.
    Txn,
}

/// One test of a report.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Its name, on the command line and in results.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// It runs when nothing else is asked for.
    pub default: bool,
    /// Threads that it has when nothing else is asked for; one that has a single thread here has it always.
    pub threads: usize,
    /// It runs transactions, in the way of the engine's variant.
    pub transactions: bool,
    pub(crate) run: fn(&mut Runner<'_>) -> Result<()>,
}

impl Suite {
    /// Its name, on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Flash => "flash",
            Suite::Txn => "txn",
        }
    }

    /// Its tests.
    pub fn tests(self) -> &'static [Test] {
        match self {
            Suite::Flash => flash::TESTS,
            Suite::Txn => txn::TESTS,
        }
    }

    /// The test called `name`.
    pub fn test(self, name: &str) -> Result<&'static Test> {
        self.tests().iter().find(|t| t.name == name).ok_or_else(|| {
            let names: Vec<_> = self.tests().iter().map(|t| t.name).collect();
            Error::usage(format!(
                "{} has no test `{name}`; it has {}",
                self.name(),
                names.join(", ")
            ))
        })
    }

    /// The engines that run when none are named.
    pub fn engines(self) -> &'static [&'static str] {
        match self {
            Suite::Flash => &["esker", "rocksdb", "leveldb"],
            Suite::Txn => &["esker", "rocksdb"],
        }
    }

    /// Whether its engines are set up for transactions.
    pub fn has_transactions(self) -> bool {
        self == Suite::Txn
    }

    /// Length of values when nothing else is asked for, in bytes.
    pub fn value_bytes(self) -> usize {
        match self {
            Suite::Flash => 800,
            Suite::Txn => 100,
        }
    }
}

impl Test {
    /// Threads, if `asked` were asked for.
    pub fn threads(&self, asked: Option<usize>) -> usize {
        match asked {
            Some(threads) if self.threads > 1 => threads,
            _ => self.threads,
        }
    }
}

/// Only loads, for a test that another process will run on the same folder.
pub fn load(
    engine: &dyn Engine,
    variant: &str,
    spec: &Spec,
    context: &Context<'_>,
    load: Load,
) -> Result<()> {
    spec.validate()?;
    Runner::new(engine, variant, spec, context)?.load(load)
}

/// Runs the test that `spec` names on one engine. What goes wrong is in the row; `Err` only says that there is no row,
/// because the engine can't do this or the user stopped it before anything was measured.
pub fn run(engine: &dyn Engine, variant: &str, spec: &Spec, context: &Context<'_>) -> Result<Row> {
    spec.validate()?;
    let test = spec.suite.test(&spec.test)?;
    let spec = &Spec {
        threads: test.threads(Some(spec.threads)),
        ..spec.clone()
    };
    let mut runner = Runner::new(engine, variant, spec, context)?;
    if test.transactions {
        runner.row.control = control(engine, variant)?;
    }
    let result = (test.run)(&mut runner);
    let mut row = runner.finish();
    match result {
        Ok(()) if row.partial && row.ops == 0 => {
            return Err(Error::new(Kind::Stopped, "stopped before anything was measured"));
        }
        Ok(()) => {}
        Err(error) if matches!(error.kind(), Kind::Unsupported | Kind::Missing | Kind::Usage) => {
            return Err(error);
        }
        Err(error) if error.kind() == Kind::Stopped => {
            if row.ops == 0 {
                return Err(error);
            }
            row.partial = true;
        }
        Err(error) => {
            row.errors += 1;
            row.error_messages.push(error.to_string());
        }
    }
    Ok(row)
}

/// How the transactions of a variant keep out of each other's way.
fn control(engine: &dyn Engine, variant: &str) -> Result<String> {
    let found = engine.variants().iter().find(|v| v.name == variant);
    match found.and_then(|variant| variant.control) {
        Some(control) => Ok(control.name().to_owned()),
        None => Err(Error::unsupported(format!(
            "{}:{variant} has no transactions",
            engine.name()
        ))),
    }
}
