//! SQLite with the same items: a row with text, source and vector, and the words in FTS5.
//!
//! A commit is durable by `journal_mode = WAL` and `synchronous = FULL`. No index of vectors is made: a search by
//! vector would read all of them.

use super::corpus::Corpus;
use super::{Usage, directory_bytes, written_bytes};
use crate::Result;
use crate::measure::{cpu_time, quantile_us, round};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

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
    for first in (0..corpus.texts.len()).step_by(per_commit) {
        let items = first..(first + per_commit).min(corpus.texts.len());
        let rows: Vec<(usize, Vec<f32>)> = items.map(|item| (item, corpus.vector(item))).collect();
        let started = Instant::now();
        let transaction = connection.transaction()?;
        let mut item = transaction.prepare_cached("insert into items values (?1, ?2, ?3, ?4)")?;
        let mut words = transaction.prepare_cached("insert into words (rowid, text) values (?1, ?2)")?;
        for (number, vector) in &rows {
            let (number, text) = (*number as i64, corpus.texts[*number].as_str());
            item.execute((number, text, 1, bytemuck::cast_slice::<f32, u8>(vector)))?;
            words.execute((number, text))?;
        }
        drop((item, words));
        transaction.commit()?;
        commits.push(started.elapsed());
    }
    let (wall, cpu) = (usage.started.elapsed(), cpu_time() - usage.cpu);
    connection.close().map_err(|(_, error)| error)?;
    let items = corpus.texts.len() as f64;
    let milliseconds = |share| round(quantile_us(&commits, share) / 1e3, 3);
    Ok(json!({
        "bench": "ingest", "engine": "sqlite", "items": corpus.texts.len(), "per_commit": per_commit,
        "items_per_s": round(items / wall.as_secs_f64(), 1),
        "commit_p50_ms": milliseconds(0.5), "commit_p99_ms": milliseconds(0.99), "commit_worst_ms": milliseconds(1.0),
        "cpu_us_item": round(cpu.as_secs_f64() * 1e6 / items, 1),
        "written_bytes_item": round((written_bytes() - usage.written) as f64 / items, 0),
        "kept_bytes_item": round(directory_bytes(&dir)? as f64 / items, 0),
    }))
}
