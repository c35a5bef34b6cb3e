//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use esker_lab_core::data::KEY_BYTES_MIN;
use esker_lab_core::engine::Compression;
use esker_lab_core::size;
use esker_lab_engines::Libraries;
use esker_lab_workloads::{Scale, Suite};

/// Runs the published reports on this engine and its peers, and shows the result.
#[derive(Parser)]
#[command(name = "esker-lab", version, max_term_width = 110)]
#[command(after_help = "Examples:\n  \
    esker-lab run flash --engines rocksdb,leveldb --scale smoke\n  \
    esker-lab run flash --only overwrite --memory 1GiB --repeat 3\n  \
    esker-lab run txn --engines esker,rocksdb --only put,update,hot\n  \
    esker-lab run sysbench --engines esker,innodb,myrocks --data cached\n  \
    esker-lab report results/ -o report/index.html\n\n\
    `make peers` fetches the libraries of RocksDB and LevelDB; `esker-lab engines` shows what can run.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a report's workloads and write one result file
    Run(Box<RunArgs>),
    /// Compare two result files row by row
    Compare(CompareArgs),
    /// Make one self-contained HTML page out of result files
    Report(ReportArgs),
    /// Measure what the disk and the memory can do at most
    Limits(LimitsArgs),
    /// Show which engines can run here, and how to get the others
    Engines(LibraryArgs),
    /// Run one job read from standard input (the lab starts this itself)
    #[command(hide = true)]
    Worker {
        /// Only load what a test needs
        #[arg(long)]
        load: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SuiteArg {
    /// Report 004: bulk loads, overwrites and reads on flash storage, in db_bench's terms
    Flash,
    /// Transactions with locks and optimistic ones: commits beside plain puts, group commit, hot rows, snapshots
    Txn,
    /// Report 002: sysbench in a MariaDB server, on ESKER, InnoDB and MyRocks
    Sysbench,
    /// Reports 000 and 001: the insert benchmark in a MariaDB server
    Insert,
}

/// What runs a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Report {
    /// Engines in processes of the lab.
    Embedded(Suite),
    /// Engines in a database server.
    Server(esker_lab_sql::suite::Suite),
}

impl SuiteArg {
    pub fn report(self) -> Report {
        match self {
            SuiteArg::Flash => Report::Embedded(Suite::Flash),
            SuiteArg::Txn => Report::Embedded(Suite::Txn),
            SuiteArg::Sysbench => Report::Server(esker_lab_sql::suite::Suite::Sysbench),
            SuiteArg::Insert => Report::Server(esker_lab_sql::suite::Suite::Insert),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum DataArg {
    /// All rows fit into the memory
    Cached,
    /// They do not
    Larger,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum ScaleArg {
    /// Seconds; shows that everything works
    Smoke,
    /// Minutes; 2.5 million rows (2 GB) under 512 MiB of memory (txn: a million rows of 110 bytes)
    Small,
    /// Hours; the report's ratio of data to memory (txn: ten million rows)
    Report,
}

impl From<ScaleArg> for Scale {
    fn from(scale: ScaleArg) -> Scale {
        match scale {
            ScaleArg::Smoke => Scale::Smoke,
            ScaleArg::Small => Scale::Small,
            ScaleArg::Report => Scale::Report,
        }
    }
}

#[derive(Clone, Args)]
pub struct LibraryArgs {
    /// Library with RocksDB's C interface
    #[arg(long, value_name = "FILE", default_value_os_t = Libraries::default().rocksdb)]
    pub rocksdb_lib: PathBuf,

    /// Library with LevelDB's C interface
    #[arg(long, value_name = "FILE", default_value_os_t = Libraries::default().leveldb)]
    pub leveldb_lib: PathBuf,

    /// Folder of Esker's drop-in libraries for programs of RocksDB and LevelDB
    #[arg(long, value_name = "DIR", default_value_os_t = Libraries::default().dropin)]
    pub dropin_dir: PathBuf,
}

impl LibraryArgs {
    pub fn libraries(&self) -> Libraries {
        Libraries {
            rocksdb: self.rocksdb_lib.clone(),
            leveldb: self.leveldb_lib.clone(),
            dropin: self.dropin_dir.clone(),
        }
    }
}

fn compression(text: &str) -> Result<Compression, String> {
    Compression::ALL
        .into_iter()
        .find(|c| c.name() == text)
        .ok_or_else(|| {
            let names: Vec<_> = Compression::ALL.iter().map(|c| c.name()).collect();
            format!("choose one of {}", names.join(", "))
        })
}

#[derive(Args)]
pub struct RunArgs {
    /// Which report
    #[arg(value_enum)]
    pub suite: SuiteArg,

    /// Engines, comma-separated: `rocksdb` (its default variants), `rocksdb:direct` (one), `rocksdb:all`
    /// [default: esker,rocksdb and, in flash, leveldb; in sysbench and insert esker,innodb,myrocks]
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,

    /// In flash: also Esker through its drop-in libraries (`make dropin`), engines dropin-rocksdb and dropin-leveldb, beside
    /// esker:default and esker:buffered, which show what the libraries cost
    #[arg(long)]
    pub dropin: bool,

    /// How large and how long
    #[arg(long, value_enum, default_value = "small")]
    pub scale: ScaleArg,

    /// Tests to run, comma-separated, or `all` [default: in flash the report's five, in txn all]
    #[arg(long, value_delimiter = ',', value_name = "TESTS")]
    pub only: Vec<String>,

    /// Memory limit of each engine's process, page cache included [default: by scale]
    #[arg(long, value_parser = size::parse, value_name = "SIZE")]
    pub memory: Option<u64>,

    /// Run without enforcing the memory limit; engines are still told of it
    #[arg(long)]
    pub no_limit: bool,

    /// Rows to load [default: by scale]
    #[arg(long)]
    pub rows: Option<u64>,

    /// Length of keys, in bytes: ten digits, zeros before them. db_bench's default is 16
    #[arg(long, default_value_t = KEY_BYTES_MIN)]
    pub key_bytes: usize,

    /// Length of values, in bytes [default: 800, in txn 100]
    #[arg(long)]
    pub value_bytes: Option<usize>,

    /// Length of the read tests and of those of transactions, in seconds [default: by scale]
    #[arg(long)]
    pub seconds: Option<f64>,

    /// Longest that the measured part of a write test may take, in seconds [default: by scale]
    #[arg(long)]
    pub cap: Option<f64>,

    /// Times over that overwriting tests rewrite the data
    #[arg(long, default_value_t = 2.0)]
    pub passes: f64,

    /// Threads of the tests that take several [default: 32, in txn by test, in a server 1]
    #[arg(long)]
    pub threads: Option<usize>,

    /// Rows a second of readwhilewriting-paced's writer
    #[arg(long, default_value_t = 10_000.0)]
    pub writes_per_s: f64,

    /// Compression, the same for all engines: none, report (zlib from level 2 on in write tests), lz4, zstd, zlib
    #[arg(long, default_value = "none", value_parser = compression)]
    pub compression: Compression,

    /// Times to measure each row; engines alternate, medians are shown
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Folder for the databases; put it on the storage that you want to measure
    #[arg(long, default_value = "results/work")]
    pub dir: PathBuf,

    /// Keep the databases
    #[arg(long)]
    pub keep: bool,

    /// Result file (default: `results/<suite>-<scale>-<time>.json`)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Also write the HTML page here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Memory allocator of all engines: `auto` (jemalloc if it is installed), `system`, or a library to preload
    #[arg(long, default_value = "auto")]
    pub allocator: String,

    /// Leave out measuring the disk's and the memory's limits
    #[arg(long)]
    pub skip_limits: bool,

    #[command(flatten)]
    pub libraries: LibraryArgs,

    #[command(flatten)]
    pub server: ServerArgs,
}

/// Of the reports that run in a database server.
#[derive(Args)]
pub struct ServerArgs {
    /// In sysbench and insert: how the data stands to the memory [default: both, at smoke scale cached]
    #[arg(long, value_delimiter = ',', value_enum)]
    pub data: Vec<DataArg>,

    /// In sysbench and insert: commits and the binary log wait for the device, in all engines
    #[arg(long)]
    pub sync: bool,

    /// In sysbench and insert: the folder that `make mariadb` made [default: ESKER_MARIADB_HOME, or target/mariadb]
    #[arg(long, value_name = "DIR")]
    pub server_home: Option<PathBuf>,
}

#[derive(Args)]
pub struct CompareArgs {
    /// The earlier result file
    pub before: PathBuf,

    /// The later one
    pub after: PathBuf,

    /// Exit with 1 if any throughput fell by more than this many percent
    #[arg(long, value_name = "PERCENT")]
    pub fail_below: Option<f64>,
}

#[derive(Args)]
pub struct ReportArgs {
    /// Result files, or folders of them
    #[arg(required = true)]
    pub results: Vec<PathBuf>,

    /// The page to write
    #[arg(short, long, default_value = "report/index.html")]
    pub output: PathBuf,
}

#[derive(Args)]
pub struct LimitsArgs {
    /// Folder on the storage to measure
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,

    /// Size of the file to read and write; make it larger than the disk's own cache
    #[arg(long, default_value = "1GiB", value_parser = size::parse)]
    pub size: u64,

    /// Length of each measurement, in seconds
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
