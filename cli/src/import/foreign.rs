//! `holotype import --from`: the logs, exports and memories of other programs.
//!
//! The readers are in the crate `holotype-import`. A file of theirs that is given without `--from` is refused with the
//! command that imports it.

use crate::failure::{Failure, Problem, Status};
use crate::interrupt;
use crate::render::{self, Format as Form};
use crate::{database, screen};
use holotype::embed::{Embedder, HashingEmbedder};
use holotype::plural::counted;
use holotype::{Holotype, Options};
use holotype_import::{ColumnMap, Format, ImportError, Report};
use serde_json::json;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

/// Problems that are told; the others are counted.
const MOST_TOLD: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct Foreign {
    /// The format of the files: claude-code, codex, chatgpt, claude, openai, anthropic, server-memory, mem0, mif,
    /// langgraph, letta, markdown, csv, parquet, whatsapp or slack
    #[arg(long, value_name = "FORMAT")]
    pub(super) from: Option<Format>,
    /// Read, compare and count, and write nothing
    #[arg(long, requires = "from")]
    dry_run: bool,
    /// Leave out what is older: a time or a date
    #[arg(long, requires = "from", value_name = "TIME")]
    since: Option<String>,
    /// The zone of times that state none, such as Europe/Zurich, UTC or +02:00
    #[arg(long, requires = "from", value_name = "ZONE")]
    zone: Option<String>,
    /// The columns of a table: text, speaker, time, key, episode, kind, tool, status, vector
    #[arg(long, requires = "from", value_name = "text=COLUMN,...")]
    map: Option<String>,
}

pub(super) fn run(from: Format, args: &super::Args, format: Form) -> Result<Status, Failure> {
    let given = &args.foreign;
    let zone = given.zone.as_deref().map(holotype_import::zone).transpose().map_err(told)?;
    let since = given.since.as_deref().map(|text| holotype_import::moment(text, zone.as_ref()));
    let options = holotype_import::Options {
        dry_run: given.dry_run,
        since: since.transpose().map_err(told)?,
        map: ColumnMap::parse(given.map.as_deref().unwrap_or_default()).map_err(told)?,
        zone,
        durability: args.durability.parse()?,
    };
    let brings_vectors = given.map.as_deref().is_some_and(|map| map.contains("vector="));
    let (database, embedder) = open(&args.db, given.dry_run, brings_vectors)?;
    let mut total = Report::default();
    for path in &args.files {
        let bar = screen::progress("importing", holotype_import::size(path), true);
        let _deferred = interrupt::defer(1);
        let mut progress = |bytes| {
            bar.set_position(bytes);
            !interrupt::asked()
        };
        let report = holotype_import::import(&database, from, path, &options, &mut progress);
        bar.finish_and_clear();
        match report {
            Ok(report) => total.add(report),
            Err(ImportError::Interrupted) => {
                database.close()?;
                database::note("interrupted; what was committed so far stays, and the import can be run again");
                return Err(Failure::Interrupted);
            }
            Err(error) => {
                database.close()?;
                return Err(told(error));
            }
        }
    }
    database.close()?;
    tell(&total, embedder.as_deref().filter(|_| !given.dry_run), format)?;
    Ok(if total.problem_count > 0 { Status::Found } else { Status::Done })
}

/// Opens the database with the embedder of its space, or the built-in one where it has none.
fn open(path: &Path, is_dry: bool, brings_vectors: bool) -> Result<(Holotype, Option<Arc<dyn Embedder>>), Failure> {
    let read = database::to_read(path).map_err(|failure| super::with_hint(failure, path))?;
    if is_dry {
        return Ok((read, None));
    }
    let space = read.snapshot().space()?;
    read.close()?;
    let embedder = database::embedder().or_else(|| {
        let built_in = match space {
            Some(space) => HashingEmbedder::from_name(&space.model),
            None => (!brings_vectors).then(HashingEmbedder::default),
        };
        built_in.map(|embedder| Arc::new(embedder) as Arc<dyn Embedder>)
    });
    let options = Options { embedder: embedder.clone(), ..database::options() };
    Ok((database::to_write_with(path, options)?, embedder))
}

/// Refuses a file that looks like one of another program, with the command that imports it.
pub(super) fn refuse(db: &Path, file: &Path, mut lines: Box<dyn BufRead>) -> Result<Box<dyn BufRead>, Failure> {
    let head = lines.fill_buf().map_err(|error| Problem::io(file, "read", &error))?;
    let (db, shown) = (db.display(), file.display());
    if head.starts_with(b"PK\x03\x04") {
        let hint = format!("a ZIP is imported by `holotype import {db} --from FORMAT {shown}`");
        return Err(Problem::input("format", format!("{shown} is a ZIP, expected JSON Lines")).hint(hint).into());
    }
    match holotype_import::guess(&file.to_string_lossy(), head) {
        None => Ok(lines),
        Some(format) => {
            let message =
                format!("{shown} looks like the format {format}, expected the JSON Lines of `holotype export`");
            let hint = format!("run `holotype import {db} --from {format} {shown}`");
            Err(Problem::input("format", message).hint(hint).into())
        }
    }
}

fn told(error: ImportError) -> Failure {
    match error {
        ImportError::Database(error) => error.into(),
        ImportError::File { path, source } => Problem::io(&path, "read", &source).into(),
        error @ ImportError::Input { .. } => Problem::input("import", error.to_string()).into(),
        error => Problem::input("usage", error.to_string()).into(),
    }
}

fn tell(total: &Report, embedder: Option<&dyn Embedder>, format: Form) -> Result<(), Failure> {
    for problem in total.problems.iter().take(MOST_TOLD) {
        Problem::input("import", problem.to_string()).tell(Some(format));
    }
    let untold = total.problem_count.saturating_sub(MOST_TOLD as u64);
    if untold > 0 {
        database::note(&format!("{} more", counted(untold, "problems")));
    }
    if !total.unknown_types.is_empty() {
        let types = total.unknown_types.iter().map(|(name, count)| format!("{name} ({count})"));
        database::note(&format!("unknown types: {}", types.collect::<Vec<_>>().join(", ")));
    }
    let is_built_in = |embedder: &&dyn Embedder| HashingEmbedder::from_name(&embedder.fingerprint()).is_some();
    if let Some(embedder) = embedder.filter(|_| total.written > 0).filter(is_built_in) {
        database::note(&format!(
            "the built-in embedder {} made the vectors, which is good enough to try; --embedder DIR takes a model",
            embedder.name()
        ));
    }
    let Report { read, written, versions, known, skipped, unknown, verified, .. } = total;
    let json = json!({
        "read": read, "written": written, "versions": versions, "known": known, "skipped": skipped,
        "unknown": unknown, "verified": verified, "unknown types": total.unknown_types,
        "problems": total.problem_count,
    });
    let text = format!(
        "{read} read, {written} written ({versions} of them new versions), {known} known, {skipped} skipped, \
         {unknown} unknown, {verified} verified"
    );
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(())
}
