//! Every command and option, with the help that they print.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::bytes::Form;
pub use crate::family_args::{CreateFamily, Families, Order};

/// Read, write, inspect and verify Esker databases.
#[derive(Debug, Parser)]
#[command(
    name = "esker",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = "\
Keys and values are shown with printable ASCII as it is, a backslash as \\\\, and every other byte as
\\xNN. They are typed the same way, so what one command prints another one takes. --hex uses two
hexadecimal digits for each byte instead. A key that begins with '-' goes behind '--'.

get, scan, follow, stats, dump and verify take no lock and change nothing: they work beside a process
that has the database open. All others need it for themselves.

Examples:
  esker put --create --db /data/users alice 'Alice Liddell'
  esker get --db /data/users alice
  export ESKER_DB=/data/users          # instead of --db everywhere
  esker scan --prefix a --limit 10
  esker scan --json | jq -r .key
  esker stats
  esker verify

Exit codes:
  0  done
  1  the key is not there
  2  the command line must be changed: bad arguments, or a folder that holds something else
  3  damaged data
  4  anything else: no database, unknown column family, in use, device full, I/O error"
)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of all commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// The database's folder; else the environment variable ESKER_DB names it
    #[arg(long, global = true, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// The column family
    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub family: String,
    /// Keys and values are hexadecimal, in and out
    #[arg(long, global = true)]
    pub hex: bool,
    /// Values are numbers (8 bytes, little-endian), in and out, as the merge operator u64-add has them
    #[arg(long, global = true)]
    pub u64: bool,
    /// Print JSON: one object, or one a line for scan, dump and verify; errors too, to stderr
    #[arg(long, global = true)]
    pub json: bool,
}

impl Common {
    /// How keys are written.
    pub fn keys(&self) -> Form {
        if self.hex { Form::Hex } else { Form::Plain }
    }

    /// How values are written.
    pub fn values(&self) -> Form {
        if self.u64 { Form::U64 } else { self.keys() }
    }
}

/// Options of commands that write.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Writing {
    /// Return only when the write is on the device: it then survives a power cut
    #[arg(long)]
    pub sync: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set a key to a value
    #[command(after_long_help = "\
Examples:
  esker put --create --db /data/users alice 'Alice Liddell'
  esker put photo --file alice.jpg
  esker put --hex 00ff 01
  esker scan --db old | esker put --lines --db new --create")]
    Put(Put),
    /// Print the value of a key; exit code 1 if it is not there
    #[command(after_long_help = "\
Examples:
  esker get alice
  esker get photo --raw > alice.jpg
  esker get visits --u64
  if esker get alice > /dev/null; then echo known; fi")]
    Get(Get),
    /// Remove keys, all of them or none; those that are not there are no error
    #[command(after_long_help = "\
Examples:
  esker delete alice bob
  esker delete --sync -- -strange-key")]
    Delete(Delete),
    /// Remove all keys from FROM up to TO, TO excluded, at the cost of a single write
    #[command(after_long_help = "\
Examples:
  esker delete-range user/1000 user/2000
  esker delete-range --drop-tables index7/ index8/")]
    DeleteRange(DeleteRange),
    /// Apply a merge operand to a key, by the column family's merge operator
    #[command(after_long_help = "\
A family without an operator gets one by --operator, for good. append puts operands one behind the
other; u64-add adds numbers.

Examples:
  esker merge --operator append log 'one more line'
  esker families create counters --merge-operator u64-add
  esker merge --family counters --u64 visits 1
  esker get --family counters --u64 visits")]
    Merge(Merge),
    /// Print keys and values in the order of keys, one a line, a tab between them
    #[command(after_long_help = "\
Examples:
  esker scan --prefix user/ --limit 20
  esker scan --from a --to c --keys-only
  esker scan --reverse --limit 1          # the last key
  esker scan --count
  esker scan --json | jq -r .value")]
    Scan(Scan),
    /// Read a database while another process writes it: a line of the standard input is a get, a scan or a catch-up
    #[command(after_long_help = "\
Lines:
  get KEY                   as the command of that name, with its options
  scan [OPTIONS]            the same
  catch-up                  move on to all that was committed until now, and print the last sequence number
  help                      say that

All reads between two catch-ups show the database as it was at one moment. With --catch-up each read
is of now. Words are parted by spaces; a space in a key is \\x20. A line that fails is told of on stderr,
and the next one is read; the exit code is that of the first that failed.

Examples:
  esker follow                                           # a line at a time; Ctrl-D ends it
  printf 'get alice\nget bob\n' | esker follow           # both as of the same moment
  while sleep 1; do echo 'scan --count'; done | esker follow --catch-up")]
    Follow(Follow),
    /// Describe the database: column families, levels, sizes, log
    #[command(after_long_help = "\
Examples:
  esker stats
  esker stats --counters
  esker stats --json | jq '.families[].tables'
  esker stats --format prometheus

Counters of a running process live in that process (Db::stats and Db::metrics_text there); stats shows what its
files say, and counts what it did itself to read them: what recovery found in the log, above all.")]
    Stats(Stats),
    /// Print what is in a file: an SSTable, a segment of the log, the manifest
    #[command(
        subcommand,
        after_long_help = "\
Examples:
  esker dump sst 12                       # table 000012.sst of the database
  esker dump sst ./000012.sst --full
  esker dump wal 000013.wal --limit 10
  esker dump manifest --edits
  esker dump sst 12 --json | jq -r 'select(.type == \"entry\") | .key'"
    )]
    Dump(Dump),
    /// Read every byte of every file, check it, and name each one that is damaged; exit code 3 if one is
    #[command(after_long_help = "\
Examples:
  esker verify
  esker verify --quiet && echo whole
  esker verify --json | jq 'select(.ok == false)'

Files are read past the page cache where that is possible: what the device holds is what is checked.")]
    Verify(Verify),
    /// Make a damaged database one that opens again, and say what is lost; exit code 3 if anything is
    #[command(after_long_help = "\
Examples:
  esker repair --dry-run
  esker repair
  esker repair --json | jq '.damaged[].lost_ranges'

Keep a copy of the folder first if there is room. Nothing is removed: files that can't be used, or that
are no part of the database, are moved into the folder 'lost' in the database's folder.")]
    Repair(Repair),
    /// Merge the database's tables, so that deleted and overwritten rows are gone; without bounds all of them
    #[command(after_long_help = "\
Examples:
  esker compact
  esker compact --from user/1000 --to user/2000")]
    Compact(Compact),
    /// Copy the database, as it is now, to a new folder that is a database of its own
    #[command(after_long_help = "\
On the same file system the copy shares the files that never change, so it takes little time and room;
elsewhere all is copied. The copy is whole and survives a power cut when the command returns; a copy
that was interrupted leaves DIR.unfinished, which the next attempt removes. A program that has the
database open makes checkpoints by Db::checkpoint.

Examples:
  esker checkpoint /backup/monday
  esker checkpoint /backup/monday && esker verify --db /backup/monday --quiet")]
    Checkpoint(Checkpoint),
    /// Bring the column family, as it is now, into a new folder, from which import makes it part of a database
    #[command(after_long_help = "\
On the same file system the folder shares its files with the database; elsewhere all is copied. What it
holds is whole and survives a power cut when the command returns.

Examples:
  esker export --family users /backup/users
  esker export --family users /backup/users && esker import --db /data/other users /backup/users")]
    Export(Export),
    /// Make what export brought into a folder a new column family, whole or not at all
    #[command(after_long_help = "\
The family has the settings that it was exported with. The database shares the files with the folder,
by links; they must not be changed after that, and may be removed (--move does it).

Examples:
  esker import users /backup/users
  esker import --move users-of-monday /backup/users")]
    Import(Import),
    /// Make tables that were written by TableFileWriter part of the column family, all of them or none
    #[command(after_long_help = "\
Their rows count as written now. Of a key in several of the files the last one counts. The database
shares the files with where they are, by links; they must not be changed after that, and may be
removed (--move does it).

Examples:
  esker ingest part-1.sst part-2.sst
  esker ingest --family users --move /load/users-*.sst
  esker ingest --behind history.sst        # keys that have a value keep it")]
    Ingest(Ingest),
    /// List, create and drop column families
    #[command(
        subcommand,
        after_long_help = "\
Examples:
  esker families list
  esker families create users --set compression_per_level=zstd --set filter_bits_per_key=12
  esker families create counters --merge-operator u64-add
  esker families drop users"
    )]
    Families(Families),
}

#[derive(Debug, clap::Args)]
pub struct Put {
    /// The key
    #[arg(required_unless_present = "lines")]
    pub key: Option<OsString>,
    /// The value
    #[arg(required_unless_present_any = ["file", "lines"], conflicts_with_all = ["file", "lines"])]
    pub value: Option<OsString>,
    /// Take the value from a file, byte for byte; '-' is the standard input
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// Put what the standard input says, as scan prints it: KEY, a tab, VALUE on each line
    #[arg(long, conflicts_with_all = ["key", "file"])]
    pub lines: bool,
    /// Make the database, and the column family, if it does not exist
    #[arg(long)]
    pub create: bool,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Debug, clap::Args)]
pub struct Get {
    /// The key
    pub key: OsString,
    /// Print the value byte for byte, without a line's end
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, clap::Args)]
pub struct Delete {
    /// The keys
    #[arg(required = true, value_name = "KEY")]
    pub keys: Vec<OsString>,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Debug, clap::Args)]
pub struct DeleteRange {
    /// The first key to remove
    pub from: OsString,
    /// The first key to keep
    pub to: OsString,
    /// Drop whole tables in the range first: their space is back at once
    #[arg(long)]
    pub drop_tables: bool,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Debug, clap::Args)]
pub struct Merge {
    /// The key
    pub key: OsString,
    /// The operand
    pub operand: OsString,
    /// Give the column family this merge operator if it has none
    #[arg(long, value_enum, value_name = "OPERATOR")]
    pub operator: Option<Operator>,
    #[command(flatten)]
    pub writing: Writing,
}

/// The merge operators that come with the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operator {
    /// Operands one behind the other
    Append,
    /// The sum of numbers of 8 bytes, little-endian
    U64Add,
}

#[derive(Debug, clap::Args)]
pub struct Stats {
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: StatsFormat,
    /// Every counter too, with what it means
    #[arg(long)]
    pub counters: bool,
}

/// Formats of `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// For people
    Text,
    /// As --json
    Json,
    /// OpenMetrics text, all metrics: for Prometheus
    Prometheus,
}

#[derive(Debug, clap::Args)]
pub struct Scan {
    /// The first key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub from: Option<OsString>,
    /// The first key behind the last one
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub to: Option<OsString>,
    /// Only keys that begin so
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub prefix: Option<OsString>,
    /// So many keys at most
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    pub reverse: bool,
    /// Keys without values
    #[arg(long)]
    pub keys_only: bool,
    /// Only the number of keys
    #[arg(long, conflicts_with = "keys_only")]
    pub count: bool,
}

#[derive(Debug, clap::Args)]
pub struct Follow {
    /// Catch up with the process that writes before every read
    #[arg(long)]
    pub catch_up: bool,
}

#[derive(Debug, Subcommand)]
pub enum Dump {
    /// Properties and entries of an SSTable
    Sst(DumpFile),
    /// Batches of a segment of the write-ahead log
    Wal(DumpFile),
    /// Column families and tables, as the live manifest has them
    Manifest(DumpManifest),
}

#[derive(Debug, clap::Args)]
pub struct DumpFile {
    /// The file's path, or its name or number in the database's folder
    pub file: OsString,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Debug, clap::Args)]
pub struct Shown {
    /// Values at full length
    #[arg(long)]
    pub full: bool,
    /// So many entries at most
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub struct DumpManifest {
    /// Every edit in order, instead of what they add up to
    #[arg(long)]
    pub edits: bool,
}

#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Print damaged files only
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Debug, clap::Args)]
pub struct Repair {
    /// Change nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub struct Compact {
    /// The first key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub from: Option<OsString>,
    /// The last key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub to: Option<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct Checkpoint {
    /// The folder of the copy; it must not be there yet
    pub dir: PathBuf,
    /// Copy at most so many bytes of the log; where there is more, write its rows into tables of the copy
    #[arg(long, value_name = "BYTES")]
    pub wal_bytes_max: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The folder; it must not be there yet
    pub dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Import {
    /// The name of the new column family
    pub name: String,
    /// The folder of the export
    pub dir: PathBuf,
    /// Remove the export once it is part of the database
    #[arg(long = "move")]
    pub move_files: bool,
}

#[derive(Debug, clap::Args)]
pub struct Ingest {
    /// The tables
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Remove the files from where they are, once they are part of the database
    #[arg(long = "move")]
    pub move_files: bool,
    /// Leave out the rows of keys that have a value
    #[arg(long)]
    pub behind: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Args::command().get_subcommands() {
            let help = command
                .get_after_long_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let name = command.get_name();
            assert!(help.contains(&format!("esker {name}")), "{name}: {help}");
        }
    }
}
