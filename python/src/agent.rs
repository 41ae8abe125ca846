//! An agent's loop (HELM): cited recalls, `<recall>` spans, and steps with a controller.
//!
//! A loop object holds what a loop remembers from step to step and no database: each call is given one, so that closing
//! a database ends what was made of it.

use crate::answer::Answer;
use crate::database::Database;
use crate::drafts::TraceDraft;
use crate::errors;
use crate::interrupt;
use crate::roles::{RoleSet, filling};
use crate::texts::Text;
use crate::values::{member, micros, text_of, whole};
use holotype::{
    CitedMemory, CitedRecall, Controller, Generator, HelmLimits, HeuristicController, LoopMemory, MemoryLoop,
    Operation, Reader, RecallInterface, RecallMode, Step, StepOutcome,
};
use holotype_models::Role;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Mutex, PoisonError};

/// The options of a cited recall, and the tries of its generator.
struct Asking {
    recall: CitedRecall,
    tokens: u64,
    tries: u32,
}

impl Asking {
    fn read(options: &Bound<'_, PyDict>) -> PyResult<Asking> {
        let mut asking = Asking { recall: CitedRecall::new(""), tokens: holotype::RECALL_TOKENS, tries: 3 };
        let mut reader = Reader::default();
        for (name, value) in options.iter().filter(|(_, value)| !value.is_none()) {
            let name = text_of("an option", &name)?;
            let recall = asking.recall;
            asking.recall = match name.as_str() {
                "episodes" => {
                    let ids: Vec<Text> = member(&name, "a list of episodes", &value)?;
                    ids.into_iter().fold(recall, |recall, Text(id)| recall.in_episode(id))
                }
                "mode" => recall.mode(mode(&value)?),
                "tokens" => {
                    asking.tokens = whole(&name, &value)?;
                    recall
                }
                "tries" => {
                    asking.tries = member(&name, "a whole number", &value)?;
                    recall
                }
                "step" => {
                    reader.step = Some(whole(&name, &value)?);
                    recall
                }
                "time" => {
                    reader.time = Some(micros(&value)?);
                    recall
                }
                "version" => {
                    reader.version = Some(text_of(&name, &value)?);
                    recall
                }
                "receipt" if value.is_truthy()? => recall.with_receipt(),
                "quarantined" if value.is_truthy()? => recall.including_quarantined(),
                "receipt" | "quarantined" => recall,
                "path" => recall.through(text_of(&name, &value)?),
                "where" => recall.matching(text_of(&name, &value)?),
                "profile" => recall.profile(text_of(&name, &value)?),
                "exclude" => {
                    let flaws: Vec<Text> = member(&name, "a list of flaws", &value)?;
                    flaws.into_iter().fold(recall, |recall, Text(flaw)| recall.excluding(flaw))
                }
                _ => {
                    let known = "known are episodes, mode, tokens, tries, step, time, version, receipt, quarantined, \
                                 path, where, profile and exclude";
                    let py = value.py();
                    return Err(errors::invalid(py, "unknown-option", &format!("unknown option {name:?}"), known));
                }
            };
        }
        asking.recall = asking.recall.at(reader);
        Ok(asking)
    }

    fn interface(&self) -> RecallInterface {
        RecallInterface::like(self.recall.clone()).within(self.tokens).tries(self.tries)
    }
}

fn mode(value: &Bound<'_, PyAny>) -> PyResult<RecallMode> {
    match text_of("mode", value)?.as_str() {
        "A0" | "plain" => Ok(RecallMode::Plain),
        "A1" | "cited" => Ok(RecallMode::Cited),
        "A2" | "extractive" => Ok(RecallMode::Extractive),
        other => {
            let hint = "give plain (A0), cited (A1) or extractive (A2)";
            Err(errors::invalid(value.py(), "bad-mode", &format!("unknown mode {other:?}"), hint))
        }
    }
}

/// Recalls evidence and has a memory written from it, or, without a generator, spans with their citations.
#[pyfunction]
pub(crate) fn cited_recall<'py>(
    py: Python<'py>,
    database: &Database,
    request: Text,
    options: &Bound<'py, PyDict>,
    roles: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (asking, roles) = (Asking::read(options)?, RoleSet::read(roles)?);
    let handle = database.writable(py)?;
    let mut generator = filling(roles.as_ref(), Role::Generator).cloned();
    let memory = interrupt::run(py, None, |_| {
        let recall = asking.recall.asking(request.0).within(asking.tokens);
        match &mut generator {
            Some(generator) => recall.run(&handle, generator, asking.tries),
            None => recall.spans(&handle),
        }
    })?;
    memory_dict(py, memory)
}

/// Replaces the `<recall>` spans of a text by memories; returns the text and the memories.
#[pyfunction]
pub(crate) fn answer_recalls<'py>(
    py: Python<'py>,
    database: &Database,
    text: Text,
    options: &Bound<'py, PyDict>,
    roles: Option<&Bound<'py, PyAny>>,
) -> PyResult<(String, Bound<'py, PyList>)> {
    let (asking, roles) = (Asking::read(options)?, RoleSet::read(roles)?);
    let handle = database.writable(py)?;
    let mut generator = filling(roles.as_ref(), Role::Generator).cloned();
    let answered = interrupt::run(py, None, |_| {
        let generator = generator.as_mut().map(|generator| generator as &mut dyn Generator);
        asking.interface().answer(&handle, &text.0, generator)
    })?;
    let memories = answered.memories.into_iter().map(|memory| memory_dict(py, memory)).collect::<PyResult<Vec<_>>>()?;
    Ok((answered.text, PyList::new(py, memories)?))
}

fn memory_dict<'py>(py: Python<'py>, memory: CitedMemory) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("text", &memory.text)?;
    dict.set_item("fell_back", memory.fell_back)?;
    dict.set_item("tokens", memory.tokens)?;
    let attempts = memory.attempts.iter().map(|attempt| (&attempt.prompt, &attempt.output, &attempt.diagnostic));
    dict.set_item("attempts", attempts.collect::<Vec<_>>())?;
    if let Some(check) = &memory.check {
        dict.set_item("verdict", check.message())?;
        dict.set_item("coverage", check.coverage())?;
        dict.set_item("validity", check.validity())?;
    }
    if let Some(refresh) = memory.refresh() {
        dict.set_item("refresh", (&refresh.tool, refresh.last_step))?;
    }
    dict.set_item("evidence", Answer::restored(memory.evidence, None))?;
    Ok(dict)
}

/// The parts of a loop over an episode, and its state.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Loop {
    episode: String,
    asking: Asking,
    limits: HelmLimits,
    refine_from: Option<u64>,
    consolidate_every: u64,
    roles: Option<RoleSet>,
    memory: Mutex<LoopMemory>,
}

#[pymethods]
impl Loop {
    #[new]
    fn new(
        episode: Text,
        asking: &Bound<'_, PyDict>,
        limits: &Bound<'_, PyDict>,
        roles: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Loop> {
        let mut made = Loop {
            episode: episode.0,
            asking: Asking::read(asking)?,
            limits: HelmLimits::default(),
            refine_from: None,
            consolidate_every: HeuristicController::default().consolidate_every,
            roles: RoleSet::read(roles)?,
            memory: Mutex::default(),
        };
        made.limits.recall_tokens = made.asking.tokens;
        for (name, value) in limits.iter().filter(|(_, value)| !value.is_none()) {
            let name = text_of("a limit", &name)?;
            match name.as_str() {
                "writes_per_step" => made.limits.writes_per_step = member(&name, "a whole number", &value)?,
                "consolidations" => made.limits.consolidations = member(&name, "a whole number", &value)?,
                "items" => made.limits.items = member(&name, "three whole numbers", &value)?,
                "refine_from" => made.refine_from = Some(whole(&name, &value)?),
                "consolidate_every" => made.consolidate_every = whole(&name, &value)?,
                _ => {
                    let known = "known are writes_per_step, consolidations, items, refine_from and consolidate_every";
                    let py = value.py();
                    return Err(errors::invalid(py, "unknown-limit", &format!("unknown limit {name:?}"), known));
                }
            }
        }
        Ok(made)
    }

    /// One step: what was observed, as the members of a trace, and what was asked.
    #[pyo3(signature = (database, observation=None, request=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        database: &Database,
        observation: Option<&Bound<'py, PyDict>>,
        request: Option<Text>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let observation = observation.map(|trace| TraceDraft::read(trace, None)).transpose()?;
        let handle = database.writable(py)?;
        let step = Step {
            observation: observation.map(|draft| draft.trace(&handle)),
            request: request.map(|request| request.0),
        };
        let outcome = interrupt::run(py, None, |_| {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            let controller: Box<dyn Controller> = match filling(self.roles.as_ref(), Role::Controller) {
                Some(model) => Box::new(model.clone()),
                None => Box::new(HeuristicController { consolidate_every: self.consolidate_every }),
            };
            let mut generator = filling(self.roles.as_ref(), Role::Generator).cloned();
            let interface = self.asking.interface().in_episode(self.episode.clone()).with_receipts();
            let mut running = MemoryLoop::new(&handle, self.episode.clone(), controller).limits(self.limits.clone());
            running = running.interface(interface).resume(memory.clone());
            if let Some(tokens) = self.refine_from {
                running = running.refine_from(tokens);
            }
            let generator = generator.as_mut().map(|generator| generator as &mut dyn Generator);
            let outcome = running.step(step, generator)?;
            *memory = running.into_memory();
            Ok(outcome)
        })?;
        outcome_dict(py, outcome)
    }
}

fn outcome_dict<'py>(py: Python<'py>, outcome: StepOutcome) -> PyResult<Bound<'py, PyDict>> {
    let names = |operations: &[Operation]| operations.iter().map(|it| it.as_str()).collect::<Vec<_>>();
    let dict = PyDict::new(py);
    dict.set_item("operations", names(&outcome.decision.operations))?;
    dict.set_item("query", &outcome.decision.query)?;
    dict.set_item("done", names(&outcome.decided.done))?;
    dict.set_item("refused", names(&outcome.refused))?;
    dict.set_item("controller_error", &outcome.controller_error)?;
    dict.set_item("written", outcome.written.map(|item| item.0))?;
    dict.set_item("refined", outcome.refined.map(|item| item.0))?;
    let pruned = outcome.pruned.map(|report| report.pruned.len());
    dict.set_item("pruned", pruned)?;
    if let Some(memory) = outcome.memory {
        dict.set_item("memory", memory_dict(py, memory)?)?;
    }
    Ok(dict)
}

/// The decisions of the loops over an episode, oldest first, as JSON.
#[pyfunction]
pub(crate) fn decisions(py: Python<'_>, database: &Database, episode: Text) -> PyResult<Vec<String>> {
    let handle = database.readable(py)?;
    let decided = interrupt::run(py, None, |_| handle.snapshot().decisions(&episode.0))?;
    Ok(decided.iter().map(|decided| decided.to_json().to_string()).collect())
}
