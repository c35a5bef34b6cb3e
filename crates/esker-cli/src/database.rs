//! Opens a database as it was left: every column family with the settings, key order and merge operator that are
//! stored with it, so that looking at a database, or writing a key to it, never changes how it is tuned.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::inspect::{FamilyInfo, Inspector, builtin_key_order, builtin_merge_operator};
use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, Db, Error, ErrorKind, Follower, MergeOperator, Opener,
    Options, U64AddOperator,
};

use crate::args::{Common, Operator};
use crate::failure::{Failure, Result};

/// What the database is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Without lock and without changes.
    Read,
    /// For one process at a time.
    Write,
    /// The same, and made if it is not there.
    Create,
}

/// The folder of the database.
pub fn folder(common: &Common) -> Result<PathBuf> {
    let from_environment = || {
        std::env::var_os("ESKER_DB")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from)
    };
    common.db.clone().or_else(from_environment).ok_or_else(|| {
        Failure::usage(
            "no database is named",
            "add --db DIR, or set the environment variable ESKER_DB",
        )
    })
}

/// Opens the database. `operator` becomes the merge operator of the column family in `common` if that has none.
pub fn open(common: &Common, access: Access, operator: Option<Operator>) -> Result<Db> {
    let dir = folder(common)?;
    let db = opener(common, &dir, access, operator)?.open(&dir)?;
    warn_of_damage(&db, access);
    Ok(db)
}

/// Opens the database to be read while another process writes it.
pub fn follow(common: &Common) -> Result<Follower> {
    let dir = folder(common)?;
    Ok(opener(common, &dir, Access::Read, None)?.follow(&dir)?)
}

fn opener(common: &Common, dir: &Path, access: Access, operator: Option<Operator>) -> Result<Opener> {
    let options = Options {
        create_if_missing: access == Access::Create,
        read_only: access == Access::Read,
        ..Options::default()
    };
    let mut opener = Opener::new(options);
    match Inspector::new(dir).describe() {
        Ok(info) => {
            for family in &info.families {
                let mut settings = settings(family, access)?;
                if let Some(operator) = operator.filter(|_| family.name == common.family) {
                    settings
                        .merge_operator
                        .get_or_insert_with(|| builtin_operator(operator));
                }
                opener = opener.column_family(&family.name, settings);
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound && access == Access::Create => {}
        Err(error) => return Err(error.into()),
    }
    Ok(opener)
}

/// The column family that was asked for.
pub fn family(db: &Db, common: &Common) -> Result<ColumnFamily> {
    Ok(db.column_family(&common.family)?)
}

/// How often a read starts anew because files were replaced under it.
const ATTEMPTS: usize = 5;

/// Opens the database for reading and runs `read`; again, with the files of then, if the process that has the
/// database open replaced a file meanwhile. `read` must not have printed anything when it fails.
pub fn reading<T>(common: &Common, read: impl Fn(&Db, &ColumnFamily) -> Result<T>) -> Result<T> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let result = open(common, Access::Read, None).and_then(|db| read(&db, &family(&db, common)?));
        match result {
            Err(Failure::Engine(error)) if attempts < ATTEMPTS && is_replaced_file(&error) => {}
            result => return result,
        }
    }
}

fn is_replaced_file(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound && error.file().is_some_and(|file| file.extension().is_some())
}

/// The settings stored with a family.
fn settings(family: &FamilyInfo, access: Access) -> Result<ColumnFamilyOptions> {
    let mut settings = ColumnFamilyOptions::default();
    let applied = settings.apply_text(&family.options);
    applied.map_err(|error| error.in_column_family(&family.name))?;
    settings.key_order = builtin_key_order(&family.key_order).ok_or_else(|| {
        let (name, order) = (&family.name, &family.key_order);
        Failure::usage(
            format!(
                "the keys of column family '{name}' are ordered by '{order}', which only its application has"
            ),
            "'esker dump manifest' and 'esker dump wal' work without it",
        )
    })?;
    settings.merge_operator = match family.merge_operator.as_deref() {
        None => None,
        Some(operator) => match builtin_merge_operator(operator) {
            Some(operator) => Some(operator),
            None if access == Access::Read => Some(Arc::new(ForeignOperator(operator.to_owned()))),
            None => {
                let name = &family.name;
                return Err(Failure::usage(
                    format!(
                        "column family '{name}' has the merge operator '{operator}', which only its application has"
                    ),
                    "write to it by that application; reading commands work",
                ));
            }
        },
    };
    Ok(settings)
}

/// The engine's own merge operator of this name.
pub fn builtin_operator(operator: Operator) -> Arc<dyn MergeOperator> {
    match operator {
        Operator::Append => Arc::new(AppendOperator::default()),
        Operator::U64Add => Arc::new(U64AddOperator),
    }
}

/// Stands in for an operator that only the application has: rows that need no merging can be read.
struct ForeignOperator(String);

impl MergeOperator for ForeignOperator {
    fn name(&self) -> &str {
        &self.0
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> esker::Result<Vec<u8>> {
        Err(Error::invalid(format!(
            "the value needs the merge operator '{}', which only its application has",
            self.0
        )))
    }
}

fn warn_of_damage(db: &Db, access: Access) {
    let report = db.recovery_report();
    if report.damages == 0 {
        return;
    }
    let bytes = report.lost_bytes;
    eprintln!(
        "esker: warning: the log is damaged; up to {bytes} bytes at its end are not part of the database"
    );
    if access == Access::Read {
        eprintln!("       'esker verify' says where");
    }
    for path in &report.kept_aside {
        eprintln!(
            "       kept aside: {} ('esker dump wal' reads it)",
            path.display()
        );
    }
    for path in &report.given_up {
        eprintln!(
            "       removed, as newer ones take the room for damaged logs: {}",
            path.display()
        );
    }
}
