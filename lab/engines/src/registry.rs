//! The engines by name.

use std::path::PathBuf;

use esker_lab_core::engine::{Engine, Variant};
use esker_lab_core::{Error, Result};

use crate::{esker::Esker, leveldb::LevelDb, memory::Memory, null::Null, rocksdb::RocksDb};

/// Where the peers' libraries are.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// A library with RocksDB's C interface.
    pub rocksdb: PathBuf,
    /// A library with LevelDB's C interface.
    pub leveldb: PathBuf,
    /// The folder of Esker's drop-in libraries, under the originals' names.
    pub dropin: PathBuf,
}

impl Default for Libraries {
    fn default() -> Self {
        Libraries {
            rocksdb: "peers/librocksdb.so".into(),
            leveldb: "peers/libleveldb.so".into(),
            dropin: "target/dropin".into(),
        }
    }
}

/// All engines.
pub struct Registry {
    engines: Vec<Box<dyn Engine>>,
}

/// An engine set up one way.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The way.
    pub variant: &'static Variant,
}

impl Choice<'_> {
    /// Whether it is the same engine, set up the same way.
    pub fn is_same_as(&self, other: &Choice<'_>) -> bool {
        (self.engine.name(), self.variant.name) == (other.engine.name(), other.variant.name)
    }
}

impl Registry {
    /// Every engine, in the order in which results show them. Libraries are loaded when first used.
    pub fn new(libraries: &Libraries) -> Self {
        Registry {
            engines: vec![
                Box::new(Esker),
                Box::new(RocksDb::new(&libraries.rocksdb)),
                Box::new(LevelDb::new(&libraries.leveldb)),
                Box::new(RocksDb::dropin(&libraries.dropin.join("librocksdb.so"))),
                Box::new(LevelDb::dropin(&libraries.dropin.join("libleveldb.so"))),
                Box::new(Memory),
                Box::new(Null),
            ],
        }
    }

    /// The engines.
    pub fn engines(&self) -> impl Iterator<Item = &dyn Engine> {
        self.engines.iter().map(AsRef::as_ref)
    }

    /// The engine called `name`.
    pub fn engine(&self, name: &str) -> Result<&dyn Engine> {
        self.engines().find(|e| e.name() == name).ok_or_else(|| {
            let names: Vec<_> = self.engines().map(Engine::name).collect();
            Error::usage(format!(
                "there is no engine `{name}`; there are {}",
                names.join(", ")
            ))
        })
    }

    /// What `text` names, among the variants for transactions or among those without: `rocksdb` is its default variants,
    /// `rocksdb:direct` one, `rocksdb:all` every one.
    pub fn choose(&self, text: &str, transactions: bool) -> Result<Vec<Choice<'_>>> {
        let (name, variant) = match text.split_once(':') {
            Some((name, variant)) => (name, Some(variant)),
            None => (text, None),
        };
        let engine = self.engine(name)?;
        let offered = || {
            let variants = engine.variants().iter();
            variants.filter(|v| v.control.is_some() == transactions)
        };
        let chosen: Vec<_> = offered()
            .filter(|v| match variant {
                None => v.default,
                Some("all") => true,
                Some(wanted) => v.name == wanted,
            })
            .map(|variant| Choice { engine, variant })
            .collect();
        if chosen.is_empty() {
            let names: Vec<_> = offered().map(|v| v.name).collect();
            let kind = if transactions { " for transactions" } else { "" };
            return Err(Error::usage(if names.is_empty() {
                format!("{name} has no variant{kind}")
            } else {
                format!(
                    "{name} has no variant `{}`{kind}; it has {}",
                    variant.unwrap_or_default(),
                    names.join(", ")
                )
            }));
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_chosen_by_name() {
        let registry = Registry::new(&Libraries::default());
        let names = |text| {
            registry
                .choose(text, false)
                .map(|c| c.iter().map(|c| c.variant.name).collect::<Vec<_>>())
        };
        assert_eq!(names("rocksdb").unwrap(), ["buffered", "direct"]);
        assert_eq!(names("rocksdb:blob").unwrap(), ["blob"]);
        assert!(names("rocksdb:all").unwrap().len() > 4);
        assert_eq!(names("dropin-rocksdb").unwrap(), ["buffered", "direct"]);
        assert_eq!(names("dropin-leveldb").unwrap(), ["default"]);
        let transactions = |text| {
            registry
                .choose(text, true)
                .map(|c| c.iter().map(|c| c.variant.name).collect::<Vec<_>>())
        };
        assert_eq!(transactions("esker").unwrap(), ["locks", "optimistic"]);
        assert!(transactions("rocksdb:all").unwrap().contains(&"prepared-direct"));
        assert!(
            transactions("rocksdb:direct")
                .unwrap_err()
                .to_string()
                .contains("it has committed")
        );
        assert!(
            transactions("leveldb")
                .unwrap_err()
                .to_string()
                .contains("no variant for transactions")
        );
        assert!(names("esker:locks").is_err());
        assert!(names("rocksdb:fast").unwrap_err().to_string().contains("direct"));
        assert!(names("oracle").unwrap_err().to_string().contains("leveldb"));
    }
}
