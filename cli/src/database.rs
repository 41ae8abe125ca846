//! Opening a database, and telling what opening did.

use crate::embedder;
use crate::failure::{Failure, Problem, Status};
use crate::render::text::printable;
use holotype::embed::Embedder;
use holotype::{Accelerator, Error, Holotype, Options};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Opens a database to read it: beside a writer, and changing nothing.
pub(crate) fn to_read(path: &Path) -> Result<Holotype, Failure> {
    open(path, Options { read_only: true, ..options() })
}

/// Opens a database to write to it, in turns with the other processes that have it open.
pub(crate) fn to_write(path: &Path) -> Result<Holotype, Failure> {
    to_write_with(path, options())
}

/// Opens a database to write to it with these options, in turns with the other processes that have it open.
pub(crate) fn to_write_with(path: &Path, options: Options) -> Result<Holotype, Failure> {
    let shared = Options::shared();
    open(path, Options { exclusive: shared.exclusive, write_timeout: shared.write_timeout, ..options })
}

/// `--accept-damage`, which every command understands.
static ACCEPT_DAMAGE: AtomicBool = AtomicBool::new(false);

/// Has databases opened for writing although their logs are known to be damaged.
pub(crate) fn accept_damage() {
    ACCEPT_DAMAGE.store(true, Ordering::Relaxed);
}

/// `--witness` and `--accept-witness`, which every command understands.
static WITNESS: OnceLock<(Option<PathBuf>, bool)> = OnceLock::new();

/// Has databases opened with the witness in this file; `accept` takes one whose witness is missing.
pub(crate) fn witness_by(path: Option<PathBuf>, accept: bool) {
    let path = path.or_else(|| std::env::var_os("HOLOTYPE_WITNESS").filter(|path| !path.is_empty()).map(Into::into));
    WITNESS.get_or_init(|| (path, accept));
}

/// The options of a handle that writes in turns with others.
pub(crate) fn in_turns() -> Options {
    let shared = Options::shared();
    Options { exclusive: shared.exclusive, write_timeout: shared.write_timeout, ..options() }
}

/// The options that the command line gives every command.
pub(crate) fn options() -> Options {
    let (witness, accept_witness) = WITNESS.get().cloned().unwrap_or_default();
    let accept_damage = ACCEPT_DAMAGE.load(Ordering::Relaxed);
    let accelerator = ACCELERATOR.get().copied().unwrap_or_default();
    Options { witness, accept_witness, accept_damage, accelerator, embedder: embedder(), ..Options::default() }
}

/// `--embedder`, which every command understands.
static EMBEDDER: OnceLock<Option<Arc<dyn Embedder>>> = OnceLock::new();

/// Has databases opened with the model in this folder as their embedder.
pub(crate) fn embed_by(folder: Option<&Path>) -> Result<(), Failure> {
    let opened = folder.map(embedder::open).transpose()?;
    EMBEDDER.get_or_init(|| opened.map(|opened| opened.embedder));
    Ok(())
}

/// The embedder of the command line.
pub(crate) fn embedder() -> Option<Arc<dyn Embedder>> {
    EMBEDDER.get().cloned().flatten()
}

/// `--accelerator`, which every command understands.
static ACCELERATOR: OnceLock<Accelerator> = OnceLock::new();

/// Has databases opened that compare vectors in batches there.
pub(crate) fn accelerate_by(accelerator: Accelerator) {
    ACCELERATOR.get_or_init(|| accelerator);
}

/// Tells once why a GPU that was to be used was not.
pub(crate) fn note_accelerator(database: &Holotype) {
    if let Some(fault) = database.accelerator_fault() {
        note(&format!("the CPU compared vectors: {fault}"));
    }
}

/// The outcome of a command that read all it was asked for: something is found when opening found that the log lacks
/// something, whatever the answers say.
pub(crate) fn status_of_reading(database: &Holotype) -> Status {
    if database.report().faults().is_empty() { Status::Done } else { Status::Found }
}

/// Opens a database to record something in turns with others, at a cost that does not depend on its size; fully, if
/// derived files have to be made again.
pub(crate) fn to_append(path: &Path) -> Result<Holotype, Failure> {
    match Holotype::open(path, in_turns().appending()) {
        Err(Error::OpenFully { .. }) => to_write(path),
        opened => tell(path, opened, false),
    }
}

fn open(path: &Path, options: Options) -> Result<Holotype, Failure> {
    let read_only = options.read_only;
    tell(path, Holotype::open(path, options), read_only)
}

fn tell(path: &Path, opened: holotype::Result<Holotype>, read_only: bool) -> Result<Holotype, Failure> {
    let database = opened.map_err(|error| about(path, error))?;
    let report = database.report();
    for line in &report.recovery {
        note(line);
    }
    if let Some(line) = &report.copied {
        note(line);
    }
    // A restored database or a copy that follows a replica has no derived files.
    let is_copy = read_only && (path.join("FOLLOWS").exists() || path.join("RESTORED").exists());
    if let Some(why) = report.rebuilt.as_ref().filter(|_| !is_copy) {
        let kept = if read_only { " in memory; `holotype rebuild` stores them" } else { "" };
        note(&format!("derived files were rebuilt from the log{kept}: {why}"));
    }
    Ok(database)
}

/// Closes a database after the command has done its work. A derived file that cannot be written then is no failure of
/// the command: everything is committed, and the next opening makes the file.
pub(crate) fn close(database: Holotype) -> Result<(), Failure> {
    match database.close() {
        Err(error) if error.code() == "unfinished" => {
            note(&error.to_string());
            Ok(())
        }
        closed => Ok(closed?),
    }
}

/// The problem of an error of opening the database at `path`.
pub(crate) fn about(path: &Path, error: Error) -> Problem {
    let problem = Problem::from(error);
    match problem.about.file {
        Some(_) => problem,
        None => problem.file(path.display().to_string()),
    }
}

/// Says something on stderr that is no error.
pub(crate) fn note(text: &str) {
    // There is nobody left to tell when that fails.
    let _ = writeln!(io::stderr(), "note: {}", printable(text));
}
