//! Small logs on a simulated disk, shared by the tests of the log.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod watched;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holotype_storage::log::{Checkpoint, Log, LogLimits, LogOptions, OpenOptions, Transaction};
use holotype_storage::vfs::{SimVfs, Vfs};
use holotype_storage::{Error, NewRecord, RecoveryReport, Result};

pub const DIR: &str = "/db/log";
pub const PAGE: u64 = 4096;

/// The smallest pages, and segments of only four.
pub fn small_options() -> LogOptions {
    LogOptions {
        page_size: PAGE as u32,
        first_segment_len: 4 * PAGE,
        limits: small_limits(),
        ..LogOptions::new([7; 16])
    }
}

pub fn small_limits() -> LogLimits {
    LogLimits { max_segment_len: 4 * PAGE, ..LogLimits::default() }
}

pub fn writable() -> OpenOptions {
    OpenOptions { limits: small_limits(), ..OpenOptions::default() }
}

pub fn read_only() -> OpenOptions {
    OpenOptions { read_only: true, ..writable() }
}

pub fn dir() -> &'static Path {
    Path::new(DIR)
}

pub fn segment_path(number: u64) -> PathBuf {
    dir().join(format!("{number:010}.log"))
}

pub fn disk(sim: &SimVfs) -> Arc<dyn Vfs> {
    Arc::new(sim.clone())
}

pub fn create(sim: &SimVfs) -> Log {
    Log::create(disk(sim), dir(), &small_options()).unwrap()
}

/// A log as it was found: what opening said and every transaction it gave.
#[derive(Debug)]
pub struct Opened {
    pub log: Log,
    pub report: RecoveryReport,
    pub transactions: Vec<Transaction>,
}

pub fn try_open(
    sim: &SimVfs,
    from: Option<Checkpoint>,
    options: &OpenOptions,
) -> (Result<(Log, RecoveryReport)>, Vec<Transaction>) {
    let mut transactions = Vec::new();
    let opened = Log::open(disk(sim), dir(), from, options, &mut |transaction| {
        transactions.push(transaction);
        Ok::<(), Error>(())
    });
    (opened, transactions)
}

pub fn open(sim: &SimVfs, options: &OpenOptions) -> Opened {
    let (opened, transactions) = try_open(sim, None, options);
    let (log, report) = opened.unwrap();
    Opened { log, report, transactions }
}

/// Records of these payload lengths, their bytes made from `seed`.
pub fn records(seed: u8, lens: &[usize]) -> Vec<NewRecord> {
    let record = |(at, &len): (usize, &usize)| NewRecord {
        kind: 1 + at as u8,
        payload: (0..len).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect(),
    };
    lens.iter().enumerate().map(record).collect()
}

/// True if a transaction holds these records.
pub fn holds(transaction: &Transaction, records: &[NewRecord]) -> bool {
    transaction.records.len() == records.len()
        && transaction
            .records
            .iter()
            .zip(records)
            .all(|(found, new)| (found.kind, &found.payload) == (new.kind, &new.payload))
}
