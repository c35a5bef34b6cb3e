//! WRITE 2: group commit, sequence numbers, publication and admission.

mod admission;
#[cfg(all(test, loom))]
mod loom;
mod pipeline;

pub use admission::{Admission, Debt};
pub use pipeline::{CommitTarget, GROUP_BYTES_MAX, Pipeline, Request};
