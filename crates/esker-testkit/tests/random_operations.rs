//! Random operations under random settings: the engine must say what the model says, whatever happens between.
//!
//! `ESKER_TEST_CASES` runs (default 60), from `ESKER_TEST_SEED` on (default 1), of `ESKER_TEST_STEPS` steps (default
//! 400). A failure prints its seed and the steps that are needed for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use esker_testkit::operation::{self, Operation, Scope};
use esker_testkit::random::Rng;
use esker_testkit::runner::Runner;
use esker_testkit::{number_from_env, shrink, watchdog};

fn run(seed: u64, scope: Scope, operations: &[Operation]) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut runner = Runner::new(seed, scope)?;
        for (at, operation) in operations.iter().enumerate() {
            runner
                .step(operation)
                .map_err(|problem| format!("step {at}, {operation:?}: {problem}"))?;
        }
        runner.finish()
    }));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("of an unknown kind")))
    })
}

#[test]
fn the_engine_says_what_the_model_says() {
    let cases = number_from_env("ESKER_TEST_CASES", 60);
    let first = number_from_env("ESKER_TEST_SEED", 1);
    let steps = number_from_env("ESKER_TEST_STEPS", 400);
    for seed in first..first + cases {
        let mut rng = Rng::new(seed);
        let scope = Scope::random(&mut rng);
        let operations: Vec<_> = (0..steps).map(|_| operation::random(&mut rng, scope)).collect();
        let alive = watchdog::watch(
            &format!("random_operations with ESKER_TEST_SEED={seed}"),
            Duration::from_secs(120),
        );
        let Err(problem) = run(seed, scope, &operations) else {
            continue;
        };
        drop(alive);
        eprintln!("seed {seed} fails: {problem}\nshrinking ...");
        let fails = |less: &[Operation]| run(seed, scope, less).is_err();
        let mut small = shrink::shrink(&operations, 500, fails);
        let split: Vec<_> = small.iter().flat_map(Operation::split).collect();
        if fails(&split) {
            small = shrink::shrink(&split, 500, fails);
        }
        let why = run(seed, scope, &small).err();
        panic!(
            "ESKER_TEST_SEED={seed}: {problem}\nshrunk to {} steps, which fail with {why:?}:\n{small:?}",
            small.len()
        );
    }
}
