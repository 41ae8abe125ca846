//! Models in the roles of the engine: behind a server, or Python callables.
//!
//! A callable gets the name of the role and its inputs, as a dict; the generator's are its prompt. What it returns is
//! the model's reply, as text or as the value that the text is in JSON, and is read as strictly as a model's. What it
//! raises counts as a call that failed.

use crate::errors;
use crate::texts::Text;
use crate::values::{member, text_of};
use holotype::credit::{Scorer as Scores, Scoring, Template};
use holotype_models::{CallLimits, Chat, Client, Endpoint, Failure, Role, Said, TokenScorer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A model behind an OpenAI-compatible server.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Model {
    model: holotype_models::Model,
    client: Client,
}

#[pymethods]
impl Model {
    #[new]
    fn open(py: Python<'_>, url: Text, name: Text, options: &Bound<'_, PyDict>) -> PyResult<Model> {
        let failed = |failure: Failure| errors::raise(py, &failure.into(), None);
        let mut endpoint = Endpoint::new(&url.0, &name.0).map_err(failed)?;
        let mut limits = CallLimits::default();
        for (name, value) in options.iter().filter(|(_, value)| !value.is_none()) {
            let seconds = || -> PyResult<Duration> {
                let seconds: f64 = member("timeout", "seconds", &value)?;
                let refused = |_| errors::invalid(py, "bad-timeout", "the timeout is no time", "give seconds above 0");
                Duration::try_from_secs_f64(seconds).map_err(refused)
            };
            match text_of("an option", &name)?.as_str() {
                "key" => endpoint = endpoint.key(&text_of("key", &value)?).map_err(failed)?,
                "timeout" => limits.attempt = seconds()?,
                "tries" => limits.tries = member("tries", "a whole number", &value)?,
                "reply_tokens" => limits.reply_tokens = member("reply_tokens", "a whole number", &value)?,
                "parameters" => {
                    let given: Bound<'_, PyDict> = member("parameters", "a dict", &value)?;
                    for (name, value) in given.iter() {
                        let json: String = py.import("json")?.call_method1("dumps", (value,))?.extract()?;
                        let value = serde_json::from_str(&json).unwrap_or_default();
                        endpoint = endpoint.parameter(&text_of("a parameter", &name)?, value).map_err(failed)?;
                    }
                }
                other => {
                    let known = "known are key, timeout, tries, reply_tokens and parameters";
                    return Err(errors::invalid(py, "unknown-option", &format!("unknown option {other:?}"), known));
                }
            }
        }
        limits.total = limits.total.max(limits.attempt);
        let client = Client::with(endpoint, limits).map_err(failed)?;
        let model = holotype_models::Model::new(client.clone()).map_err(failed)?;
        Ok(Model { model, client })
    }

    /// Calls and tokens so far, by role: calls, tokens in, tokens out.
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let usage = PyDict::new(py);
        for (role, of) in self.model.usage() {
            usage.set_item(role.as_str(), (of.calls, of.input_tokens, of.output_tokens))?;
        }
        Ok(usage)
    }

    /// The log-probability of each token of a continuation behind a prompt.
    fn log_probs(&self, py: Python<'_>, prompt: Text, continuation: Text) -> PyResult<Vec<f64>> {
        let scorer = TokenScorer::new(self.client.clone());
        let scores = py.detach(|| scorer.token_log_probs(&prompt.0, &continuation.0));
        scores.map_err(|failure| errors::raise(py, &failure.into(), None))
    }
}

/// A Python callable that replies.
#[derive(Debug)]
struct Callable(Py<PyAny>);

impl Chat for Callable {
    fn reply(&self, role: Role, _: &str, inputs: &str) -> Result<Said, Failure> {
        let said = Python::attach(|py| -> PyResult<String> {
            let json = py.import("json")?;
            let given = match role {
                Role::Generator => PyString::new(py, inputs).into_any(),
                _ => json.call_method1("loads", (inputs,))?,
            };
            let reply = self.0.bind(py).call1((role.as_str(), given))?;
            match reply.extract::<String>() {
                Ok(text) => Ok(text),
                Err(_) => json.call_method1("dumps", (reply,))?.extract(),
            }
        });
        let failed = |error: PyErr| Failure::Invalid(format!("the role {} failed: {error}", role.as_str()));
        said.map(|text| Said { text, ..Said::default() }).map_err(failed)
    }
}

/// A model with the roles that it fills.
#[derive(Clone)]
pub(crate) struct RoleSet {
    pub(crate) model: holotype_models::Model,
    /// The names of the roles; `None` for all.
    given: Option<HashSet<String>>,
}

impl RoleSet {
    /// A [`Model`], or a callable; its attribute `given`, if it has one, names the roles it fills.
    pub(crate) fn read(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<RoleSet>> {
        let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
        let py = value.py();
        if let Ok(model) = value.cast::<Model>() {
            return Ok(Some(RoleSet { model: model.get().model.clone(), given: None }));
        }
        if !value.is_callable() {
            let hint = "give a holotype.Model, holotype.roles.Roles or a callable of a role and its inputs";
            return Err(errors::invalid(py, "bad-role", "this fills no role", hint));
        }
        let given = match value.getattr_opt("given")? {
            Some(given) => Some(given.try_iter()?.map(|name| text_of("a role", &name?)).collect::<PyResult<_>>()?),
            None => None,
        };
        let chat: Arc<dyn Chat> = Arc::new(Callable(value.clone().unbind()));
        let model = holotype_models::Model::over(chat).map_err(|failure| errors::raise(py, &failure.into(), None))?;
        Ok(Some(RoleSet { model, given }))
    }

    /// The model, if it fills a role.
    pub(crate) fn filling(&self, role: Role) -> Option<&holotype_models::Model> {
        let fills = self.given.as_ref().is_none_or(|given| given.contains(role.as_str()));
        fills.then_some(&self.model)
    }
}

/// The model of some roles, if there is one and it fills the role.
pub(crate) fn filling(roles: Option<&RoleSet>, role: Role) -> Option<&holotype_models::Model> {
    roles.and_then(|roles| roles.filling(role))
}

/// A policy that scores continuations: a [`Model`], or a callable of a prompt and a continuation.
pub(crate) enum Policy {
    Model(Box<TokenScorer>),
    Callable(Py<PyAny>),
}

impl Policy {
    pub(crate) fn read(value: Option<&Bound<'_, PyAny>>) -> Option<Policy> {
        let value = value.filter(|value| !value.is_none())?;
        Some(match value.cast::<Model>() {
            Ok(model) => Policy::Model(Box::new(TokenScorer::new(model.get().client.clone()))),
            Err(_) => Policy::Callable(value.clone().unbind()),
        })
    }
}

impl Scores for Policy {
    fn log_probs(&self, scoring: &Scoring<'_>, template: &Template) -> holotype::Result<Vec<f64>> {
        match self {
            Policy::Model(scorer) => scorer.log_probs(scoring, template),
            Policy::Callable(call) => Python::attach(|py| {
                let given = (scoring.prompt(template), scoring.continuation);
                call.bind(py).call1(given).and_then(|scores| scores.extract())
            })
            .map_err(|error| holotype::Error::Invalid(format!("the scorer failed: {error}"))),
        }
    }
}
