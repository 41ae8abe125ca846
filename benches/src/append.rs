//! Durable appends: what a commit costs, alone, in hundreds, and with sixteen writers at once.
//!
//! A record is one trace with a text of the given size, through the public API: catalog, columns and words are on, and
//! it has no vector. Every commit is synced before it counts. Afterwards the database is closed, opened again and its
//! traces are counted; one too few is an error.
//!
//! | mode | a commit holds | writers |
//! |---|---|---|
//! | single | 1 record | 1 |
//! | group100 | 100 records | 1 |
//! | writers16 | 1 record | 16 threads of one process |
//!
//! Beside it stands what the disk can do: engine `raw` writes the same bytes into a file that was filled with zeros and
//! synced before, and calls fdatasync for each commit (for `writers16` each thread for its own). `--log-only` adds
//! engine `holotype-log`: the log alone, with no items, catalog or words. Built with the feature `peers`, `--peers`
//! adds SQLite with a write-ahead log and `synchronous = FULL`, and redb, each with one row a record. Durations are
//! those of commits, from beginning to acknowledgement.

#[cfg(feature = "peers")]
mod peers;

use crate::Result;
use crate::measure::{quantile_us, round};
use crate::random::Random;
use crate::reopen;
use holotype::answer::Output;
use holotype::cell::Cell;
use holotype::query::Params;
use holotype::{Durability, Holotype, NewTrace, Options};
use holotype_storage::NewRecord;
use holotype_storage::log::{Log, LogOptions};
use holotype_storage::vfs::OsVfs;
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The length of a record's text in bytes.
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// Records of each mode.
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    /// Only these modes.
    #[arg(long, value_delimiter = ',', value_parser = ["single", "group100", "writers16"])]
    modes: Vec<String>,
    /// Instead: write so many GB (10^9 bytes) of log, crash, and open again.
    #[arg(long)]
    reopen_gb: Option<f64>,
    /// Then make derived files anew, too: with the segments kept that are right, and without.
    #[arg(long, requires = "reopen_gb")]
    rebuild: bool,
    /// The process that `--reopen-gb` has write a database here, and crash.
    #[arg(long, hide = true)]
    crash: Option<PathBuf>,
    /// The bytes of log that it writes.
    #[arg(long, hide = true, default_value_t = 0)]
    crash_after: u64,
    /// Measure the log alone, too.
    #[arg(long)]
    log_only: bool,
    /// Measure SQLite and redb, too.
    #[cfg(feature = "peers")]
    #[arg(long)]
    peers: bool,
    /// The folder to write in; it must lie on the disk that is meant. Files made there are removed.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
}

/// The division of records into commits and among writers.
struct Mode {
    name: &'static str,
    per_commit: usize,
    writers: usize,
}

const MODES: [Mode; 3] = [
    Mode { name: "single", per_commit: 1, writers: 1 },
    Mode { name: "group100", per_commit: 100, writers: 1 },
    Mode { name: "writers16", per_commit: 1, writers: 16 },
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(path) = &arguments.crash {
        return reopen::crash(path, arguments.bytes, arguments.crash_after);
    }
    if let Some(gb) = arguments.reopen_gb {
        return reopen::run(&arguments.dir, arguments.bytes, (gb * 1e9) as u64, arguments.rebuild);
    }
    let wanted = |mode: &&Mode| arguments.modes.is_empty() || arguments.modes.iter().any(|name| name == mode.name);
    for mode in MODES.iter().filter(wanted) {
        let dir = tempfile::Builder::new().prefix("holotype-bench-").tempdir_in(&arguments.dir)?;
        through_the_api(arguments, mode, dir.path())?;
        raw(arguments, mode, dir.path())?;
        if arguments.log_only {
            log_only(arguments, mode, dir.path())?;
        }
        #[cfg(feature = "peers")]
        if arguments.peers {
            peers::append(arguments, mode, dir.path())?;
        }
    }
    Ok(())
}

fn through_the_api(arguments: &Arguments, mode: &Mode, dir: &Path) -> Result<()> {
    let path = dir.join("append.holo");
    let database = Holotype::create(&path, Options::default())?;
    let timed = timed(arguments, mode, |texts| {
        let mut transaction = database.begin()?;
        for text in texts {
            transaction.record(NewTrace::turn("append", text))?;
        }
        transaction.commit(Durability::Sync)?;
        Ok(())
    })?;
    database.close()?;
    let started = Instant::now();
    let database = Holotype::open(&path, Options::default())?;
    let open_ms = round(started.elapsed().as_secs_f64() * 1e3, 3);
    let found = count_traces(&database)?;
    if found != arguments.count as u64 {
        return Err(format!("{} of {} records are there after opening again", found, arguments.count).into());
    }
    let mut line = timed.line("holotype", arguments, mode);
    line["found"] = json!(found);
    line["open_ms"] = json!(open_ms);
    println!("{line}");
    Ok(())
}

pub(crate) fn count_traces(database: &Holotype) -> Result<u64> {
    let outputs = database.query("count traces", &Params::new())?;
    match outputs.first() {
        Some(Output::Table(table)) => match table.rows.first().and_then(|row| row.first()) {
            Some(Some(Cell::Integer(count))) => Ok(u64::try_from(*count)?),
            other => Err(format!("`count traces` answered {other:?}").into()),
        },
        _ => Err("`count traces` gave no table".into()),
    }
}

fn raw(arguments: &Arguments, mode: &Mode, dir: &Path) -> Result<()> {
    let file = File::create(dir.join("raw"))?;
    let zeros = vec![0; 1 << 20];
    let len = (arguments.bytes * arguments.count) as u64;
    let mut at = 0;
    while at < len {
        let part = usize::try_from(len - at).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all_at(&zeros[..part], at)?;
        at += part as u64;
    }
    file.sync_all()?;
    let next = std::sync::atomic::AtomicU64::new(0);
    let timed = timed(arguments, mode, |texts| {
        let bytes = texts.concat();
        let at = next.fetch_add(bytes.len() as u64, std::sync::atomic::Ordering::Relaxed);
        file.write_all_at(bytes.as_bytes(), at)?;
        file.sync_data()?;
        Ok(())
    })?;
    println!("{}", timed.line("raw", arguments, mode));
    Ok(())
}

fn log_only(arguments: &Arguments, mode: &Mode, dir: &Path) -> Result<()> {
    /// Any kind that is the engine's to give.
    const KIND: u8 = 1;
    let log = Log::create(Arc::new(OsVfs), &dir.join("log"), &LogOptions::new(*b"holotype-bench\0\0"))?;
    let timed = timed(arguments, mode, |texts| {
        let records: Vec<NewRecord> =
            texts.into_iter().map(|text| NewRecord { kind: KIND, payload: text.into_bytes() }).collect();
        let appended = log.append(&records, 0)?;
        log.sync_to(appended.end)?;
        Ok(())
    })?;
    log.close()?;
    println!("{}", timed.line("holotype-log", arguments, mode));
    Ok(())
}

/// The time of the whole, and of each commit.
struct Timed {
    wall: Duration,
    commits: Vec<Duration>,
}

impl Timed {
    fn line(&self, engine: &str, arguments: &Arguments, mode: &Mode) -> serde_json::Value {
        json!({
            "bench": "append", "engine": engine, "mode": mode.name,
            "records_per_s": round(arguments.count as f64 / self.wall.as_secs_f64(), 1),
            "p50_us": quantile_us(&self.commits, 0.5), "p99_us": quantile_us(&self.commits, 0.99),
            "bytes": arguments.bytes, "records": arguments.count, "commits": self.commits.len(),
        })
    }
}

/// Has `commit` called with the texts of one commit after the other, by as many threads as the mode has writers. The
/// texts are made beforehand.
fn timed(arguments: &Arguments, mode: &Mode, commit: impl Fn(Vec<String>) -> Result<()> + Sync) -> Result<Timed> {
    let shares: Vec<Vec<Vec<String>>> = (0..mode.writers).map(|writer| share(arguments, mode, writer)).collect();
    let work = |share: Vec<Vec<String>>| -> Result<Vec<Duration>, String> {
        let timed = share.into_iter().map(|texts| {
            let started = Instant::now();
            commit(texts).map_err(|error| error.to_string())?;
            Ok(started.elapsed())
        });
        timed.collect()
    };
    let started = Instant::now();
    let parts: Vec<Result<Vec<Duration>, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| work(share))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a writer does not panic")).collect()
    });
    let wall = started.elapsed();
    let commits = parts.into_iter().collect::<Result<Vec<_>, String>>()?.concat();
    Ok(Timed { wall, commits })
}

/// The texts of one writer, commit by commit; the first writers take what does not divide evenly.
fn share(arguments: &Arguments, mode: &Mode, writer: usize) -> Vec<Vec<String>> {
    let own = arguments.count / mode.writers + usize::from(writer < arguments.count % mode.writers);
    let mut random = Random(writer as u64 + 1);
    let mut texts = (0..own).map(|_| text(arguments.bytes, &mut random)).peekable();
    let mut commits = Vec::with_capacity(own.div_ceil(mode.per_commit));
    while texts.peek().is_some() {
        commits.push(texts.by_ref().take(mode.per_commit).collect());
    }
    commits
}

/// A text of exactly that many bytes: made-up words, a few of them common and most of them rare, as in a language.
pub(crate) fn text(bytes: usize, random: &mut Random) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"];
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        // The product of two even numbers favours small ones.
        let mut word = random.below(256) * random.below(256);
        loop {
            text.push_str(SYLLABLES[word % SYLLABLES.len()]);
            word /= SYLLABLES.len();
            if word == 0 {
                break;
            }
        }
        text.push(' ');
    }
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_text_is_as_long_as_asked() {
        for bytes in [0, 1, 2, 1024] {
            assert_eq!(text(bytes, &mut Random(7)).len(), bytes);
        }
    }

    #[test]
    fn every_record_is_written_once_in_commits_of_the_right_size() {
        let arguments = Arguments {
            bytes: 5,
            count: 333,
            modes: Vec::new(),
            reopen_gb: None,
            rebuild: false,
            crash: None,
            crash_after: 0,
            log_only: false,
            #[cfg(feature = "peers")]
            peers: false,
            dir: PathBuf::new(),
        };
        for (mode, commits) in MODES.iter().zip([333, 4, 333]) {
            let records = AtomicUsize::new(0);
            let timed = timed(&arguments, mode, |texts| {
                assert!(texts.len() <= mode.per_commit);
                records.fetch_add(texts.len(), Ordering::Relaxed);
                Ok(())
            });
            assert_eq!((timed.unwrap().commits.len(), records.into_inner()), (commits, 333), "{}", mode.name);
        }
    }
}
