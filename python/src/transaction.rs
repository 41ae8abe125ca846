//! Transactions: the calls that write.

use crate::answer::outputs;
use crate::drafts::{RecallDraft, TraceDraft, parse, pointer, target};
use crate::session::Session;
use crate::snapshot::{GivenLimits, Item, found, limits_of};
use crate::texts::Text;
use crate::trace_columns::TraceColumns;
use crate::values::{Micros, member, params};
use crate::vectors::matrix;
use crate::{database, errors};
use holotype::embed::HashingEmbedder;
use holotype::{Cancel, Durability, Edge, EpisodeChange, Error, Forget, Mark, Prepared, Status, Target};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::Duration;

/// A write transaction.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Transaction {
    pub(crate) session: Arc<Session>,
    /// The built-in embedder, if the database's space is its.
    pub(crate) embedder: Option<HashingEmbedder>,
}

#[pymethods]
impl Transaction {
    /// True until it is committed or rolled back.
    #[getter]
    fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// The item of a key or number, as the transaction sees it; `None` if there is none.
    fn get(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<Option<Item>> {
        let target = target(item)?;
        let found = self.session.call(py, None, None, move |transaction| found(&transaction.snapshot()?, &target))?;
        found.map(|item| Item::new(py, item)).transpose()
    }

    /// The items of keys or numbers, as the transaction sees them, in their order; `None` for one that there is not.
    fn get_many(&self, py: Python<'_>, items: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Option<Item>>> {
        let targets = items.iter().map(target).collect::<PyResult<Vec<_>>>()?;
        let items = self.session.call(py, None, None, move |transaction| {
            let view = transaction.snapshot()?;
            targets.iter().map(|target| found(&view, target)).collect::<Result<Vec<_>, Error>>()
        })?;
        items.into_iter().map(|item| item.map(|item| Item::new(py, item)).transpose()).collect()
    }

    /// The keys with a prefix, in order, at most `most`, as the transaction sees them.
    fn keys(&self, py: Python<'_>, prefix: Text, most: usize) -> PyResult<Vec<String>> {
        let Text(prefix) = prefix;
        self.session.call(py, None, None, move |transaction| transaction.snapshot()?.keys(&prefix, most))
    }

    /// Records the fingerprint of the database's embedder, whose vectors the package gives.
    fn note_embedder(&self, py: Python<'_>) -> PyResult<()> {
        self.session.call(py, None, None, |transaction| transaction.note_embedder())
    }

    /// Records a trace; returns its number.
    fn record(&self, py: Python<'_>, trace: &Bound<'_, PyDict>) -> PyResult<u32> {
        let (draft, embedder) = (TraceDraft::read(trace, None)?, self.embedder);
        self.session.call(py, None, None, move |transaction| draft.record(transaction, embedder))
    }

    /// Records many traces, with their vectors as the rows of an array; returns their numbers.
    #[pyo3(signature = (traces, vectors=None))]
    fn record_many(
        &self,
        py: Python<'_>,
        traces: &Bound<'_, PyAny>,
        vectors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u32>> {
        let traces = traces.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let mut rows = vectors.map(|rows| matrix(rows, traces.len())).transpose()?.map(Vec::into_iter);
        let mut drafts = Vec::new();
        for trace in traces {
            let row = match &mut rows {
                Some(rows) => Some(rows.next().ok_or_else(|| unequal(py))?),
                None => None,
            };
            drafts.push(TraceDraft::read(&member("a trace", "a dict", &trace)?, row)?);
        }
        if rows.is_some_and(|rows| rows.len() > 0) {
            return Err(unequal(py));
        }
        let embedder = self.embedder;
        self.session.call(py, None, None, move |transaction| {
            drafts.into_iter().map(|draft| draft.record(transaction, embedder)).collect()
        })
    }

    /// Records many traces given as columns, with their vectors as the rows of an array; returns their numbers.
    /// `each_field` has a column of values for each field, by name.
    #[pyo3(signature = (columns, vectors=None, each_field=None))]
    fn record_columns(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        vectors: Option<&Bound<'_, PyAny>>,
        each_field: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<u32>> {
        let (columns, embedder) = (TraceColumns::read(columns, vectors, each_field)?, self.embedder);
        self.session.call(py, None, None, move |transaction| columns.record(transaction, embedder))
    }

    /// Remembers a recall or theme; returns its number. `replacing` is the key of the item it takes the place of.
    #[pyo3(signature = (recall, replacing=None))]
    fn remember(&self, py: Python<'_>, recall: &Bound<'_, PyDict>, replacing: Option<Text>) -> PyResult<u32> {
        let replacing = replacing.map(|key| key.0);
        let (draft, embedder) = (RecallDraft::read(recall)?, self.embedder);
        self.session.call(py, None, None, move |transaction| draft.write(transaction, replacing.as_deref(), embedder))
    }

    /// Changes an item's status.
    #[pyo3(signature = (item, status, because=None))]
    fn mark(
        &self,
        py: Python<'_>,
        item: &Bound<'_, PyAny>,
        status: &Bound<'_, PyAny>,
        because: Option<Text>,
    ) -> PyResult<()> {
        self.set_mark(py, item, Mark::Status(parse::<Status>("status", status)?), because)
    }

    /// Changes an item's utility, which is the mean of `reports`.
    fn mark_utility(&self, py: Python<'_>, item: &Bound<'_, PyAny>, utility: f32, reports: u32) -> PyResult<()> {
        self.set_mark(py, item, Mark::Utility(utility, reports), None)
    }

    /// Changes an item's credit, which is the mean over `rollouts`.
    fn mark_credit(&self, py: Python<'_>, item: &Bound<'_, PyAny>, credit: f32, rollouts: u32) -> PyResult<()> {
        self.set_mark(py, item, Mark::Credit(credit, rollouts), None)
    }

    /// Takes an item out of use.
    #[pyo3(signature = (item, because=None))]
    fn retract(&self, py: Python<'_>, item: &Bound<'_, PyAny>, because: Option<Text>) -> PyResult<()> {
        self.set_mark(py, item, Mark::Inactive, because)
    }

    /// Links two items, or ends their link.
    fn link(
        &self,
        py: Python<'_>,
        ends: (Bound<'_, PyAny>, Bound<'_, PyAny>),
        edge: &Bound<'_, PyAny>,
        exists: bool,
    ) -> PyResult<()> {
        let (from, to, edge) = (target(&ends.0)?, target(&ends.1)?, parse::<Edge>("edge", edge)?);
        self.session.call(py, None, None, move |transaction| {
            let (from, to) = (transaction.find(&from)?, transaction.find(&to)?);
            if exists { transaction.link(from, edge, to) } else { transaction.unlink(from, edge, to) }
        })
    }

    /// Adds a pointer to an item.
    fn cite(&self, py: Python<'_>, item: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<()> {
        let (item, to) = (target(item)?, pointer(to)?);
        self.session.call(py, None, None, move |transaction| {
            let item = transaction.find(&item)?;
            transaction.cite(item, &to)
        })
    }

    /// States a claim of an item.
    fn claim(&self, py: Python<'_>, item: &Bound<'_, PyAny>, name: Text, value: Text, is_global: bool) -> PyResult<()> {
        let (Text(name), Text(value)) = (name, value);
        let item = target(item)?;
        self.session.call(py, None, None, move |transaction| {
            let item = transaction.find(&item)?;
            transaction.claim(item, &name, &value, is_global, &[])
        })
    }

    /// Opens, changes or closes an episode.
    #[pyo3(signature = (id, task=None, version=None, open=None))]
    fn episode(
        &self,
        py: Python<'_>,
        id: Text,
        task: Option<Text>,
        version: Option<Text>,
        open: Option<bool>,
    ) -> PyResult<()> {
        let Text(id) = id;
        let change = EpisodeChange { task: task.map(|task| task.0), version: version.map(|version| version.0), open };
        self.session.call(py, None, None, move |transaction| transaction.episode(&id, change))
    }

    /// Erases items; with `cascade` also what was derived from them. Returns the keys of what the commit will erase.
    fn forget(
        &self,
        py: Python<'_>,
        items: Vec<Bound<'_, PyAny>>,
        because: Text,
        cascade: bool,
    ) -> PyResult<Vec<String>> {
        let Text(because) = because;
        let targets = items.iter().map(target).collect::<PyResult<Vec<Target>>>()?;
        self.session.call(py, None, None, move |transaction| {
            let ids = targets.iter().map(|target| transaction.find(target)).collect::<Result<Vec<_>, Error>>()?;
            let forget = Forget::because(because);
            let forget = if cascade { forget.cascade() } else { forget };
            Ok(transaction.forget(&ids, &forget)?.items)
        })
    }

    /// Changes a setting.
    fn set(&self, py: Python<'_>, name: Text, value: Text) -> PyResult<()> {
        let (Text(name), Text(value)) = (name, value);
        self.session.call(py, None, None, move |transaction| transaction.set(&name, &value))
    }

    /// Runs a script in the transaction.
    #[pyo3(signature = (script, params=None, limits=None))]
    fn run(
        &self,
        py: Python<'_>,
        script: Text,
        params: Option<&Bound<'_, PyDict>>,
        limits: Option<GivenLimits>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let script = script.0.as_str();
        let prepared = Prepared::new(script).map_err(|error| errors::raise(py, &error, Some(script)))?;
        let (params, cancel) = (self::params(params)?, Cancel::new());
        let limits = limits_of(limits)?.cancelled_by(&cancel);
        let done = self.session.call(py, Some(script), Some(&cancel), move |transaction| {
            transaction.run_within(&prepared, &params, &limits)
        });
        outputs(py, done?)
    }

    /// Commits; returns number, log position and time of the commit.
    fn commit(&self, py: Python<'_>, durability: Text) -> PyResult<(u64, u64, Micros)> {
        let durability: Durability = durability.0.parse().map_err(|error| errors::raise(py, &error, None))?;
        let commit = self.session.commit(py, durability)?;
        Ok((commit.number, commit.position, Micros(commit.time)))
    }

    /// Undoes everything.
    fn rollback(&self, py: Python<'_>) {
        py.detach(|| self.session.end());
    }
}

impl Transaction {
    /// Begins a transaction of this thread, or of no one thread, waiting for `timeout` at most.
    pub(crate) fn begin(
        py: Python<'_>,
        database: &database::Database,
        is_shared: bool,
        timeout: Option<Duration>,
    ) -> PyResult<Transaction> {
        let (handle, session) = database.begin_session(py, is_shared, timeout)?;
        let space = py.detach(|| handle.snapshot().space()).map_err(|error| errors::raise(py, &error, None))?;
        let embedder = space
            .and_then(|space| HashingEmbedder::from_name(&space.model).filter(|embedder| embedder.dim() == space.dim));
        Ok(Transaction { session, embedder })
    }

    fn set_mark(&self, py: Python<'_>, item: &Bound<'_, PyAny>, mark: Mark, because: Option<Text>) -> PyResult<()> {
        let (item, because) = (target(item)?, because.map(|because| because.0));
        self.session.call(py, None, None, move |transaction| {
            let item = transaction.find(&item)?;
            transaction.mark(item, mark, because)
        })
    }
}

fn unequal(py: Python<'_>) -> PyErr {
    let hint = "give one row of the array for each trace";
    errors::invalid(py, "vector", "the numbers of traces and of vectors differ", hint)
}
