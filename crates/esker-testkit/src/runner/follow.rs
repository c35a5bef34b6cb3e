//! A follower of the database, held against the model.

use esker::{ErrorKind, Follower, Options};

use super::*;

/// Snapshots that it keeps.
const SNAPSHOTS_MAX: usize = 4;

/// Somebody who reads along.
pub(super) struct Following {
    follower: Follower,
    /// What it shows.
    state: State,
    snapshots: Vec<(Snapshot, State)>,
}

impl Runner {
    /// Lets the follower catch up, if there is one; else there is one from now on.
    pub(super) fn catch_up(&mut self, snapshot: bool) -> std::result::Result<(), Failure> {
        if self.scope.unlogged {
            // It doesn't see what is in no log.
            self.resume();
            self.db.flush().map_err(failed("flush"))?;
            for family in &self.families {
                self.oracle.flushed(family.handle.id());
            }
        }
        let state = self.oracle.state().clone();
        let mut following = match self.following.take() {
            None => self.begin_to_follow()?,
            Some(mut following) => {
                following.check("before it caught up")?;
                if snapshot {
                    following.snapshots.truncate(SNAPSHOTS_MAX - 1);
                    let now = (following.follower.db().snapshot(), following.state.clone());
                    following.snapshots.insert(0, now);
                }
                match following.follower.catch_up() {
                    Ok(_) => following,
                    // A family has come whose order it can't know.
                    Err(error) if error.kind() == ErrorKind::InvalidArgument => self.begin_to_follow()?,
                    Err(error) => return Err(failed("catch_up")(error)),
                }
            }
        };
        following.state = state;
        following.check("caught up")?;
        self.check_prepared(following.follower.db())?;
        self.following = Some(following);
        Ok(())
    }

    fn begin_to_follow(&self) -> std::result::Result<Following, Failure> {
        let options = Options {
            memory_budget_bytes: 4 << 20,
            default_column_family: self.settings["default"].options.clone(),
            ..Options::default()
        };
        let mut opener = Opener::new(options).env(Env::simulated_on(self.fs.clone(), self.seed));
        for (name, settings) in &self.settings {
            opener = opener.column_family(name, settings.options.clone());
        }
        Ok(Following {
            follower: opener.follow(Path::new(DIR)).map_err(failed("follow"))?,
            state: State::new(),
            snapshots: Vec::new(),
        })
    }
}

impl Following {
    fn check(&self, when: &str) -> std::result::Result<(), Failure> {
        let db = self.follower.db();
        let mut found = 0;
        for name in db.column_family_names() {
            let family = db.column_family(&name).map_err(failed("column_family"))?;
            let id = family.id();
            let model = self.state.get(&id).ok_or("a follower shows a family too many")?;
            let what = format!("a follower's family {id}, {when}");
            check(db, &family, &ReadOptions::default(), model, &what)?;
            found += 1;
            for (at, (snapshot, state)) in self.snapshots.iter().enumerate() {
                let options = ReadOptions {
                    snapshot: Some(snapshot.clone()),
                    ..ReadOptions::default()
                };
                let what = format!("{what}, snapshot {at}");
                match state.get(&id) {
                    Some(model) => check(db, &family, &options, model, &what)?,
                    None => match db.get_with(&family, b"", &options) {
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        other => return Err(format!("{what}, is younger, but gives {other:?}")),
                    },
                }
            }
        }
        match found == self.state.len() {
            true => Ok(()),
            false => Err(format!(
                "a follower shows {found} of {} families",
                self.state.len()
            )),
        }
    }
}

/// Compares all rows both ways, and all keys.
fn check(
    db: &Db,
    family: &ColumnFamily,
    options: &ReadOptions,
    model: &crate::oracle::Family,
    what: &str,
) -> std::result::Result<(), Failure> {
    let wanted = model.rows();
    let mut back = scan_back(db, family, options.clone()).map_err(failed(what))?;
    back.reverse();
    for found in [scan(db, family, options.clone()).map_err(failed(what))?, back] {
        if found != wanted {
            return Err(format!("{what}: {}", difference(&found, &wanted)));
        }
    }
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let values = db.multi_get(family, &slices, options).map_err(failed(what))?;
    for (key, value) in keys.iter().zip(values) {
        if value.as_deref() != model.get(key) {
            return Err(format!("{what}: multi_get of {}", show(key)));
        }
        let value = db.get_with(family, key, options).map_err(failed(what))?;
        if value.as_deref() != model.get(key) {
            return Err(format!("{what}: get of {}", show(key)));
        }
    }
    Ok(())
}
