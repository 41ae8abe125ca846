//! The roles of the engine, each filled by one call of a model.
//!
//! A role sends its prompt as the message of the system and its inputs as one JSON object in the message of the user.
//! Its reply is read strictly; whatever is wrong is an error, for which the engine has a safe default. The roles that
//! structure ask once more, with the fault beside the inputs, since all of a trajectory waits for them.
//!
//! A [`Chat`] replies: a [`Client`] of a server, or a program. The tokens of all calls are counted by role
//! ([`Model::usage`]; PlugMem Tables 16 to 18, TierMem B.8).

mod agent;
mod escalation;
mod judging;
mod reading;
mod structure;
mod summaries;
mod write_back;

pub use escalation::Finding;
pub use judging::{Answered, PageFact, PageFacts};
pub use summaries::Summaries;

use crate::client::{Client, Said};
use crate::failure::Failure;
use crate::prompts::{Prompts, Role};
use crate::reply::bare;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The calls of a role and their tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Calls that were answered.
    pub calls: u64,
    /// Tokens of their requests.
    pub input_tokens: u64,
    /// Tokens of their replies.
    pub output_tokens: u64,
}

/// Replies to the message of a role.
pub trait Chat: Debug + Send + Sync {
    /// The reply to a prompt and inputs: one JSON object as text, other than for the generator, whose text is a prompt.
    ///
    /// # Errors
    /// [`Failure`].
    fn reply(&self, role: Role, prompt: &str, inputs: &str) -> Result<Said, Failure>;
}

impl Chat for Client {
    fn reply(&self, _: Role, prompt: &str, inputs: &str) -> Result<Said, Failure> {
        self.say(prompt, inputs)
    }
}

/// A model in every role that chat completions can fill. Clones are cheap and count together. Roles that shall be
/// filled by different models take one `Model` each.
#[derive(Debug, Clone)]
pub struct Model {
    chat: Arc<dyn Chat>,
    prompts: Arc<Prompts>,
    usage: Arc<Mutex<BTreeMap<Role, Usage>>>,
}

impl Model {
    /// The model behind a client, with the built-in prompts.
    ///
    /// # Errors
    /// As [`Prompts::built_in`].
    pub fn new(client: Client) -> Result<Model, Failure> {
        Model::over(Arc::new(client))
    }

    /// The model behind whatever replies.
    ///
    /// # Errors
    /// As [`Prompts::built_in`].
    pub fn over(chat: Arc<dyn Chat>) -> Result<Model, Failure> {
        Ok(Model { chat, prompts: Arc::new(Prompts::built_in()?), usage: Arc::default() })
    }

    /// The same model with other prompts.
    pub fn with_prompts(self, prompts: Prompts) -> Model {
        Model { prompts: Arc::new(prompts), ..self }
    }

    /// The prompts.
    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Calls and tokens so far, by role.
    pub fn usage(&self) -> BTreeMap<Role, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The reply to the inputs of a role, without what wraps it.
    fn ask(&self, role: Role, inputs: &Value) -> Result<String, Failure> {
        self.say(role, &inputs.to_string())
    }

    /// A reply as it is read. One that cannot be is asked for once more, with what was wrong with it.
    fn read<T>(&self, role: Role, mut inputs: Value, read: impl Fn(&str) -> Result<T, Failure>) -> Result<T, Failure> {
        match self.ask(role, &inputs).and_then(|reply| read(&reply)) {
            Err(Failure::Reply { reason, .. }) => {
                inputs["your_last_reply_was_refused_because_it"] = json!(reason);
                self.ask(role, &inputs).and_then(|reply| read(&reply))
            }
            done => done,
        }
    }

    /// The reply to a text, without what wraps it.
    fn say(&self, role: Role, text: &str) -> Result<String, Failure> {
        let said = self.chat.reply(role, self.prompts.of(role)?.text(), text)?;
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let of_role = usage.entry(role).or_default();
        of_role.calls += 1;
        of_role.input_tokens += said.input_tokens;
        of_role.output_tokens += said.output_tokens;
        drop(usage);
        bare(&said.text).map(str::to_owned)
    }
}
