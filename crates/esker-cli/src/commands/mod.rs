//! What the commands do.

mod checkpoint;
mod compact;
mod dump;
mod export;
mod families;
mod follow;
mod get;
mod import;
mod ingest;
mod repair;
mod scan;
mod stats;
mod verify;
mod write;

use crate::args::{Args, Command};
use crate::failure::Result;
use crate::output::Output;

/// Runs the command; gives its exit code.
pub fn run(args: &Args, output: &mut Output) -> Result<u8> {
    let common = &args.common;
    match &args.command {
        Command::Put(put) => write::put(common, put, output),
        Command::Delete(delete) => write::delete(common, delete, output),
        Command::DeleteRange(range) => write::delete_range(common, range, output),
        Command::Merge(merge) => write::merge(common, merge, output),
        Command::Get(get) => get::run(common, get, output),
        Command::Scan(scan) => scan::run(common, scan, output),
        Command::Follow(follow) => follow::run(common, follow, output),
        Command::Stats(stats) => stats::run(common, stats, output),
        Command::Dump(dump) => dump::run(common, dump, output),
        Command::Verify(verify) => verify::run(common, verify, output),
        Command::Repair(repair) => repair::run(common, repair, output),
        Command::Compact(compact) => compact::run(common, compact, output),
        Command::Checkpoint(checkpoint) => checkpoint::run(common, checkpoint, output),
        Command::Export(export) => export::run(common, export, output),
        Command::Import(import) => import::run(common, import, output),
        Command::Ingest(ingest) => ingest::run(common, ingest, output),
        Command::Families(families) => families::run(common, families, output),
    }
}
