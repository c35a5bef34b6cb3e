//! Tests of the picker: golden scenarios for each rule, properties of every plan, and simulated databases.

mod check;
mod collect;
mod model;
mod properties;
mod scenario;
mod simulation;
mod units;
