//! Snapshots: reading a view that never changes.

use crate::answer::{Citation, outputs};
use crate::interrupt::{self, Signals};
use crate::pickle::{Reduced, get, lasting, reduced, state};
use crate::process::Process;
use crate::table::display;
use crate::texts::Text;
use crate::values::{Micros, params};
use crate::{drafts, errors, json, proof};
use holotype::interchange;
use holotype::{Edge, Error, Item as EngineItem, ItemId, Limits, Origin, Prepared, Snapshot as EngineSnapshot, Source};
use holotype::{Status, Target};
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The view of a Python snapshot; empty once its database was closed.
pub(crate) type Slot = Mutex<Option<EngineSnapshot>>;

/// Limits of a statement: seconds, rows examined, bytes kept.
pub(crate) type GivenLimits = (Option<f64>, Option<u64>, Option<u64>);

/// A view of the database that never changes.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Snapshot {
    process: Process,
    path: Arc<Path>,
    pub(crate) slot: Arc<Slot>,
    /// Takes note of views that are made from this one.
    pub(crate) register: Arc<Mutex<Vec<std::sync::Weak<Slot>>>>,
}

/// An item: its content as it was written and its attributes as they are in the snapshot.
#[pyclass(frozen, get_all, module = "holotype")]
pub(crate) struct Item {
    /// Its number.
    id: u32,
    /// Its key.
    key: String,
    /// Its text.
    text: String,
    /// Its layer: `trace`, `recall` or `theme`.
    layer: &'static str,
    /// Its kind, such as `turn` or `fact`.
    kind: &'static str,
    /// The outcome: `success`, `unknown` or `failed`.
    status: Option<&'static str>,
    /// The producer, such as `user` or `tool`.
    source: Option<&'static str>,
    /// The episode.
    episode: Option<String>,
    /// The step in its episode.
    step: Option<u64>,
    /// The time, in UTC.
    time: Option<Micros>,
    /// The version of task, environment or tool schema.
    version: Option<String>,
    /// The speaker.
    speaker: Option<String>,
    /// The tool of a call.
    tool: Option<String>,
    /// The log id, if it is not the episode's id.
    log_id: Option<String>,
    /// The memory page of a trace, once that page is closed.
    page: Option<String>,
    /// False after prune, merge, supersede or retract.
    active: bool,
    /// True after its bytes were erased.
    redacted: bool,
    /// True if it was stored without evidence on purpose.
    ungrounded: bool,
    /// True if it has a vector.
    has_vector: bool,
    /// Its origin: `original`, `linked_fact` or `refined`.
    origin: &'static str,
    /// The state of its sources: `supported`, `weakened` or `unsupported`.
    support: &'static str,
    /// The least source weight in its lineage.
    trust: f32,
    /// The mean of the rewards reported of it, and how many there are.
    utility: f32,
    reports: u32,
    /// Its mean credit, and of how many rollouts.
    credit: f32,
    rollouts: u32,
    /// The number of the item that won the contest against a claim of this one.
    conflict: Option<u32>,
    /// Its length in tokens.
    tokens: u32,
    /// The commit that wrote it.
    commit: u64,
    /// Its fields by name, `text` among them: of the types that JSON has, or `bytes` for what is no text.
    fields: Py<PyDict>,
}

impl Item {
    pub(crate) fn new(py: Python<'_>, item: EngineItem) -> PyResult<Item> {
        let EngineItem { id, key, attributes, content } = item;
        let fields = PyDict::new(py);
        for name in content.field_names() {
            match content.field_text(name).and_then(|_| content.field_value(name)) {
                Some(value) => fields.set_item(name, json::to_python(py, &value)?)?,
                None => fields.set_item(name, content.field_bytes(name))?,
            }
        }
        Ok(Item {
            id: id.0,
            key,
            text: content.text().to_owned(),
            layer: attributes.layer().as_str(),
            kind: attributes.kind.as_str(),
            status: attributes.status.map(Status::as_str),
            source: attributes.source.map(Source::as_str),
            episode: attributes.episode,
            step: attributes.step,
            time: attributes.time.map(Micros),
            version: attributes.version,
            speaker: attributes.speaker,
            tool: attributes.tool,
            log_id: attributes.log_id,
            page: attributes.page,
            active: attributes.active,
            redacted: attributes.redacted,
            ungrounded: attributes.ungrounded,
            has_vector: attributes.has_vector,
            origin: Origin::as_str(attributes.origin),
            support: attributes.support.as_str(),
            trust: attributes.trust,
            utility: attributes.utility,
            reports: attributes.utility_count,
            credit: attributes.credit,
            rollouts: attributes.credit_count,
            conflict: attributes.conflict.map(|item| item.0),
            tokens: attributes.tokens,
            commit: attributes.commit,
            fields: fields.unbind(),
        })
    }
}

impl Item {
    /// The item of a state that `__reduce__` gave.
    pub(crate) fn restored(state: &Bound<'_, PyDict>) -> PyResult<Item> {
        let name = |name: &str| get(state, name).map(lasting);
        let maybe = |name: &str| PyResult::Ok(get::<Option<String>>(state, name)?.map(lasting));
        Ok(Item {
            id: get(state, "id")?,
            key: get(state, "key")?,
            text: get(state, "text")?,
            layer: name("layer")?,
            kind: name("kind")?,
            status: maybe("status")?,
            source: maybe("source")?,
            episode: get(state, "episode")?,
            step: get(state, "step")?,
            time: get::<Option<i64>>(state, "time")?.map(Micros),
            version: get(state, "version")?,
            speaker: get(state, "speaker")?,
            tool: get(state, "tool")?,
            log_id: get(state, "log_id")?,
            page: get(state, "page")?,
            active: get(state, "active")?,
            redacted: get(state, "redacted")?,
            ungrounded: get(state, "ungrounded")?,
            has_vector: get(state, "has_vector")?,
            origin: name("origin")?,
            support: name("support")?,
            trust: get(state, "trust")?,
            utility: get(state, "utility")?,
            reports: get(state, "reports")?,
            credit: get(state, "credit")?,
            rollouts: get(state, "rollouts")?,
            conflict: get(state, "conflict")?,
            tokens: get(state, "tokens")?,
            commit: get(state, "commit")?,
            fields: get(state, "fields")?,
        })
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = self.to_dict(py)?;
        dict.set_item("time", self.time.map(|time| time.0))?;
        Ok(dict)
    }
}

#[pymethods]
impl Item {
    /// The item as a dict, by the names of its attributes.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(state!(py, {
            "id": self.id,
            "key": &self.key,
            "text": &self.text,
            "layer": self.layer,
            "kind": self.kind,
            "status": self.status,
            "source": self.source,
            "episode": &self.episode,
            "step": self.step,
            "time": self.time,
            "version": &self.version,
            "speaker": &self.speaker,
            "tool": &self.tool,
            "log_id": &self.log_id,
            "page": &self.page,
            "active": self.active,
            "redacted": self.redacted,
            "ungrounded": self.ungrounded,
            "has_vector": self.has_vector,
            "origin": self.origin,
            "support": self.support,
            "trust": self.trust,
            "utility": self.utility,
            "reports": self.reports,
            "credit": self.credit,
            "rollouts": self.rollouts,
            "conflict": self.conflict,
            "tokens": self.tokens,
            "commit": self.commit,
            "fields": &self.fields,
        }))
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        self.state(py)?.eq(other.state(py)?)
    }

    fn __hash__(&self) -> u64 {
        self.commit << 32 ^ u64::from(self.id)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "item", self.state(py)?)
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "item_html")
    }

    fn __repr__(&self) -> String {
        let quoted = PyString::new;
        Python::attach(|py| {
            let show = |text: &str| quoted(py, text).repr().map_or_else(|_| text.to_owned(), |text| text.to_string());
            format!("Item({}, {}, {})", show(&self.key), self.kind, show(&self.text))
        })
    }
}

impl Snapshot {
    /// A snapshot that its database can end.
    pub(crate) fn new(
        view: EngineSnapshot,
        path: Arc<Path>,
        register: Arc<Mutex<Vec<std::sync::Weak<Slot>>>>,
    ) -> Snapshot {
        let slot = Arc::new(Mutex::new(Some(view)));
        let mut known = register.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|slot| slot.strong_count() > 0);
        known.push(Arc::downgrade(&slot));
        drop(known);
        Snapshot { process: Process::current(), path, slot, register }
    }

    fn view(&self, py: Python<'_>) -> PyResult<EngineSnapshot> {
        self.process.check(py, &self.path)?;
        let view = self.slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        view.ok_or_else(|| errors::invalid(py, "closed", "the database of this snapshot is closed", "open it again"))
    }

    /// Runs the engine on the view while other Python threads go on.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&EngineSnapshot) -> holotype::Result<T> + Send,
    ) -> PyResult<T> {
        let view = self.view(py)?;
        interrupt::run(py, None, |_| work(&view))
    }
}

impl Drop for Snapshot {
    /// In a forked process the view is left in memory: dropping it may wait for a lock of the parent.
    fn drop(&mut self) {
        if !self.process.is_current() {
            std::mem::forget(Arc::clone(&self.slot));
        }
    }
}

#[pymethods]
impl Snapshot {
    /// The commit of the view.
    #[getter]
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.view(py)?.commit())
    }

    /// Runs a script of reading statements.
    #[pyo3(signature = (script, params=None, limits=None))]
    fn run(
        &self,
        py: Python<'_>,
        script: Text,
        params: Option<&Bound<'_, PyDict>>,
        limits: Option<GivenLimits>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let script = script.0.as_str();
        let (view, params) = (self.view(py)?, self::params(params)?);
        let limits = limits_of(limits)?;
        let done = interrupt::run(py, Some(script), |signals| {
            view.with_limits(&signals.limits(limits)).run(&Prepared::new(script)?, &params)
        });
        outputs(py, done?)
    }

    /// The item of a key or number; `None` if there is none.
    fn get(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<Option<Item>> {
        let target = drafts::target(item)?;
        let found = self.with(py, |view| found(view, &target))?;
        found.map(|item| Item::new(py, item)).transpose()
    }

    /// The items of keys or numbers, in their order; `None` for one that there is not.
    fn get_many(&self, py: Python<'_>, items: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Option<Item>>> {
        let targets = items.iter().map(drafts::target).collect::<PyResult<Vec<_>>>()?;
        let found =
            self.with(py, |view| targets.iter().map(|target| found(view, target)).collect::<Result<Vec<_>, _>>())?;
        found.into_iter().map(|item| item.map(|item| Item::new(py, item)).transpose()).collect()
    }

    /// The keys with a prefix, in order, at most `most`.
    fn keys(&self, py: Python<'_>, prefix: Text, most: usize) -> PyResult<Vec<String>> {
        self.with(py, |view| view.keys(&prefix.0, most))
    }

    /// The ids of episodes with a prefix, in order, at most `most`.
    fn episodes(&self, py: Python<'_>, prefix: Text, most: usize) -> PyResult<Vec<String>> {
        self.with(py, |view| view.episodes(&prefix.0, most))
    }

    /// The vector of an item as a numpy array; `None` without one.
    fn vector<'py>(&self, py: Python<'py>, item: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        let target = drafts::target(item)?;
        let vector = self.with(py, |view| view.vector(id_of(view, &target)?))?;
        Ok(vector.map(|vector| PyArray1::from_vec(py, vector)))
    }

    /// The vectors of items as the rows of a numpy array.
    fn vectors<'py>(&self, py: Python<'py>, items: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let targets = items.iter().map(drafts::target).collect::<PyResult<Vec<_>>>()?;
        let rows =
            self.with(py, |view| targets.iter().map(|target| vector_of(view, target)).collect::<Result<Vec<_>, _>>())?;
        PyArray2::from_vec2(py, &rows).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The pointers of an item, each read and hashed again.
    fn citations(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<Vec<Citation>> {
        let target = drafts::target(item)?;
        let found = self.with(py, |view| view.citations(id_of(view, &target)?))?;
        Ok(found.into_iter().map(Citation::from).collect())
    }

    /// The story of an item, as a dict and as text.
    fn why<'py>(&self, py: Python<'py>, item: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, String)> {
        let target = drafts::target(item)?;
        let story = self.with(py, |view| view.why(&view.key_of(id_of(view, &target)?)?))?;
        Ok((json::to_python(py, story.to_json())?, story.to_text()))
    }

    /// The changes between two commits, the later one that of the view without it: as a dict and as text.
    #[pyo3(signature = (commit, until=None))]
    fn diff<'py>(&self, py: Python<'py>, commit: u64, until: Option<u64>) -> PyResult<(Bound<'py, PyAny>, String)> {
        let found = self.with(py, |view| view.diff(commit, until.unwrap_or(view.commit())))?;
        Ok((json::to_python(py, found.to_json())?, found.to_text()))
    }

    /// The numbers of the items at the other ends of edges; `incoming` ones end at this item.
    fn linked(
        &self,
        py: Python<'_>,
        item: &Bound<'_, PyAny>,
        edge: &Bound<'_, PyAny>,
        incoming: bool,
    ) -> PyResult<Vec<u32>> {
        let (target, edge) = (drafts::target(item)?, drafts::parse::<Edge>("edge", edge)?);
        let found = self.with(py, |view| {
            let id = id_of(view, &target)?;
            if incoming { view.linking(id, edge) } else { view.linked(id, edge) }
        })?;
        Ok(found.into_iter().map(|id| id.0).collect())
    }

    /// The embedding space: model, dimension, metric and encoding.
    fn space(&self, py: Python<'_>) -> PyResult<Option<(String, usize, &'static str, &'static str)>> {
        let space = self.with(py, EngineSnapshot::space)?;
        Ok(space.map(|space| (space.model, space.dim, space.metric.name(), space.encoding.name())))
    }

    /// The view after an earlier commit, or after the last commit at or before a time in microseconds.
    #[pyo3(signature = (commit=None, time=None))]
    fn as_of(&self, py: Python<'_>, commit: Option<u64>, time: Option<&Bound<'_, PyAny>>) -> PyResult<Snapshot> {
        let time = time.map(crate::values::micros).transpose()?;
        let past = self.with(py, |view| match (commit, time) {
            (Some(commit), None) => view.as_of(commit),
            (None, Some(time)) => view.as_of_time(time),
            _ => Err(Error::Invalid("as_of takes a commit or a time; give one of them".to_owned())),
        })?;
        Ok(Snapshot::new(past, Arc::clone(&self.path), Arc::clone(&self.register)))
    }

    /// Writes the view, or the log up to it, as JSON Lines; returns the numbers of lines and vectors.
    #[pyo3(signature = (path, vectors=None, history=false))]
    fn export(&self, py: Python<'_>, path: PathBuf, vectors: Option<PathBuf>, history: bool) -> PyResult<(u64, u64)> {
        let view = self.view(py)?;
        let report = interrupt::run(py, None, |signals| export(&view, &path, vectors.as_deref(), history, signals))?;
        Ok((report.lines, report.vectors))
    }

    /// The name for signing keys of this database.
    fn origin(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.view(py)?.origin())
    }

    /// A proof of an item as JSON text, signed with a secret key.
    fn prove(&self, py: Python<'_>, item: &Bound<'_, PyAny>, secret: Text) -> PyResult<String> {
        let (target, key) = (drafts::target(item)?, proof::signer(py, &secret.0)?);
        self.with(py, |view| Ok(view.prove(id_of(view, &target)?, &key)?.to_json()))
    }

    /// The signed checkpoint of the view, with a secret key.
    fn signed_checkpoint(&self, py: Python<'_>, secret: Text) -> PyResult<String> {
        let key = proof::signer(py, &secret.0)?;
        self.with(py, |view| view.signed_checkpoint(&key))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.view(py)?.len() as usize)
    }
}

/// The limits that a caller gave, in the engine's form.
pub(crate) fn limits_of(given: Option<GivenLimits>) -> PyResult<Limits> {
    let Some((time, rows, memory)) = given else { return Ok(Limits::none()) };
    let mut limits = Limits::none();
    if let Some(seconds) = time {
        let time = Duration::try_from_secs_f64(seconds);
        limits = limits.time(time.map_err(|error| PyValueError::new_err(format!("timeout {seconds}: {error}")))?);
    }
    if let Some(rows) = rows {
        limits = limits.rows_scored(rows);
    }
    Ok(memory.into_iter().fold(limits, Limits::memory))
}

/// The item that a target names, if there is one.
pub(crate) fn found(view: &EngineSnapshot, target: &Target) -> holotype::Result<Option<EngineItem>> {
    match target {
        Target::Item(id) if id.0 < view.len() => view.item(*id).map(Some),
        Target::Key(key) => view.get(key),
        _ => Ok(None),
    }
}

fn id_of(view: &EngineSnapshot, target: &Target) -> holotype::Result<ItemId> {
    match target {
        Target::Item(id) => view.item_named(&id.to_string()),
        Target::Key(key) | Target::Page(key) => view.item_named(key),
    }
}

fn vector_of(view: &EngineSnapshot, target: &Target) -> holotype::Result<Vec<f32>> {
    let vector = view.vector(id_of(view, target)?)?;
    vector.ok_or_else(|| Error::Vector(format!("{target} has no vector; ask for items that have one")))
}

/// Exports to a file that appears whole or not at all.
fn export(
    view: &EngineSnapshot,
    path: &Path,
    vectors: Option<&Path>,
    history: bool,
    signals: &Signals,
) -> holotype::Result<interchange::ExportReport> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let file = File::create(&partial).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 18, Watched { out: &file, signals, looked: Instant::now() });
    let export = if history { interchange::export_history } else { interchange::export };
    let done = export(view, &mut out, vectors).and_then(|report| {
        out.flush().and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&partial, path).map_err(failed)?;
        Ok(report)
    });
    if done.is_err() {
        // The failure is told; that of the clean-up would hide it.
        let _ = fs::remove_file(&partial);
    }
    done
}

/// Input or output that ends with an error when a signal handler raises.
pub(crate) struct Watched<'s, T> {
    pub(crate) out: T,
    pub(crate) signals: &'s Signals,
    pub(crate) looked: Instant,
}

impl<T> Watched<'_, T> {
    fn look(&mut self) -> io::Result<()> {
        if self.looked.elapsed() < Duration::from_millis(50) {
            return Ok(());
        }
        self.looked = Instant::now();
        if self.signals.raised() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

impl<T: Write> Write for Watched<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.look()?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<T: io::Read> io::Read for Watched<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.look()?;
        self.out.read(bytes)
    }
}
