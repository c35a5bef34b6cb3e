//! Options of `families`, with their help.

use clap::{Subcommand, ValueEnum};

use crate::args::Operator;

#[derive(Debug, Subcommand)]
pub enum Families {
    /// All column families
    List,
    /// Make a column family
    Create(CreateFamily),
    /// Drop a column family and all its data
    Drop {
        /// Its name
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct CreateFamily {
    /// Its name
    pub name: String,
    /// How operands of 'merge' become values
    #[arg(long, value_enum, value_name = "OPERATOR")]
    pub merge_operator: Option<Operator>,
    /// The order of keys
    #[arg(long, value_enum, value_name = "ORDER", default_value = "bytewise")]
    pub order: Order,
    /// A setting (docs/tuning.md lists them); can be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
}

/// The orders of keys that come with the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// By bytes, ascending
    Bytewise,
    /// By bytes, descending
    ReverseBytewise,
}
