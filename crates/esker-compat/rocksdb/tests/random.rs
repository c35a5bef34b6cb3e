//! Random operations get the same answers from this library as from the real one, whose databases it refuses.

#[path = "../../tests/support/mod.rs"]
mod support;

#[path = "../../tests/support/random/mod.rs"]
mod random;

use proptest::test_runner::{Config, TestRunner};

#[test]
fn random_operations_get_the_same_answers() {
    let Some(real) = support::real("librocksdb.so") else {
        return;
    };
    let mut runner = TestRunner::new(Config {
        cases: Config::default().cases / 8,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&random::ops(true), |ops| {
            random::assert_agree(&support::ours(), &real, "rocksdb_", true, &ops);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_database_of_the_real_library_is_refused_and_stays_as_it_was() {
    let Some(real) = support::real("librocksdb.so") else {
        return;
    };
    random::assert_refuses_the_others(&support::ours(), &real, "rocksdb_", true);
}
