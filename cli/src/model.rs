//! A model behind an OpenAI-compatible server, in the roles of a command: `--model URL --model-name NAME`.
//!
//! The key of a server is taken from the environment, `HOLOTYPE_MODEL_KEY`, so that it stands in no list of processes.

use crate::failure::Failure;
use holotype::Error;
use holotype_models::{Client, Endpoint, Model, TokenScorer};

#[derive(Debug, clap::Args)]
#[group(id = "model-args")]
pub(crate) struct Args {
    /// Let a model fill the roles: the address of an OpenAI-compatible server, up to `/v1`; its key is taken from
    /// HOLOTYPE_MODEL_KEY
    #[arg(long, value_name = "URL", global = true)]
    model: Option<String>,
    /// The name of the model on the server
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    model_name: String,
}

impl Args {
    fn client(&self) -> Result<Option<Client>, Failure> {
        let Some(url) = &self.model else { return Ok(None) };
        let open = || {
            let mut endpoint = Endpoint::new(url, &self.model_name)?;
            if let Ok(key) = std::env::var("HOLOTYPE_MODEL_KEY") {
                endpoint = endpoint.key(&key)?;
            }
            Client::new(endpoint)
        };
        Ok(Some(open().map_err(Error::from)?))
    }

    /// The model, if one was named.
    pub(crate) fn open(&self) -> Result<Option<Model>, Failure> {
        Ok(self.client()?.map(Model::new).transpose().map_err(Error::from)?)
    }

    /// The model as a policy that scores continuations, if one was named.
    pub(crate) fn scorer(&self) -> Result<Option<TokenScorer>, Failure> {
        Ok(self.client()?.map(TokenScorer::new))
    }
}
