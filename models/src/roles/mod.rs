//! The roles of the engine, each filled by one call of a model.
//!
//! A role sends its prompt as the message of the system and its inputs as one JSON object in the message of the user.
//! Its reply is read strictly; whatever is wrong is an error, for which the engine has a safe default.

mod agent;
mod escalation;
mod reading;
mod structure;
mod summaries;
mod write_back;

pub use escalation::Finding;
pub use summaries::Summaries;

use crate::client::Client;
use crate::failure::Failure;
use crate::prompts::{Prompts, Role};
use crate::reply::bare;
use serde_json::Value;
use std::sync::Arc;

/// A model in every role that chat completions can fill. Clones are cheap. Roles that shall be filled by different
/// models take one `Model` each.
#[derive(Debug, Clone)]
pub struct Model {
    client: Client,
    prompts: Arc<Prompts>,
}

impl Model {
    /// The model behind a client, with the built-in prompts.
    ///
    /// # Errors
    /// As [`Prompts::built_in`].
    pub fn new(client: Client) -> Result<Model, Failure> {
        Ok(Model { client, prompts: Arc::new(Prompts::built_in()?) })
    }

    /// The same model with other prompts.
    pub fn with_prompts(self, prompts: Prompts) -> Model {
        Model { prompts: Arc::new(prompts), ..self }
    }

    /// The prompts.
    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// The reply to the inputs of a role, without what wraps it.
    fn ask(&self, role: Role, inputs: &Value) -> Result<String, Failure> {
        self.say(role, &inputs.to_string())
    }

    /// The reply to a text, without what wraps it.
    fn say(&self, role: Role, text: &str) -> Result<String, Failure> {
        let reply = self.client.chat(self.prompts.of(role)?.text(), text)?;
        bare(&reply).map(str::to_owned)
    }
}
