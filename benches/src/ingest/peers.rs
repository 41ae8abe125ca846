//! SQLite with the same items: a row with text, source and vector, and the words in FTS5.
//!
//! A commit is durable by `journal_mode = WAL` and `synchronous = FULL`. No index of vectors is made: a search by
//! vector would read all of them.

use super::corpus::Corpus;
use super::{Usage, directory_bytes, written_bytes};
use crate::Result;
use crate::measure::{anonymous_memory, cpu_time, quantile_us, round};
use half::f16;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Commits between two looks at the memory.
const MEMORY_EVERY: usize = 50;

const SCHEMA: &str = "
    create table items (number integer primary key, text text not null, source integer not null, vector blob not null);
    create virtual table words using fts5 (text, content = 'items', content_rowid = 'number');
";

pub(super) fn ingest(corpus: &Corpus, per_commit: usize, dir: &Path) -> Result<Value> {
    let dir = dir.join("sqlite");
    std::fs::create_dir(&dir)?;
    let mut connection = rusqlite::Connection::open(dir.join("ingest.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch(SCHEMA)?;
    let usage = Usage::start();
    let mut commits: Vec<Duration> = Vec::new();
    let mut peak = 0;
    for first in (0..corpus.texts.len()).step_by(per_commit) {
        let items = first..(first + per_commit).min(corpus.texts.len());
        let rows: Vec<(usize, &[f16])> = items.map(|item| (item, corpus.halves(item))).collect();
        let started = Instant::now();
        let transaction = connection.transaction()?;
        let mut item = transaction.prepare_cached("insert into items values (?1, ?2, ?3, ?4)")?;
        let mut words = transaction.prepare_cached("insert into words (rowid, text) values (?1, ?2)")?;
        for (number, vector) in &rows {
            let (number, text) = (*number as i64, corpus.texts[*number].as_str());
            item.execute((number, text, 1, bytemuck::cast_slice::<f16, u8>(vector)))?;
            words.execute((number, text))?;
        }
        drop((item, words));
        transaction.commit()?;
        commits.push(started.elapsed());
        if commits.len() % MEMORY_EVERY == 1 {
            peak = peak.max(anonymous_memory().unwrap_or_default());
        }
    }
    let (wall, cpu) = (usage.started.elapsed(), cpu_time() - usage.cpu);
    peak = peak.max(anonymous_memory().unwrap_or_default()).saturating_sub(usage.memory);
    let written = written_bytes() - usage.written;
    let asked = ask(&connection, corpus)?;
    connection.close().map_err(|(_, error)| error)?;
    let items = corpus.texts.len() as f64;
    let milliseconds = |share| round(quantile_us(&commits, share) / 1e3, 3);
    Ok(json!({
        "bench": "ingest", "engine": "sqlite", "items": corpus.texts.len(), "commit": per_commit,
        "items_per_s": round(items / wall.as_secs_f64(), 1),
        "p50_commit_ms": milliseconds(0.5), "p99_commit_ms": milliseconds(0.99), "worst_commit_ms": milliseconds(1.0),
        "cpu_us_item": round(cpu.as_secs_f64() * 1e6 / items, 1),
        "written_bytes_item": round(written as f64 / items, 0),
        "disk_bytes_item": round(directory_bytes(&dir)? as f64 / items, 0),
        "peak_mb": round(peak as f64 / 1e6, 1), "settled_s": 0,
        "query_p50_us": quantile_us(&asked, 0.5), "query_p99_us": quantile_us(&asked, 0.99),
    }))
}

/// Asks every question by its words, when all items are written.
fn ask(connection: &rusqlite::Connection, corpus: &Corpus) -> Result<Vec<Duration>> {
    let mut select = connection.prepare("select rowid from words where words match ?1 order by rank limit 5")?;
    let mut times = Vec::with_capacity(corpus.questions.len());
    for question in &corpus.questions {
        let any: Vec<String> = question.text.split(' ').map(|word| format!("\"{}\"", word.replace('"', ""))).collect();
        let started = Instant::now();
        let found = select.query_map([any.join(" OR ")], |row| row.get::<_, i64>(0))?.count();
        times.push(started.elapsed());
        if found == 0 {
            return Err("SQLite found nothing".into());
        }
    }
    Ok(times)
}
