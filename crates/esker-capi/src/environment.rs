//! The machine that a database runs on: the real one, or one whose files are in memory.

use std::sync::Arc;

use ::esker_env::Env;
use ::esker_env::mem::MemFs;

use crate::boundary::release;

/// Files, time, randomness and threads. Several databases can share one.
pub struct esker_env(pub Env);

/// A machine with an empty file system in memory, on which paths mean nothing to the real one: for tests, and for data that may go.
/// Its time and threads are real.
#[unsafe(no_mangle)]
pub extern "C" fn esker_env_create_in_memory() -> Box<esker_env> {
    Box::new(esker_env(Env {
        fs: Arc::new(MemFs::new()),
        ..Env::posix()
    }))
}

/// Frees a machine. Options and databases that were given it keep it.
#[unsafe(no_mangle)]
pub extern "C" fn esker_env_free(env: Option<Box<esker_env>>) {
    release(env);
}

/// The machine given, or the real one for null.
pub fn machine(env: Option<&esker_env>) -> Env {
    env.map_or_else(Env::posix, |env| env.0.clone())
}
