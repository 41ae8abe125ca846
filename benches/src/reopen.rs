//! Opening after a crash: what it costs with so many bytes in the log.
//!
//! A process of its own writes records through the public API, a hundred to a commit, until the log is long enough, and
//! aborts without closing. Then the files are put out of the page cache, the database is opened, and what it answers is
//! counted. A rebuild makes derived files again from the log, once keeping the segments that are right, and once with
//! nothing kept.

use crate::Result;
use crate::append::{count_traces, text};
use crate::measure::{memory, round};
use crate::random::Random;
use holotype::{Durability, Holotype, NewTrace, Options};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const GROUP: usize = 100;

/// Has a log of at least that many bytes written by a process that ends in the midst of it, and opens it.
pub(crate) fn run(dir: &Path, record_bytes: usize, log_bytes: u64, rebuild: bool) -> Result<()> {
    let dir = tempfile::Builder::new().prefix("holotype-bench-").tempdir_in(dir)?;
    let path = dir.path().join("reopen.holo");
    let mut writer = Command::new(std::env::current_exe()?);
    writer.arg("append").arg("--crash").arg(&path);
    writer.args(["--bytes", &record_bytes.to_string(), "--crash-after", &log_bytes.to_string()]);
    let status = writer.status()?;
    if status.success() || !path.exists() {
        return Err("the writing process did not crash as it should".into());
    }
    let len = forget_pages(&path)?;
    let started = Instant::now();
    let database = Holotype::open(&path, Options::default())?;
    let open_ms = round(started.elapsed().as_secs_f64() * 1e3, 3);
    let found = count_traces(&database)?;
    let replayed = database.report().replayed;
    println!(
        "{}",
        json!({
            "bench": "append", "engine": "holotype", "mode": "reopen", "log_bytes": log_bytes, "disk_bytes": len,
            "open_ms": open_ms, "replayed": replayed, "found": found, "peak_bytes": memory("VmHWM"),
        })
    );
    drop(database);
    if rebuild {
        for (mode, make) in [("rebuild", Holotype::rebuild as Make<'_>), ("rebuild-all", Holotype::rebuild_all)] {
            forget_pages(&path)?;
            let started = Instant::now();
            let database = make(path.as_path(), Options::default())?;
            let seconds = started.elapsed().as_secs_f64();
            let again = count_traces(&database)?;
            if again != found {
                return Err(format!("{again} of {found} records are there after rebuilding").into());
            }
            println!(
                "{}",
                json!({
                        "bench": "append", "engine": "holotype", "mode": mode, "records": found,
                "rebuild_s": round(seconds, 3),
                        "records_per_s": round(found as f64 / seconds, 1), "segments_kept": database.report().reused,
                        "peak_bytes": memory("VmHWM"),
                    })
            );
        }
    }
    Ok(())
}

/// Makes derived files again and opens the database.
type Make<'a> = fn(&'a Path, Options) -> holotype::Result<Holotype>;

/// The writing process: does not return in order.
pub(crate) fn crash(path: &Path, record_bytes: usize, log_bytes: u64) -> Result<()> {
    let database = Holotype::create(path, Options::default())?;
    let mut random = Random(1);
    let texts: Vec<String> = (0..10_000).map(|_| text(record_bytes, &mut random)).collect();
    let mut texts = texts.iter().cycle();
    while database.head().position.0 < log_bytes {
        let mut transaction = database.begin()?;
        for text in texts.by_ref().take(GROUP) {
            transaction.record(NewTrace::turn("append", text.clone()))?;
        }
        transaction.commit(Durability::Sync)?;
    }
    std::process::abort();
}

/// Puts every file below a folder out of the page cache, as far as the system does as it is told; returns their length.
fn forget_pages(path: &Path) -> Result<u64> {
    let mut len = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            len += forget_pages(&entry.path())?;
            continue;
        }
        let file = File::open(entry.path())?;
        file.sync_all()?;
        len += file.metadata()?.len();
        #[cfg(target_os = "linux")]
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(len)
}
