//! Fleets: many databases asked together.

use crate::answer::Row;
use crate::database::read_options;
use crate::interrupt;
use crate::process::Process;
use crate::table::Table;
use crate::texts::Text;
use crate::values::Micros;
use crate::vectors;
use holotype::answer::{Answer as EngineAnswer, Output, Strength};
use holotype::fleet::{
    Entry, Fleet as EngineFleet, FleetAnswer, FleetFailure, FleetOptions, FleetRecall, Outdated, RouteOptions,
    Staleness,
};
use holotype::query::Params;
use holotype::{Options, Reader};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The table of a database, with the path of the database.
type NamedTable = (String, Table);

/// Databases that are asked together; empty once it was closed.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Fleet {
    process: Process,
    inner: Mutex<Option<Arc<EngineFleet>>>,
    /// The fleet is made again from these, when a router is written.
    places: Vec<PathBuf>,
    options: FleetOptions,
}

/// A question: its text and vector, rows, databases to ask, profile, time of the reader in microseconds.
type Asked<'py> = (Option<Text>, Option<Bound<'py, PyAny>>, usize, Option<usize>, Option<Text>, Option<i64>);

impl Fleet {
    fn engine(&self, py: Python<'_>) -> PyResult<Arc<EngineFleet>> {
        self.process.check(py, Path::new("the fleet"))?;
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || crate::errors::own(py, ("closed", "input"), "the fleet is closed", "open it again");
        inner.clone().ok_or_else(closed)
    }
}

#[pymethods]
impl Fleet {
    /// The databases of paths and patterns, opened when they are asked, with the options of a database.
    #[new]
    fn new(
        py: Python<'_>,
        places: Vec<PathBuf>,
        router: Option<PathBuf>,
        limits: (Option<usize>, Option<usize>),
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Fleet> {
        let default = FleetOptions::default();
        let given = read_options(options)?;
        let database = Options { embedder: given.embedder, accept_damage: given.accept_damage, ..default.database };
        let (max_open, threads) = (limits.0.unwrap_or(default.max_open), limits.1.unwrap_or(default.threads));
        let options = FleetOptions { max_open, threads, database, router };
        let inner = interrupt::run(py, None, |_| EngineFleet::open(&places, options.clone()))?;
        Ok(Fleet { process: Process::current(), inner: Mutex::new(Some(Arc::new(inner))), places, options })
    }

    /// The paths of its databases.
    #[getter]
    fn paths(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.engine(py)?.paths().iter().map(|path| text_of(path)).collect())
    }

    /// Asks, and tells everything that the answer rests on or does not.
    fn recall<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (text, vector, limit, ask, profile, time) = asked;
        let mut recall = FleetRecall::default().limit(limit);
        if let Some(databases) = ask {
            recall = recall.ask(databases);
        }
        if let Some(Text(profile)) = profile {
            recall = recall.profile(profile);
        }
        if let Some(at) = time {
            recall = recall.at_time(at);
        }
        if let Some(vector) = vector {
            recall = recall.near(vectors::vector(&vector)?);
        }
        let engine = self.engine(py)?;
        let text = text.map(|Text(text)| text).unwrap_or_default();
        let answer = interrupt::run(py, None, |_| engine.recall(&text, &recall))?;
        told(py, answer)
    }

    /// The table of a statement in each database, and the databases in which it failed.
    fn tables<'py>(&self, py: Python<'py>, statement: Text) -> PyResult<(Vec<NamedTable>, Bound<'py, PyList>)> {
        let engine = self.engine(py)?;
        let Text(statement) = statement;
        let outputs = interrupt::run(py, Some(&statement), |_| {
            Ok(engine.each(|_, database| database.snapshot().query(&statement, &Params::new())))
        })?;
        let (mut tables, mut failed) = (Vec::new(), Vec::new());
        for (path, output) in engine.paths().iter().zip(outputs) {
            match output {
                // A wrong statement is wrong everywhere.
                Err(error @ holotype::Error::Query(_)) => {
                    return Err(crate::errors::raise(py, &error, Some(&statement)));
                }
                Err(error) => failed.push(failure(py, &text_of(path), error.code(), &error.to_string())?),
                Ok(outputs) => {
                    let table = outputs.into_iter().find_map(|output| match output {
                        Output::Table(table) => Some(table),
                        _ => None,
                    });
                    let no_table = || {
                        let hint = "such as `find items return key, text`";
                        crate::errors::invalid(py, "invalid", "the statement gives no table", hint)
                    };
                    let table = Table { inner: Arc::new(table.ok_or_else(no_table)?) };
                    tables.push((text_of(path), table));
                }
            }
        }
        for one in engine.unread() {
            failed.push(failure(py, &text_of(&one.path), one.code, &one.message)?);
        }
        Ok((tables, PyList::new(py, failed)?))
    }

    /// Makes a router, or brings one up to date; returns what was done.
    fn route<'py>(
        &self,
        py: Python<'py>,
        router: PathBuf,
        is_new: bool,
        parts: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.engine(py)?;
        let route = parts.map_or_else(RouteOptions::default, |max_parts| RouteOptions { max_parts });
        let report = interrupt::run(py, None, |signals| {
            let mut fleet = EngineFleet::open(&self.places, FleetOptions { router: None, ..self.options.clone() })?;
            // A router is written to its end; an interrupt is raised after that.
            let mut progress = |_, _| {
                signals.raised();
            };
            match is_new {
                true => fleet.build_router(&router, route, &mut progress),
                false => fleet.update_router(&router, route, &mut progress),
            }
        })?;
        let dict = PyDict::new(py);
        dict.set_item("added", report.added)?;
        dict.set_item("updated", report.updated)?;
        dict.set_item("removed", report.removed)?;
        dict.set_item("unchanged", report.unchanged)?;
        dict.set_item("other_spaces", report.other_spaces)?;
        dict.set_item("erased", report.erased)?;
        dict.set_item("failed", failures(py, &report.failed)?)?;
        Ok(dict)
    }

    /// The entries of its router; none without one.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let engine = self.engine(py)?;
        let entries =
            interrupt::run(py, None, |_| engine.router().map_or_else(|| Ok(Vec::new()), |router| router.entries()))?;
        entries.into_iter().map(|entry| entry_of(py, entry)).collect()
    }

    /// Closes its databases.
    fn close(&self) {
        let closed = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(closed);
    }

    /// True once it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

fn entry_of(py: Python<'_>, entry: Entry) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("database", entry.path)?;
    dict.set_item("commit", entry.commit)?;
    dict.set_item("items", entry.items)?;
    dict.set_item("vectors", entry.vectors)?;
    dict.set_item("since", entry.from.map(Micros))?;
    dict.set_item("until", entry.to.map(Micros))?;
    dict.set_item("space", entry.space)?;
    dict.set_item("sampled", entry.sampled)?;
    dict.set_item("words", entry.words)?;
    Ok(dict)
}

/// An answer as the package takes it: rows with database and score, and the rest by name.
fn told(py: Python<'_>, answer: FleetAnswer) -> PyResult<Bound<'_, PyDict>> {
    let FleetAnswer { rows, answerable, asked, not_asked, failed, outdated, notes, micros, .. } = answer;
    let places: Vec<(String, f32)> = rows.iter().map(|row| (text_of(&row.database), row.score)).collect();
    // Rows belong to an answer of the engine; that of a fleet has no commit.
    let all = Arc::new(EngineAnswer {
        commit: 0,
        at: Reader::default(),
        answerable,
        strength: Strength::default(),
        certificate: "limited",
        route: Vec::new(),
        excluded: Vec::new(),
        pending: 0,
        refresh: None,
        rounds: 0,
        escalation: None,
        notes: Vec::new(),
        returns: None,
        rows: rows.into_iter().map(|row| row.row).collect(),
        receipt: None,
        without: Vec::new(),
        micros,
    });
    let rows = places
        .into_iter()
        .enumerate()
        .map(|(at, (database, score))| Ok((database, score, Py::new(py, Row::new(Arc::clone(&all), at))?)))
        .collect::<PyResult<Vec<_>>>()?;
    let dict = PyDict::new(py);
    dict.set_item("rows", PyList::new(py, rows)?)?;
    dict.set_item("answerable", answerable)?;
    let asked: Vec<_> = asked.into_iter().map(|one| (text_of(&one.path), one.commit, one.rows, one.expected)).collect();
    dict.set_item("asked", asked)?;
    let not_asked: Vec<_> = not_asked.into_iter().map(|one| (text_of(&one.path), one.expected)).collect();
    dict.set_item("not_asked", not_asked)?;
    dict.set_item("failed", failures(py, &failed)?)?;
    dict.set_item("outdated", outdated.iter().map(lacks).collect::<Vec<_>>())?;
    dict.set_item("notes", notes)?;
    dict.set_item("micros", micros)?;
    Ok(dict)
}

fn lacks(one: &Outdated) -> (String, &'static str, Option<u64>, Option<u64>) {
    let (routed, now) = match one.why {
        Staleness::Written { routed, now } => (Some(routed), now),
        _ => (None, None),
    };
    (text_of(&one.path), one.why.as_str(), routed, now)
}

fn failures<'py>(py: Python<'py>, failed: &[FleetFailure]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    failed.iter().map(|one| failure(py, &text_of(&one.path), one.code, &one.message)).collect()
}

fn failure<'py>(py: Python<'py>, path: &str, code: &str, message: &str) -> PyResult<Bound<'py, PyAny>> {
    Ok((path, code, message).into_pyobject(py)?.into_any())
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}
