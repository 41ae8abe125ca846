//! The rate at which the log is verified, beside that of hashing the same records alone: one core each, warm.
//!
//! A record is hashed by BLAKE3 when it is verified, so the rate of BLAKE3 on inputs of that length is the most there
//! can be; on top come checksums, the pages' trees and chain, transactions and heads. Both are told in payload bytes.

use crate::Result;
use holotype_storage::NewRecord;
use holotype_storage::log::{Log, LogOptions};
use holotype_storage::vfs::OsVfs;
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// MiB of payload in the log. Verifying reads the zeros behind the log's end, too, which are up to 64 MiB: with a
    /// few hundred they weigh little.
    #[arg(long, default_value_t = 512)]
    mib: usize,
    /// The number of measurements of each; the best counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for (record_len, per_commit) in [(1_000, 100), (1_000, 1), (200, 100), (8_000, 10)] {
        let payload: Vec<u8> = (0..record_len).map(|at| (at * 31) as u8).collect();
        let count = (arguments.mib << 20) / record_len / per_commit;
        let dir = tempfile::tempdir()?;
        let log = Log::create(Arc::new(OsVfs), &dir.path().join("log"), &LogOptions::new([7; 16]))?;
        let records = vec![NewRecord { kind: 1, payload: payload.clone() }; per_commit];
        for number in 0..count {
            log.append(&records, number as i64)?;
        }
        log.sync_to(log.end())?;
        let bytes = (count * per_commit * record_len) as f64;
        // The input of a record's hash: a tag, eight bytes of its header, its salt, its payload.
        let input = [vec![0; 25], payload].concat();
        let (mut hashing, mut verifying) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..arguments.rounds {
            let start = Instant::now();
            for _ in 0..count * per_commit {
                black_box(blake3::hash(black_box(&input)));
            }
            hashing = hashing.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let report = log.verify(&mut |_, _| {})?;
            verifying = verifying.min(start.elapsed().as_secs_f64());
            if !report.is_clean() || report.records != (count * per_commit) as u64 {
                return Err("the log is not sound".into());
            }
        }
        let rate = |seconds: f64| (bytes / seconds / f64::from(1 << 20)).round();
        let line = json!({
            "bench": "verify", "record_len": record_len, "records_per_commit": per_commit,
            "blake3_mib_s": rate(hashing), "verify_mib_s": rate(verifying),
            "ratio": (hashing / verifying * 100.0).round() / 100.0,
        });
        println!("{line}");
    }
    Ok(())
}
