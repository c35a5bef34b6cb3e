//! The states that a run of steps goes through, which of them a crash may leave, and runs that crash at each of their calls.

use std::fmt::Debug;

use esker::{Durability, Result};
use esker_env::mem::{CrashMode, MemFs};

/// All states of a run, from the first on.
#[derive(Debug)]
pub struct History<S> {
    states: Vec<S>,
    /// Which of them is the first that a power cut may leave.
    durable: usize,
    /// Which of them is the first that the end of the process may leave.
    answered: usize,
}

impl<S: Default> Default for History<S> {
    fn default() -> Self {
        Self {
            states: vec![S::default()],
            durable: 0,
            answered: 0,
        }
    }
}

impl<S: PartialEq> History<S> {
    /// The state behind all steps, answered or not.
    pub fn last(&self) -> &S {
        &self.states[self.states.len() - 1]
    }

    /// The state behind the last step that was answered.
    pub fn answered(&self) -> &S {
        &self.states[self.answered]
    }

    /// Takes a step of this durability that leads to `next`, whether it is answered or not.
    pub fn step(&mut self, next: S, durability: Durability, step: impl FnOnce() -> Result<()>) -> Result<()> {
        self.states.push(next);
        step()?;
        self.answered = self.states.len() - 1;
        if durability == Durability::Sync {
            self.durable = self.answered;
        }
        Ok(())
    }

    /// What was `found` is one of the states that a crash may leave; `told` says a state in a few words.
    pub fn check(
        &self,
        found: &S,
        mode: CrashMode,
        told: impl Fn(&S) -> String,
    ) -> std::result::Result<(), String> {
        let least = match mode {
            CrashMode::KeepAll => self.answered,
            _ => self.durable,
        };
        if self.states[least..].contains(found) {
            return Ok(());
        }
        Err(format!(
            "{} is none of {least}..{}; {} must be there",
            told(found),
            self.states.len(),
            told(&self.states[least])
        ))
    }
}

/// Runs on machines that stop after every `stride`-th mutating call of a whole run, and has what four kinds of crashes then
/// leave checked. Gives the numbers of these machines and of the calls.
///
/// `begin` makes what a run needs and is not stopped in; `end` closes what the run has left open.
///
/// # Panics
/// If a check fails, with the first few that did; if a run is of fewer than 150 calls.
pub fn crash_at_every_call<R>(
    stride: u64,
    begin: impl Fn(&MemFs) -> R,
    run: impl Fn(&mut R) -> Result<()>,
    mut end: impl FnMut(&mut R),
    check: impl Fn(&R, &MemFs, CrashMode) -> std::result::Result<(), String>,
) -> (u64, u64) {
    let whole = MemFs::new();
    let mut runs = begin(&whole);
    let before = whole.operations();
    if let Err(error) = run(&mut runs) {
        panic!("it fails on a machine that does not stop: {error:?}");
    }
    let total = whole.operations() - before;
    let (mut failures, mut machines) = (Vec::new(), 0);
    for n in (0..total).step_by(stride.max(1) as usize) {
        let fs = MemFs::new();
        let mut runs = begin(&fs);
        fs.stop_after(Some(n));
        // Most are stopped.
        let _ = run(&mut runs);
        end(&mut runs);
        let modes = [
            CrashMode::KeepAll,
            CrashMode::DropUnsynced,
            CrashMode::Torn { seed: n },
            CrashMode::Torn { seed: !n },
        ];
        for mode in modes {
            if let Err(problem) = check(&runs, &fs.crash(mode), mode) {
                failures.push(format!("stopped after {n} of {total} calls, {mode:?}: {problem}"));
            }
        }
        machines += 1;
        if failures.len() > 5 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(total > 150, "only {total} calls");
    (machines, total)
}
