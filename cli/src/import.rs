//! `holotype import`: imports the lines of files into a database, or with `--from` the files of other programs
//! ([`foreign`]).
//!
//! If the database has no embedding space and the files bring no vectors, the built-in hashing embedder makes a vector
//! for every text, so that recall works without a model.

mod foreign;

use crate::failure::{Failure, Problem, Status};
use crate::interrupt::{self, Stoppable};
use crate::render::{self, Format};
use crate::{database, params, screen};
use foreign::Foreign;
use holotype::embed::{Embedder, HashingEmbedder};
use holotype::interchange::{self, ImportOptions, ImportReport, NpyReader};
use holotype::plural::counted;
use holotype::{Durability, Error, Holotype};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Files of JSON Lines, in order; `-` is stdin. With --from: files, folders or ZIPs of that format
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    foreign: Foreign,
    /// The vectors that `row` refers to: one file for each FILE, in the same order
    #[arg(long, value_name = "FILE.npy", conflicts_with = "from")]
    vectors: Vec<PathBuf>,
    /// The durability of each transaction before the next one begins
    #[arg(long, default_value = "sync", value_parser = ["sync", "flush", "none"])]
    durability: String,
    /// Report a wrong line and go on; lines that depend on it are skipped too
    #[arg(long, conflicts_with = "from")]
    skip_bad: bool,
    /// Load a new database at the largest rate; DB exists once all is loaded and indexed. An interrupted load is
    /// continued by the same command
    #[arg(long, conflicts_with_all = ["durability", "from"])]
    bulk: bool,
}

/// One file to import, checked before anything is written.
struct Input {
    name: String,
    lines: Box<dyn BufRead>,
    len: u64,
    vectors: Option<NpyReader>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    if let Some(from) = args.foreign.from {
        return foreign::run(from, args, format);
    }
    if !args.vectors.is_empty() && args.vectors.len() != args.files.len() {
        let (files, vectors) = (args.files.len(), args.vectors.len());
        let message = format!(
            "--vectors must be given once for each FILE: there are {} and {}",
            counted(files as u64, "files"),
            counted(vectors as u64, "files of vectors")
        );
        return Err(Problem::input("usage", message).into());
    }
    let inputs = open_inputs(args)?;
    if args.bulk {
        return bulk(args, inputs, format);
    }
    let database = database::to_write(&args.db).map_err(|failure| with_hint(failure, &args.db))?;
    let options = import_options(&database, args)?;
    let total = import_all(&database, inputs, &options);
    let closed = database::close(database);
    let total = total.inspect_err(|failure| {
        if matches!(failure, Failure::Interrupted) {
            database::note("interrupted; the transactions committed so far stand, and the import can be run again");
        }
    })?;
    closed?;
    end(total, &options, format)
}

/// Loads a new database that nobody sees before it is done.
fn bulk(args: &Args, inputs: Vec<Input>, format: Format) -> Result<Status, Failure> {
    let load = Holotype::bulk_load(&args.db, database::options()).map_err(|error| match error {
        Error::Exists { path } => Problem::from(Error::Exists { path })
            .hint("a bulk load makes a new database; import without --bulk into one that exists".to_owned()),
        error => Problem::from(error),
    })?;
    if load.is_resumed() {
        database::note(&format!("continuing the load in {}", load.place().display()));
    }
    let options = ImportOptions { durability: Durability::None, ..import_options(load.database(), args)? };
    let total = import_all(load.database(), inputs, &options).inspect_err(|_| {
        let place = load.place().display();
        database::note(&format!("not finished; run the same command again to continue, or remove {place}"));
    })?;
    load.finish()?.close()?;
    end(total, &options, format)
}

fn import_options(database: &Holotype, args: &Args) -> Result<ImportOptions, Failure> {
    let embedder = embedder_for(database, args)?;
    Ok(ImportOptions { durability: args.durability.parse()?, skip_bad: args.skip_bad, embedder })
}

fn import_all(database: &Holotype, inputs: Vec<Input>, options: &ImportOptions) -> Result<ImportReport, Failure> {
    let mut total = ImportReport::default();
    for input in inputs {
        let report = import_one(database, input, options);
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        add(&mut total, report?);
    }
    Ok(total)
}

fn end(mut total: ImportReport, options: &ImportOptions, format: Format) -> Result<Status, Failure> {
    for error in std::mem::take(&mut total.errors) {
        Problem::from(error).tell(Some(format));
    }
    tell(&total, options.embedder.as_deref(), format)?;
    Ok(if total.skipped > 0 { Status::Found } else { Status::Done })
}

fn open_inputs(args: &Args) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for (index, file) in args.files.iter().enumerate() {
        let vectors = args.vectors.get(index).map(|path| params::open_vectors(path)).transpose()?;
        let (lines, len): (Box<dyn BufRead>, u64) = if file.as_os_str() == "-" {
            (Box::new(BufReader::new(io::stdin())), 0)
        } else {
            let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?, opened)));
            let (metadata, opened) = opened.map_err(|error| Problem::io(file, "read", &error))?;
            if metadata.is_dir() {
                let hint = "--from FORMAT reads folders: `holotype import --help` lists the formats";
                return Err(Problem::io(file, "read", &io::ErrorKind::IsADirectory.into()).hint(hint).into());
            }
            (Box::new(BufReader::with_capacity(1 << 18, opened)), metadata.len())
        };
        let lines = foreign::refuse(&args.db, file, lines)?;
        let name = if file.as_os_str() == "-" { "<stdin>".to_owned() } else { file.display().to_string() };
        inputs.push(Input { name, lines, len, vectors });
    }
    Ok(inputs)
}

fn with_hint(failure: Failure, path: &Path) -> Failure {
    match failure {
        Failure::Problem(problem) if problem.code == "not-found" => {
            let hint =
                format!("run `holotype create {}` first; the import then brings its space along", path.display());
            Failure::Problem(Box::new(problem.hint(hint)))
        }
        other => other,
    }
}

/// The embedder for texts without a vector: that of the command line, or the built-in one; none if the database holds
/// the vectors of a model.
fn embedder_for(database: &Holotype, args: &Args) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    if let Some(embedder) = database::embedder() {
        return Ok(Some(embedder));
    }
    let built_in = match database.snapshot().space()? {
        Some(space) => HashingEmbedder::from_name(&space.model),
        None => args.vectors.is_empty().then(HashingEmbedder::default),
    };
    Ok(built_in.map(|embedder| Arc::new(embedder) as Arc<dyn Embedder>))
}

fn import_one(database: &Holotype, input: Input, options: &ImportOptions) -> Result<ImportReport, Failure> {
    let bar = screen::progress("importing", input.len, true);
    let lines = Stoppable::new(input.lines);
    let vectors = input.vectors.as_ref();
    let report =
        interchange::import(database, &input.name, lines, vectors, options, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    Ok(report?)
}

fn add(total: &mut ImportReport, report: ImportReport) {
    total.transactions += report.transactions;
    total.split += report.split;
    total.added += report.added;
    total.known += report.known;
    total.skipped += report.skipped;
    total.embedded += report.embedded;
    total.errors.extend(report.errors);
}

fn tell(total: &ImportReport, embedder: Option<&dyn Embedder>, format: Format) -> Result<(), Failure> {
    let is_built_in = |embedder: &&dyn Embedder| HashingEmbedder::from_name(&embedder.fingerprint()).is_some();
    if let Some(embedder) = embedder.filter(|_| total.embedded > 0).filter(is_built_in) {
        let (count, name) = (total.embedded, embedder.name());
        database::note(&format!(
            "{} without a vector: the built-in embedder {name} made one for each, which is good enough to try; \
             import vectors of a model for better recall",
            counted(count, "texts")
        ));
    }
    if total.split > 0 {
        database::note(&format!(
            "the lines before the first commit line are {}: they were too many for one; begin the file with \
             {{\"commit\":{{}}}} to have it refused instead",
            counted(total.split, "transactions")
        ));
    }
    let ImportReport { transactions, split, added, known, skipped, embedded, .. } = total;
    let json = json!({
        "transactions": transactions, "split": split, "added": added, "known": known, "skipped": skipped,
        "embedded": embedded,
    });
    let text = format!(
        "{} added in {}, {known} already known, {skipped} skipped",
        counted(*added, "lines"),
        counted(*transactions, "transactions")
    );
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(())
}
