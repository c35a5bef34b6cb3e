//! An engine that works, but for what a fault does to its sessions.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_lab_core::engine::{Database, Engine, OpenSettings, Profile, Session, Variant};
use esker_lab_core::transaction::{Control, TransactionSession};
use esker_lab_core::{Error, Result};
use esker_lab_engines::memory::Memory;

/// Ways in which an engine is broken.
pub trait Fault: Copy + PartialEq + Send + Sync + 'static {
    /// Which of them a database that is opened like this has.
    fn in_profile(self, _: Profile) -> Self {
        self
    }

    /// A session over one that works.
    fn session<'a>(database: &'a BrokenDatabase<Self>, inner: Box<dyn Session + 'a>)
    -> Box<dyn Session + 'a>;

    /// The same for transactions.
    fn transactions<'a>(
        _: &'a BrokenDatabase<Self>,
        _: Box<dyn TransactionSession + 'a>,
    ) -> Result<Box<dyn TransactionSession + 'a>> {
        Err(Error::unsupported("no fault of transactions"))
    }
}

/// The engine.
pub struct Broken<F>(pub F);

/// A database of it.
pub struct BrokenDatabase<F> {
    inner: Box<dyn Database>,
    pub fault: F,
    calls: AtomicU64,
}

const fn variant(name: &'static str, control: Option<Control>) -> Variant {
    Variant {
        name,
        about: "broken",
        default: true,
        control,
    }
}

const VARIANTS: &[Variant] = &[variant("default", None), variant("locks", Some(Control::Locks))];

impl<F: Fault> Engine for Broken<F> {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn version(&self) -> Result<String> {
        Ok("0".into())
    }

    fn open(&self, dir: &Path, variant: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        Ok(Box::new(BrokenDatabase {
            inner: Memory.open(dir, variant, settings)?,
            fault: self.0.in_profile(settings.profile),
            calls: AtomicU64::new(0),
        }))
    }
}

impl<F: Fault> BrokenDatabase<F> {
    /// Whether `fault` strikes now: every fifth call.
    pub fn strikes(&self, fault: F) -> bool {
        self.fault == fault && self.calls.fetch_add(1, Ordering::Relaxed) % 5 == 4
    }
}

impl<F: Fault> Database for BrokenDatabase<F> {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(F::session(self, self.inner.session()?))
    }

    fn transactions(&self) -> Result<Box<dyn TransactionSession + '_>> {
        F::transactions(self, self.inner.transactions()?)
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn compact_all(&self) -> Result<()> {
        self.inner.compact_all()
    }

    fn is_idle(&self) -> Result<bool> {
        self.inner.is_idle()
    }

    fn stats(&self) -> String {
        self.inner.stats()
    }

    fn applied(&self) -> Vec<(String, String)> {
        self.inner.applied()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}
