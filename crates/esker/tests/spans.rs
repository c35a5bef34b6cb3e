//! Flushes and compactions as spans of `tracing`. What collects them is the whole program's, so no other test is in this one: beside
//! a collector of one thread, another thread that comes to a span first can turn it off for all.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::sync::{Arc, Mutex};

use esker::{ColumnFamilyOptions, Opener, Options};
use esker_env::Env;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the names of spans, and of their fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let fields: Vec<_> = span
            .metadata()
            .fields()
            .iter()
            .map(|field| field.name())
            .collect();
        let name = span.metadata().name();
        self.0
            .lock()
            .unwrap()
            .push(format!("{name}: {}", fields.join(" ")));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn each_job_is_a_span() {
    let spans = Spans::default();
    tracing::subscriber::set_global_default(spans.clone()).unwrap();
    let options = Options {
        default_column_family: ColumnFamilyOptions {
            level0_compaction_trigger: 2,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
    db.pause_background_work();
    for round in 0..2_u8 {
        db.put(b"key", &[round]).unwrap();
        db.flush().unwrap();
    }
    db.resume_background_work();
    db.wait_idle().unwrap();
    let flush = "flush: job family";
    let compaction = "compaction: job family reason from to";
    assert_eq!(*spans.0.lock().unwrap(), [flush, flush, compaction]);
    db.close().unwrap();
}
