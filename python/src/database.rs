//! Databases: opening, statements, maintenance, closing.

use crate::answer::outputs;
use crate::changes::Changes;
use crate::embedders::embedder;
use crate::interrupt::{self, LOOK_EVERY, Signals};
use crate::process::Process;
use crate::session::Session;
use crate::snapshot::{GivenLimits, Slot, Snapshot, Watched, limits_of};
use crate::texts::Text;
use crate::transaction::Transaction;
use crate::values::{member, text_of};
use crate::{errors, values};
use holotype::VerifyReport;
use holotype::embed::{Embedder, HashingEmbedder};
use holotype::interchange::{ImportOptions, ImportReport, NpyReader, import};
use holotype::query::Params;
use holotype::space::{Encoding, Metric};
use holotype::{Cancel, Durability, Error, Holotype, Limits, Options, Prepared, ReembedOptions, Space, VerifyOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// The number of parsed scripts that a database keeps.
const MAX_PREPARED: usize = 128;

/// An open database.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Database {
    process: Process,
    opened: RwLock<Option<Arc<Opened>>>,
    path: Arc<Path>,
    sessions: Mutex<Vec<Weak<Session>>>,
    snapshots: Arc<Mutex<Vec<Weak<Slot>>>>,
    /// Parsed scripts by text: a program asks the same few questions with other parameters.
    prepared: Mutex<HashMap<String, Arc<Prepared>>>,
}

/// The engine's handle: of one [`Database`], or of several that `open_or_create` gave for one path. Closing the last
/// one closes it.
struct Opened {
    handle: Holotype,
    is_read_only: bool,
    process: Process,
    options: Given,
}

/// The options that a database was opened with, as text.
struct Given(Vec<(String, String)>);

impl Given {
    /// Without the embedder: another one of the same space embeds alike.
    fn new(options: &Bound<'_, PyDict>) -> PyResult<Given> {
        let given = options.iter().filter(|(_, value)| !value.is_none());
        let given = given.map(|(name, value)| Ok((name.to_string(), value.repr()?.to_string())));
        let mut given = given.collect::<PyResult<Vec<_>>>()?;
        given.retain(|(name, _)| name != "embedder");
        Ok(Given(given))
    }

    /// True if these options hold of a database that was opened with the others.
    fn hold_of(&self, others: &Given) -> bool {
        self.0.iter().all(|option| others.0.contains(option))
    }
}

/// The databases that this process has open for writing, by the path of their directory without links.
static OPEN: Mutex<Vec<(PathBuf, Weak<Opened>)>> = Mutex::new(Vec::new());

/// Opens the database at `path`: `mode` is `create`, `open` or `open_or_create`.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf, mode: Text, options: &Bound<'_, PyDict>) -> PyResult<Database> {
    let path = absolute(path);
    let (options, given) = (read_options(options)?, Given::new(options)?);
    let is_read_only = options.read_only;
    let opened = interrupt::run(py, None, |_| match mode.0.as_str() {
        "create" => Ok(Holotype::create(&path, options)),
        "open" => Ok(Holotype::open(&path, options)),
        _ => Ok(match Holotype::open(&path, options.clone()) {
            Err(Error::NotFound { .. }) => Holotype::create(&path, options),
            opened => opened,
        }),
    })?;
    match opened {
        Ok(handle) => Ok(Database::new(handle, is_read_only, given)),
        Err(error) => {
            let Some(own) = (error.code() == "locked").then(|| open_here(&path)).flatten() else {
                return Err(errors::raise(py, &error, None));
            };
            if mode.0 == "open_or_create" && given.hold_of(&own.options) {
                return Ok(Database::of(own));
            }
            Err(locked_here(py, &path))
        }
    }
}

/// Opens a database after making its derived files again from the log.
#[pyfunction]
pub(crate) fn rebuild(py: Python<'_>, path: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Database> {
    let path = absolute(path);
    let (options, given) = (read_options(options)?, Given::new(options)?);
    match interrupt::run(py, None, |_| Ok(Holotype::rebuild(&path, options)))? {
        Ok(handle) => Ok(Database::new(handle, false, given)),
        Err(error) if error.code() == "locked" && open_here(&path).is_some() => Err(locked_here(py, &path)),
        Err(error) => Err(errors::raise(py, &error, None)),
    }
}

/// The path from the root, so that it names the same directory after the process has changed its own.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// The database at a path, if this process has it open for writing.
fn open_here(path: &Path) -> Option<Arc<Opened>> {
    let real = path.canonicalize().ok()?;
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let here = open.iter().filter(|(path, _)| *path == real).find_map(|(_, opened)| opened.upgrade());
    here.filter(|opened| opened.process.is_current())
}

fn locked_here(py: Python<'_>, path: &Path) -> PyErr {
    let message = format!("{}: this process has the database open already", path.display());
    errors::own(py, ("locked", "open"), &message, "use that Database, or close() it before it is opened again")
}

/// Writes what can be read of a database into a new one; returns the number of its items and what was lost.
#[pyfunction]
pub(crate) fn salvage(py: Python<'_>, source: PathBuf, dest: PathBuf) -> PyResult<(u64, Vec<String>)> {
    let report = interrupt::run(py, None, |_| holotype::salvage(&source, &dest))?;
    Ok((report.items, report.lost.iter().map(ToString::to_string).collect()))
}

impl Database {
    fn new(handle: Holotype, is_read_only: bool, options: Given) -> Database {
        let path = handle.path().to_owned();
        let opened = Arc::new(Opened { handle, is_read_only, process: Process::current(), options });
        if !is_read_only {
            let real = path.canonicalize().unwrap_or(path);
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|(_, opened)| opened.strong_count() > 0);
            open.push((real, Arc::downgrade(&opened)));
        }
        Database::of(opened)
    }

    fn of(opened: Arc<Opened>) -> Database {
        Database {
            process: Process::current(),
            path: opened.handle.path().into(),
            opened: RwLock::new(Some(opened)),
            sessions: Mutex::default(),
            snapshots: Arc::default(),
            prepared: Mutex::default(),
        }
    }

    fn opened(&self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        self.process.check(py, &self.path)?;
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner).clone();
        opened.ok_or_else(|| errors::invalid(py, "closed", "the database is closed", "open it again"))
    }

    /// The handle, for a call that only reads.
    pub(crate) fn readable(&self, py: Python<'_>) -> PyResult<Holotype> {
        self.handle(py)
    }

    fn handle(&self, py: Python<'_>) -> PyResult<Holotype> {
        self.opened(py).map(|opened| opened.handle.clone())
    }

    /// The handle, for a call that waits for the writer: refused while this thread has a transaction open.
    pub(crate) fn writable(&self, py: Python<'_>) -> PyResult<Holotype> {
        self.process.check(py, &self.path)?;
        if self.has_own_session() {
            return Err(errors::raise(py, &Error::TransactionOpen, None));
        }
        self.handle(py)
    }

    fn has_own_session(&self) -> bool {
        let thread = thread::current().id();
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().filter_map(Weak::upgrade).any(|session| session.is_of(thread))
    }

    /// Begins a transaction on a thread of its own, waiting for `timeout` at most.
    pub(crate) fn begin_session(
        &self,
        py: Python<'_>,
        is_shared: bool,
        timeout: Option<Duration>,
    ) -> PyResult<(Holotype, Arc<Session>)> {
        let handle = self.writable(py)?;
        let user = (!is_shared).then(|| thread::current().id());
        let session = Arc::new(Session::begin(py, handle.clone(), user, timeout)?);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        Ok((handle, session))
    }

    fn prepare(&self, py: Python<'_>, script: &str) -> PyResult<Arc<Prepared>> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = prepared.get(script) {
            return Ok(Arc::clone(known));
        }
        let new = Prepared::new(script).map_err(|error| errors::raise(py, &error, Some(script)))?;
        if prepared.len() >= MAX_PREPARED {
            prepared.clear();
        }
        let new = Arc::new(new);
        prepared.insert(script.to_owned(), Arc::clone(&new));
        Ok(new)
    }

    /// Runs a script that writes, in a transaction of its own.
    fn write(
        &self,
        py: Python<'_>,
        prepared: Arc<Prepared>,
        params: Params,
        limits: Limits,
    ) -> PyResult<Vec<holotype::answer::Output>> {
        let (_, session) = self.begin_session(py, false, None)?;
        let cancel = Cancel::new();
        let limits = limits.cancelled_by(&cancel);
        let script = Arc::clone(&prepared);
        let done = session.call(py, Some(script.source()), Some(&cancel), move |transaction| {
            transaction.run_within(&prepared, &params, &limits)
        });
        match done {
            Ok(outputs) => session.commit(py, Durability::Sync).map(|_| outputs),
            Err(error) => {
                py.detach(|| session.end());
                Err(error)
            }
        }
    }
}

#[pymethods]
impl Database {
    /// The directory of the database.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.to_path_buf()
    }

    /// True once the database was closed, and in a process that was forked since it was opened.
    #[getter]
    fn closed(&self) -> bool {
        !self.process.is_current() || self.opened.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Runs a script. One that writes is a transaction of its own. With `is_single` it must be one statement.
    #[pyo3(signature = (script, params=None, limits=None, is_single=false))]
    fn run(
        &self,
        py: Python<'_>,
        script: Text,
        params: Option<&Bound<'_, PyDict>>,
        limits: Option<GivenLimits>,
        is_single: bool,
    ) -> PyResult<Vec<Py<PyAny>>> {
        self.process.check(py, &self.path)?;
        let script = script.0.as_str();
        let (prepared, params, limits) = (self.prepare(py, script)?, values::params(params)?, limits_of(limits)?);
        let count = prepared.script().verbs().count();
        if is_single && count != 1 {
            let message = format!("one statement is expected, and this is {count}");
            return Err(errors::invalid(py, "invalid", &message, "script() runs several"));
        }
        if prepared.writes() {
            return outputs(py, self.write(py, prepared, params, limits)?);
        }
        let handle = self.handle(py)?;
        let is_own = self.has_own_session();
        let done = interrupt::run(py, Some(script), |signals| {
            // An audited read is written down, and the writer is this thread's own.
            if is_own && handle.audits_reads()? {
                return Err(Error::TransactionOpen);
            }
            handle.run_within(&prepared, &params, &signals.limits(limits))
        });
        outputs(py, done?)
    }

    /// Begins a transaction, waiting for a number of seconds at most. A shared one belongs to no one thread.
    #[pyo3(signature = (is_shared=false, timeout=None))]
    fn begin(&self, py: Python<'_>, is_shared: bool, timeout: Option<f64>) -> PyResult<Transaction> {
        let timeout = timeout.map(duration).transpose()?;
        Transaction::begin(py, self, is_shared, timeout)
    }

    /// The changes of the commits after `since`.
    fn changes(&self, py: Python<'_>, since: u64) -> PyResult<Changes> {
        let handle = self.handle(py)?;
        interrupt::run(py, None, |_| handle.changes(since))
            .map(|changes| Changes::new(changes, self.path.to_path_buf()))
    }

    /// Waits until a commit after `since` can be read, for a number of seconds at most; false if there is none by then.
    #[pyo3(signature = (since, timeout=None))]
    fn wait_for_changes(&self, py: Python<'_>, since: u64, timeout: Option<f64>) -> PyResult<bool> {
        let deadline = timeout.map(duration).transpose()?.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            // Another thread may close the database meanwhile.
            let handle = self.writable(py)?;
            let left = deadline.map_or(LOOK_EVERY, |deadline| deadline.saturating_duration_since(Instant::now()));
            if interrupt::run(py, None, |_| handle.wait_for_changes(since, left.min(LOOK_EVERY)))? {
                return Ok(true);
            }
            drop(handle);
            py.check_signals()?;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// The newest view.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let handle = self.handle(py)?;
        Ok(Snapshot::new(py.detach(|| handle.snapshot()), Arc::clone(&self.path), Arc::clone(&self.snapshots)))
    }

    /// The end of the log: commit, position and hash.
    fn head(&self, py: Python<'_>) -> PyResult<(u64, u64, String)> {
        let head = self.handle(py)?.head();
        Ok((head.commit.0, head.position.0, holotype::hex(&head.hash)))
    }

    /// The steps and findings of opening, in sentences.
    fn report(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let handle = self.handle(py)?;
        let report = handle.report();
        let rebuilt = report.rebuilt.iter().map(|why| format!("derived files were rebuilt: {why}"));
        Ok(report.recovery.iter().cloned().chain(rebuilt).chain(report.faults()).collect())
    }

    /// Figures about content, files and limits.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let handle = self.writable(py)?;
        let stats = interrupt::run(py, None, |_| handle.stats())?;
        let dict = PyDict::new(py);
        let kinds = PyDict::new(py);
        for (kind, count) in &stats.content.items_by_kind {
            kinds.set_item(kind.as_str(), count)?;
        }
        dict.set_item("commit", stats.content.commit)?;
        dict.set_item("items", stats.content.items)?;
        dict.set_item("items_by_kind", kinds)?;
        dict.set_item("inactive_items", stats.content.inactive_items)?;
        dict.set_item("episodes", stats.content.episodes)?;
        dict.set_item("pages", stats.content.pages)?;
        dict.set_item("claims", stats.content.claims)?;
        dict.set_item("vectors", stats.content.vectors)?;
        dict.set_item("log_bytes", stats.log_bytes)?;
        dict.set_item("durable_log_bytes", stats.durable_log_bytes)?;
        dict.set_item("log_segments", stats.log_segments)?;
        dict.set_item("catalog_bytes", stats.catalog_bytes)?;
        Ok(dict)
    }

    /// Checks everything that can be checked.
    #[pyo3(signature = (bytes_per_second=None))]
    fn verify<'py>(&self, py: Python<'py>, bytes_per_second: Option<u64>) -> PyResult<Bound<'py, PyDict>> {
        let (handle, is_read_only) = (self.writable(py)?, self.opened(py)?.is_read_only);
        let report = interrupt::run(py, None, |signals| {
            let report = verify(&handle, bytes_per_second, signals)?;
            // Nothing on the disk of a database that is open for reading is changed.
            if !is_read_only {
                handle.note_verified(&report)?;
            }
            Ok(report)
        })?;
        let dict = PyDict::new(py);
        let fault = |fault: &holotype::Fault| {
            let dict = PyDict::new(py);
            dict.set_item("file", &fault.file)?;
            dict.set_item("page", fault.page)?;
            dict.set_item("offset", fault.offset)?;
            dict.set_item("what", &fault.what)?;
            Ok(dict)
        };
        dict.set_item("verdict", report.verdict())?;
        dict.set_item("faults", report.faults.iter().map(fault).collect::<PyResult<Vec<_>>>()?)?;
        dict.set_item("checked", &report.checked)?;
        dict.set_item("not_checked", &report.not_checked)?;
        dict.set_item("commit", report.head.commit.0)?;
        Ok(dict)
    }

    /// Writes a checkpoint and waits for it.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.writable(py)?;
        interrupt::run(py, None, |_| handle.checkpoint())
    }

    /// Rewrites the derived files without gaps; returns their bytes before and after.
    fn compact(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let handle = self.writable(py)?;
        let report = interrupt::run(py, None, |_| handle.compact())?;
        Ok((report.before, report.after))
    }

    /// Copies the database to a path where nothing is; returns the commit and the bytes of the copy.
    fn backup(&self, py: Python<'_>, dest: PathBuf) -> PyResult<(u64, u64)> {
        let handle = self.writable(py)?;
        let report = interrupt::run(py, None, |_| handle.backup(&dest, &mut |_, _| {}))?;
        Ok((report.head.commit.0, report.bytes))
    }

    /// Follows the writer, if the database is open for reading; returns whether there was anything new.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let handle = self.handle(py)?;
        interrupt::run(py, None, |_| handle.refresh())
    }

    /// Imports JSON Lines.
    #[pyo3(signature = (path, vectors, durability, skip_bad))]
    fn import_file<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        vectors: Option<PathBuf>,
        durability: Text,
        skip_bad: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let handle = self.writable(py)?;
        let durability = durability.0.parse().map_err(|error| errors::raise(py, &error, None))?;
        let rows = vectors.map(NpyReader::open).transpose();
        let rows = rows.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let report = interrupt::run(py, None, |signals| {
            let space = handle.snapshot().space()?;
            let embedder = space
                .and_then(|space| HashingEmbedder::from_name(&space.model))
                .map(|embedder| Arc::new(embedder) as Arc<dyn Embedder>);
            let options = ImportOptions { durability, skip_bad, embedder };
            let failed = |source| Error::File { path: path.clone(), source };
            let file = Watched { out: File::open(&path).map_err(failed)?, signals, looked: Instant::now() };
            let name = path.display().to_string();
            import(&handle, &name, BufReader::new(file), rows.as_ref(), &options, &mut |_| {})
        })?;
        let ImportReport { transactions, split, added, known, skipped, embedded, errors } = report;
        let dict = PyDict::new(py);
        dict.set_item("transactions", transactions)?;
        dict.set_item("split", split)?;
        dict.set_item("added", added)?;
        dict.set_item("known", known)?;
        dict.set_item("skipped", skipped)?;
        dict.set_item("embedded", embedded)?;
        dict.set_item("errors", errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        Ok(dict)
    }

    /// The number of texts that wait for their vector.
    fn pending(&self, py: Python<'_>) -> PyResult<u64> {
        let handle = self.readable(py)?;
        handle.snapshot().pending().map_err(|error| errors::raise(py, &error, None))
    }

    /// Makes pending vectors, at most so many. Returns the numbers of items that were filled, that have none, and that
    /// are still pending.
    fn embed_pending(&self, py: Python<'_>, limit: Option<u64>) -> PyResult<(u64, u64, u64)> {
        let handle = self.writable(py)?;
        let report = interrupt::run(py, None, |_| handle.embed_pending(limit.unwrap_or(u64::MAX)))?;
        Ok((report.embedded, report.without, report.pending))
    }

    /// Makes all vectors anew. Returns the numbers of items with a new vector, without one and of an earlier call, and
    /// the commit.
    fn reembed(
        &self,
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        model_space: &Bound<'_, PyAny>,
        batch: usize,
        durability: Text,
    ) -> PyResult<(u64, u64, u64, u64)> {
        let handle = self.writable(py)?;
        let durability = durability.0.parse().map_err(|error| errors::raise(py, &error, None))?;
        let (embedder, space) = (embedder(model, space)?, space(model_space)?);
        let options = ReembedOptions { batch, durability };
        let report = interrupt::run(py, None, |_| handle.reembed(&space, embedder.as_ref(), &options))?;
        Ok((report.embedded, report.without, report.resumed, report.commit))
    }

    /// Ends transactions and snapshots, writes a checkpoint and a clean end of the log. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check(py, &self.path)?;
        let opened = self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
        let sessions = std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
        let slots = std::mem::take(&mut *self.snapshots.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(opened) = opened else { return Ok(()) };
        interrupt::run(py, None, |_| {
            sessions.iter().filter_map(Weak::upgrade).for_each(|session| session.end());
            for slot in slots.iter().filter_map(Weak::upgrade) {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            Arc::into_inner(opened).map_or(Ok(()), |opened| opened.handle.close())
        })
    }
}

impl Drop for Database {
    /// Closing waits for the disk and for threads, so the interpreter is left to others meanwhile. In a forked process
    /// everything is left in memory.
    fn drop(&mut self) {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !self.process.is_current() {
            std::mem::forget(opened);
        } else if opened.is_some() {
            Python::try_attach(|py| py.detach(|| drop(opened)));
        }
    }
}

fn verify(handle: &Holotype, bytes_per_second: Option<u64>, signals: &Signals) -> holotype::Result<VerifyReport> {
    let cancel = Cancel::new();
    let options = VerifyOptions { bytes_per_second, cancel: Some(cancel.clone()) };
    let mut looked = Instant::now();
    handle.verify_with(&options, &mut |_, _| {
        if looked.elapsed() >= Duration::from_millis(50) {
            looked = Instant::now();
            if signals.raised() {
                cancel.cancel();
            }
        }
    })
}

// ---- options ----

const KNOWN_OPTIONS: &str = "space, embedder, profile, page_size, read_only, shared, accept_damage, witness, \
                             accept_witness, max_transaction_bytes, \
                             checkpoint_bytes, checkpoint_records, cache_bytes, memory_limit, max_tail_bytes, \
                             max_unsealed_vectors, max_live_segments, snapshot_max_age, write_timeout, \
                             background_threads";

pub(crate) fn read_options(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let shared = match given.get_item("shared")? {
        Some(shared) => shared.is_truthy()?,
        None => false,
    };
    let mut options = if shared { Options::shared() } else { Options::default() };
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        let name = text_of("an option", &name)?;
        let whole = || member::<u64>(&name, "a whole number from 0", &value);
        match name.as_str() {
            "space" => options.space = Some(space(&value)?),
            "embedder" => options.embedder = Some(embedder(&value, space)?),
            "profile" => options.profile = Some(text_of(&name, &value)?),
            "page_size" => options.page_size = member(&name, "a whole number", &value)?,
            "read_only" => options.read_only = value.is_truthy()?,
            // Read above: it has a default of its own for another option.
            "shared" => {}
            "accept_damage" => options.accept_damage = value.is_truthy()?,
            "witness" => options.witness = Some(member(&name, "a path", &value)?),
            "accept_witness" => options.accept_witness = value.is_truthy()?,
            "max_transaction_bytes" => options.max_transaction_bytes = whole()?,
            "checkpoint_bytes" => options.checkpoint_bytes = whole()?,
            "checkpoint_records" => options.checkpoint_records = whole()?,
            "cache_bytes" => options.cache_bytes = member(&name, "a whole number from 0", &value)?,
            "memory_limit" => options.memory_limit = whole()?,
            "max_tail_bytes" => options.max_tail_bytes = whole()?,
            "max_unsealed_vectors" => options.max_unsealed_vectors = whole()?,
            "max_live_segments" => options.max_live_segments = whole()?,
            "snapshot_max_age" => options.snapshot_max_age = Some(seconds(&name, &value)?),
            "write_timeout" => options.write_timeout = seconds(&name, &value)?,
            "background_threads" => options.background_threads = member(&name, "a whole number from 0", &value)?,
            _ => {
                let hint = format!("the options are {KNOWN_OPTIONS}");
                return Err(errors::invalid(given.py(), "unknown-name", &format!("unknown option {name:?}"), &hint));
            }
        }
    }
    Ok(options)
}

/// A space given as model, dimension, metric and encoding.
fn space(value: &Bound<'_, PyAny>) -> PyResult<Space> {
    let (Text(model), dim, Text(metric), Text(encoding)): (Text, usize, Text, Text) =
        member("space", "a tuple of model, dimension, metric and encoding", value)?;
    let unknown = |what: &str, given: &str, known: &str| {
        let message = format!("unknown {what} {given:?}");
        errors::invalid(value.py(), "unknown-name", &message, &format!("expected one of: {known}"))
    };
    let metric = Metric::from_name(&metric).ok_or_else(|| unknown("metric", &metric, "cosine, dot, l2"))?;
    let encoding = Encoding::from_name(&encoding).ok_or_else(|| unknown("encoding", &encoding, "f32, f16, i8"))?;
    Ok(Space::new(model, dim).metric(metric).encoding(encoding))
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(format!("timeout {seconds}: {error}")))
}

fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = member(name, "a number of seconds", value)?;
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}
