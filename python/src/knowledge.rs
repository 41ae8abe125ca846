//! Knowledge from trajectories and guidance out of it (PlugMem); routed reads and verified write-backs (TierMem).

use crate::answer::Answer;
use crate::database::Database;
use crate::drafts::pointer;
use crate::errors;
use crate::interrupt;
use crate::roles::{RoleSet, filling};
use crate::texts::Text;
use crate::values::{member, micros, text_of, whole};
use crate::vectors::vector;
use holotype::interchange::{export_decisions, export_rollouts, export_routes, export_triplets};
use holotype::query::EscalateMode;
use holotype::router::{LinearRouter, Router};
use holotype::structure::{self as structuring, Trajectory};
use holotype::write_back::{ByWords, FindingFilter, Grounded, MemoryManager};
use holotype::{
    Durability, Extractive, Learn, LearnRoles, Mode, ModeChooser, Planner, QuestionWords, Reasoner, Roles,
    UncoveredWords,
};
use holotype_models::Role;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Written keys, and failed ones with the reason.
type KeysAndPairs = (Vec<String>, Vec<(String, String)>);
/// Pages with their numbers of facts, and what failed with the reasons.
type PagesAndFailures = (Vec<(String, u64)>, Vec<(String, String)>);

/// A step of a trajectory.
fn step(given: &Bound<'_, PyDict>) -> PyResult<structuring::Step> {
    let mut step = structuring::Step::default();
    let mut has_observation = false;
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        let name = text_of("a member", &name)?;
        match name.as_str() {
            "observation" => {
                step.observation = text_of(&name, &value)?;
                has_observation = true;
            }
            "action" => step.action = Some(text_of(&name, &value)?),
            "state" => step.state = Some(text_of(&name, &value)?),
            "subgoal" => step.subgoal = Some(text_of(&name, &value)?),
            "reward" => step.reward = Some(member(&name, "a number from 0 to 1", &value)?),
            "key" => step.key = Some(text_of(&name, &value)?),
            "time" => step.time = Some(micros(&value)?),
            "speaker" => step.speaker = Some(text_of(&name, &value)?),
            "source" => step.source = Some(text_of(&name, &value)?),
            "status" => step.status = Some(text_of(&name, &value)?),
            "tool" => step.tool = Some(text_of(&name, &value)?),
            "vector" => step.vector = Some(vector(&value)?),
            _ => {
                let known = "known are observation, action, state, subgoal, reward, key, time, speaker, source, \
                             status, tool and vector";
                let py = value.py();
                return Err(errors::invalid(
                    py,
                    "unknown-member",
                    &format!("unknown member {name:?} of a step"),
                    known,
                ));
            }
        }
    }
    if !has_observation {
        return Err(errors::invalid(given.py(), "missing-member", "a step has no observation", "give `observation`"));
    }
    Ok(step)
}

/// Structures a trajectory; returns the numbers of what was written.
#[pyfunction]
#[pyo3(signature = (database, episode, goal, steps, roles=None))]
pub(crate) fn structure<'py>(
    py: Python<'py>,
    database: &Database,
    episode: Text,
    goal: Text,
    steps: Vec<Bound<'py, PyDict>>,
    roles: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let steps = steps.iter().map(step).collect::<PyResult<Vec<_>>>()?;
    let (trajectory, given) = (Trajectory { episode: episode.0, goal: goal.0, steps }, RoleSet::read(roles)?);
    let handle = database.writable(py)?;
    let created = interrupt::run(py, None, |_| {
        let mut roles = structuring::Roles::default();
        let given = given.as_ref();
        if let Some(model) = filling(given, Role::Standardiser) {
            roles.standardiser = model;
        }
        if let Some(model) = filling(given, Role::Extractor) {
            roles.extractor = model;
        }
        if let Some(model) = filling(given, Role::ProcedureWriter) {
            roles.procedures = model;
        }
        if let Some(model) = filling(given, Role::IntentMerger) {
            roles.intents = model;
        }
        handle.structure(&trajectory, &roles, Durability::Sync)
    })?;
    let numbers = |items: &[holotype::ItemId]| items.iter().map(|item| item.0).collect::<Vec<_>>();
    let dict = PyDict::new(py);
    dict.set_item("traces", numbers(&created.traces))?;
    dict.set_item("facts", numbers(&created.facts))?;
    dict.set_item("concepts", numbers(&created.concepts))?;
    dict.set_item("procedures", numbers(&created.procedures))?;
    dict.set_item("intents", numbers(&created.intents))?;
    dict.set_item("segments", created.segments)?;
    dict.set_item("notes", created.notes)?;
    Ok(dict)
}

fn mode(name: &Text, py: Python<'_>) -> PyResult<Mode> {
    let modes = [Mode::Episodic, Mode::Semantic, Mode::Procedural];
    modes.into_iter().find(|mode| mode.as_str() == name.0).ok_or_else(|| {
        let hint = "give episodic, semantic or procedural";
        errors::invalid(py, "bad-mode", &format!("unknown mode {:?}", name.0), hint)
    })
}

/// The memory that a task or an observation asks for, and the path of a recall in it.
#[pyfunction]
#[pyo3(signature = (task, observation, roles=None))]
pub(crate) fn choose_mode(
    py: Python<'_>,
    task: Text,
    observation: Text,
    roles: Option<&Bound<'_, PyAny>>,
) -> PyResult<(&'static str, &'static str)> {
    let roles = RoleSet::read(roles)?;
    let mode = interrupt::run(py, None, |_| {
        // A chooser that fails means semantic memory.
        Ok(match filling(roles.as_ref(), Role::ModeChooser) {
            Some(model) => model.choose(&task.0, &observation.0).unwrap_or(Mode::Semantic),
            None => QuestionWords.choose(&task.0, &observation.0)?,
        })
    })?;
    Ok((mode.as_str(), mode.path()))
}

/// One guidance out of the rows of an answer, and the keys of the rows that it cites.
#[pyfunction]
#[pyo3(signature = (database, answer, question, mode_name, roles=None, sentences=8))]
pub(crate) fn guidance(
    py: Python<'_>,
    database: &Database,
    answer: &Answer,
    question: Text,
    mode_name: Text,
    roles: Option<&Bound<'_, PyAny>>,
    sentences: usize,
) -> PyResult<(String, Vec<String>)> {
    let (mode, roles) = (mode(&mode_name, py)?, RoleSet::read(roles)?);
    let (handle, answer) = (database.readable(py)?, answer.engine());
    let role = match mode {
        Mode::Episodic => Role::ReasonerEpisodic,
        Mode::Semantic => Role::ReasonerSemantic,
        Mode::Procedural => Role::ReasonerProcedural,
    };
    let guidance = interrupt::run(py, None, |_| {
        let extractive = Extractive { most: sentences };
        let model = filling(roles.as_ref(), role);
        let reasoner = model.map_or(&extractive as &dyn Reasoner, |model| model as &dyn Reasoner);
        handle.snapshot().guidance(&answer, &question.0, mode, reasoner)
    })?;
    let key = |id| answer.rows.iter().find(|row| row.item == id).map(|row| row.key.clone());
    Ok((guidance.text, guidance.cites.into_iter().filter_map(key).collect()))
}

/// Answers a recall that escalates, with roles.
#[pyfunction]
pub(crate) fn routed(
    py: Python<'_>,
    database: &Database,
    question: Text,
    options: &Bound<'_, PyDict>,
    roles: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let roles = RoleSet::read(roles)?;
    let handle = database.writable(py)?;
    let mut given: Vec<(String, Bound<'_, PyAny>)> = Vec::new();
    for (name, value) in options.iter().filter(|(_, value)| !value.is_none()) {
        given.push((text_of("an option", &name)?, value));
    }
    let snapshot = handle.snapshot();
    let mut recall = snapshot.recall(question.0);
    let mut escalate = EscalateMode::Auto;
    for (name, value) in &given {
        recall = match name.as_str() {
            "escalate" => {
                escalate = match text_of(name, value)?.as_str() {
                    "auto" => EscalateMode::Auto,
                    "always" => EscalateMode::Always,
                    "never" => EscalateMode::Never,
                    other => {
                        let hint = "give auto, always or never";
                        return Err(errors::invalid(py, "bad-mode", &format!("unknown mode {other:?}"), hint));
                    }
                };
                recall
            }
            "episode" => recall.in_episode(text_of(name, value)?),
            "budget" => recall.budget(whole(name, value)?),
            "vector" => recall.near(vector(value)?),
            "receipt" if value.is_truthy()? => recall.with_receipt(),
            "receipt" => recall,
            _ => {
                let known = "known are escalate, episode, budget, vector and receipt";
                return Err(errors::invalid(py, "unknown-option", &format!("unknown option {name:?}"), known));
            }
        };
    }
    let recall = recall.escalate(escalate);
    let fitted = LinearRouter::default();
    let answer = interrupt::run(py, None, |_| {
        let Some(given) = roles.as_ref() else { return handle.ask(recall, None) };
        let router = given.filling(Role::Router).map_or(&fitted as &dyn Router, |model| model as &dyn Router);
        let planner =
            given.filling(Role::Planner).map_or(&UncoveredWords as &dyn Planner, |model| model as &dyn Planner);
        let mut roles = Roles::new(router, planner);
        if let Some(model) = given.filling(Role::Integrator) {
            roles = roles.integrator(model);
        }
        if let Some(model) = given.filling(Role::Reranker) {
            roles = roles.ranker(model);
        }
        handle.ask(recall, Some(roles))
    })?;
    Ok(Answer::restored(answer, None))
}

/// Writes findings back in one transaction; each outcome is a word, the items it is about, and notes.
#[pyfunction]
#[pyo3(signature = (database, findings, add_only, roles=None))]
pub(crate) fn learn<'py>(
    py: Python<'py>,
    database: &Database,
    findings: Vec<(Text, Bound<'py, PyAny>)>,
    add_only: bool,
    roles: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let mut drafts = Vec::new();
    for (text, sources) in findings {
        let sources = sources.try_iter()?.map(|one| pointer(&one?)).collect::<PyResult<Vec<_>>>()?;
        let draft = sources.into_iter().fold(Learn::new(text.0), Learn::from);
        drafts.push(if add_only { draft.add_only() } else { draft });
    }
    let (roles, handle) = (RoleSet::read(roles)?, database.writable(py)?);
    let outcomes = interrupt::run(py, None, |_| {
        let mut transaction = handle.begin()?;
        let by_words = ByWords::default();
        let (manager, filter) =
            (filling(roles.as_ref(), Role::MemoryManager), filling(roles.as_ref(), Role::FindingFilter));
        let mut outcomes = Vec::new();
        for draft in &drafts {
            let learned = match (manager, filter) {
                (None, None) => transaction.learn_by_words(draft),
                _ => {
                    let manager = manager.map_or(&by_words as &dyn MemoryManager, |it| it as &dyn MemoryManager);
                    let filter = filter.map_or(&Grounded as &dyn FindingFilter, |it| it as &dyn FindingFilter);
                    transaction.learn(draft, LearnRoles { manager, filter })
                }
            };
            outcomes.push(match learned {
                Ok(learned) => {
                    let (item, replaced) = (learned.item.map(|item| item.0), learned.replaced.map(|item| item.0));
                    (learned.op.as_str(), item, replaced, learned.notes)
                }
                Err(error @ (holotype::Error::UnresolvedPointer { .. } | holotype::Error::HashMismatch { .. })) => {
                    ("refused", None, None, vec![error.to_string()])
                }
                Err(error) => return Err(error),
            });
        }
        transaction.commit(Durability::Sync)?;
        Ok(outcomes)
    })?;
    PyList::new(py, outcomes)
}

/// Summarises pages that are due; returns those that have a summary now, and those that failed with the reason.
#[pyfunction]
pub(crate) fn summarise(
    py: Python<'_>,
    database: &Database,
    roles: &Bound<'_, PyAny>,
    most: usize,
) -> PyResult<KeysAndPairs> {
    let (roles, handle) = (RoleSet::read(Some(roles))?, database.writable(py)?);
    let Some(model) = filling(roles.as_ref(), Role::Summariser).cloned() else {
        return Err(errors::invalid(py, "bad-role", "nothing fills the role summariser", "give it"));
    };
    let embedder = handle.snapshot().space().ok().flatten();
    let embedder = embedder.and_then(|space| holotype::embed::HashingEmbedder::from_name(&space.model));
    let done = interrupt::run(py, None, |_| {
        let embedder = embedder.as_ref().map(|embedder| embedder as &dyn holotype::embed::Embedder);
        model.summarise(&handle, embedder, Durability::Sync, most)
    })?;
    Ok((done.written, done.failed))
}

/// The facts of pages that are due; returns the pages with their numbers of facts, and what was left out.
#[pyfunction]
pub(crate) fn extract_pages(
    py: Python<'_>,
    database: &Database,
    roles: &Bound<'_, PyAny>,
    most: usize,
) -> PyResult<PagesAndFailures> {
    let (roles, handle) = (RoleSet::read(Some(roles))?, database.writable(py)?);
    let model = role_of(py, roles.as_ref(), Role::PageFacts)?;
    let embedder = handle.snapshot().space().ok().flatten();
    let embedder = embedder.and_then(|space| holotype::embed::HashingEmbedder::from_name(&space.model));
    let done = interrupt::run(py, None, |_| {
        let embedder = embedder.as_ref().map(|embedder| embedder as &dyn holotype::embed::Embedder);
        model.extract_pages(&handle, embedder, Durability::Sync, most)
    })?;
    Ok((done.written, done.failed))
}

/// The model that fills a role, or an error that says to give it.
fn role_of(py: Python<'_>, roles: Option<&RoleSet>, role: Role) -> PyResult<holotype_models::Model> {
    let missing = || errors::invalid(py, "bad-role", &format!("nothing fills the role {}", role.as_str()), "give it");
    filling(roles, role).cloned().ok_or_else(missing)
}

/// An answer to a question from the rows of an answer, with the keys of the rows that it rests on.
#[pyfunction]
pub(crate) fn answer_from(
    py: Python<'_>,
    answer: &Answer,
    question: Text,
    roles: &Bound<'_, PyAny>,
) -> PyResult<(Option<String>, Vec<String>)> {
    let roles = RoleSet::read(Some(roles))?;
    let (model, found) = (role_of(py, roles.as_ref(), Role::Answerer)?, answer.engine());
    let said = interrupt::run(py, None, |_| Ok(model.answer(&question.0, &found.rows)?))?;
    Ok((said.text, said.keys))
}

/// True if an answer says what a right one says.
#[pyfunction]
pub(crate) fn judge(
    py: Python<'_>,
    question: Text,
    right: Vec<Text>,
    answer: Text,
    roles: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let roles = RoleSet::read(Some(roles))?;
    let model = role_of(py, roles.as_ref(), Role::Judge)?;
    let right: Vec<&str> = right.iter().map(|right| &*right.0).collect();
    interrupt::run(py, None, |_| Ok(model.judge(&question.0, &right, &answer.0)?))
}

/// Training data as lines of JSON: `triplets`, `router` or `rollouts`.
#[pyfunction]
pub(crate) fn training(py: Python<'_>, database: &Database, kind: Text) -> PyResult<String> {
    let handle = database.readable(py)?;
    let snapshot = handle.snapshot();
    let mut out = Vec::new();
    let written = py.detach(|| match kind.0.as_str() {
        "triplets" => export_triplets(&snapshot, &mut out).map(|_| true),
        "router" => export_routes(&snapshot, &mut out).map(|_| true),
        "controller" => export_decisions(&snapshot, &mut out).map(|_| true),
        "rollouts" => export_rollouts(&snapshot, &mut out, &holotype::credit::CreditOptions::default()).map(|_| true),
        _ => Ok(false),
    });
    match written {
        Err(error) => Err(errors::raise(py, &error, None)),
        Ok(false) => {
            let hint = "give triplets, router, controller or rollouts";
            Err(errors::invalid(py, "bad-kind", &format!("there is no training data {:?}", kind.0), hint))
        }
        Ok(true) => Ok(String::from_utf8_lossy(&out).into_owned()),
    }
}
