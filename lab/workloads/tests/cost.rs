//! What the harness costs. It counts the time of the whole process, so no other test is in this program.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::sync::atomic::AtomicBool;

use esker_lab_core::engine::Compression;
use esker_lab_engines::null::Null;
use esker_lab_workloads::{Context, Spec, Suite, suite};

#[test]
fn the_harness_costs_little() {
    // Generous, for a debug build; an optimised one takes some 0.1 us.
    let cases = [
        (Suite::Flash, "default", "overwrite"),
        (Suite::Flash, "default", "readrandom"),
        (Suite::Txn, "locks", "update"),
    ];
    for (of, variant, test) in cases {
        let spec = Spec {
            suite: of,
            test: test.into(),
            rows: 3_000,
            key_bytes: 10,
            value_bytes: 100,
            compressibility: 0.5,
            seed: 1,
            threads: 4,
            seconds: 0.05,
            passes: 20.0,
            cap_seconds: 30.0,
            writes_per_s: 2_000.0,
            memory_bytes: 64 << 20,
            compression: Compression::None,
            interval_s: 0.01,
            idle_poll_s: 0.002,
        };
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let context = Context {
            stop: &AtomicBool::new(false),
            tell: &|_| (),
            dir: dir.path().to_owned(),
            load_elsewhere: None,
            group: None,
        };
        // Starting and ending threads counts, so there have to be many operations to an end: on a busy machine that takes longer.
        let mut row = suite::run(&Null, variant, &spec, &context).unwrap();
        let mut seconds = spec.seconds;
        while row.ops < 20_000 {
            seconds *= 2.0;
            let spec = Spec {
                seconds,
                ..spec.clone()
            };
            row = suite::run(&Null, variant, &spec, &context).unwrap();
        }
        assert!(row.is_good(), "{:?}", row.error_messages);
        assert!(
            row.cpu_us_per_op < 20.0,
            "{test}: {} us an operation",
            row.cpu_us_per_op
        );
    }
}
