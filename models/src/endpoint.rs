//! The address of a model and the limits of a call.

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// The address of a model: a URL as of `http://127.0.0.1:8000/v1`, below which `chat/completions`, `embeddings` and
/// `completions` stand, with the name of the model there.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    model: String,
    key: Option<String>,
    parameters: Map<String, Value>,
}

impl Endpoint {
    /// The model of that name at a URL.
    ///
    /// # Errors
    /// [`Failure::Invalid`] for a URL that is not `http://HOST…`, or `https://HOST…` with the feature `tls`; for one
    /// with a query, a fragment, a user or a blank; and for an empty model.
    pub fn new(url: &str, model: &str) -> Result<Endpoint, Failure> {
        let wrong = |why: &str| Err(Failure::Invalid(format!("the URL {url:?} {why}; expected http://HOST[:PORT]/v1")));
        let rest = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => rest,
            (_, Some(rest)) if cfg!(feature = "tls") => rest,
            (_, Some(_)) => return wrong("needs the feature `tls` of holotype-models"),
            _ => return wrong("names no protocol"),
        };
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() || host.starts_with(':') {
            return wrong("names no host");
        }
        if host.contains('@') || url.contains(['?', '#']) {
            return wrong("has a user, a query or a fragment");
        }
        if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return wrong("has a blank");
        }
        if model.trim().is_empty() {
            return Err(Failure::Invalid("the name of the model is empty; the server lists its models".to_owned()));
        }
        Ok(Endpoint {
            url: url.trim_end_matches('/').to_owned(),
            model: model.to_owned(),
            key: None,
            parameters: Map::new(),
        })
    }

    /// Sends a key with each call, as `Authorization: Bearer KEY`. With http anybody on the way can read it.
    ///
    /// # Errors
    /// [`Failure::Invalid`] for a key that no header can hold.
    pub fn key(mut self, key: &str) -> Result<Endpoint, Failure> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::Invalid(
                "the key of the endpoint is empty or has bytes other than printable ASCII; is there a line feed at its \
                 end?"
                    .to_owned(),
            ));
        }
        self.key = Some(key.to_owned());
        Ok(self)
    }

    /// Sets a member of each chat request, or leaves it out where the value is null: servers differ in what they take,
    /// such as `max_completion_tokens` in place of `max_tokens`, `seed`, or `chat_template_kwargs`.
    ///
    /// # Errors
    /// [`Failure::Invalid`] for the members that a role depends on: `model`, `messages`, `stream` and `n`.
    pub fn parameter(mut self, name: &str, value: Value) -> Result<Endpoint, Failure> {
        if ["model", "messages", "stream", "n"].contains(&name) {
            return Err(Failure::Invalid(format!("the member {name:?} of a chat request is not yours to set")));
        }
        self.parameters.insert(name.to_owned(), value);
        Ok(self)
    }

    /// A chat request with the parameters of this endpoint.
    pub(crate) fn with_parameters(&self, mut request: Map<String, Value>) -> Value {
        for (name, value) in &self.parameters {
            match value {
                Value::Null => drop(request.shift_remove(name)),
                value => drop(request.insert(name.clone(), value.clone())),
            }
        }
        Value::Object(request)
    }

    /// The address of a call.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.url)
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The text of an answer as it may be shown: without the key, which some servers repeat, and without characters
    /// that a terminal or a log would obey.
    pub(crate) fn shown(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => text.replace(key, "(the key)"),
            None => text.to_owned(),
        };
        let is_obeyed = |c: char| {
            c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        text.chars().map(|c| if is_obeyed(c) { ' ' } else { c }).collect()
    }

    /// The value of the header that authorises.
    pub(crate) fn authorization(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("Bearer {key}"))
    }
}

impl fmt::Debug for Endpoint {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_some() { "set" } else { "none" };
        f.debug_struct("Endpoint").field("url", &self.url).field("model", &self.model).field("key", &key).finish()
    }
}

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The longest time for a connection.
    pub connect: Duration,
    /// The longest time for one try, from its beginning to the last byte of the answer.
    pub attempt: Duration,
    /// The longest time for a call: all its tries and the waits between them.
    pub total: Duration,
    /// Tries of a call.
    pub tries: u32,
    /// Bytes of a request.
    pub request_bytes: usize,
    /// Bytes of an answer.
    pub response_bytes: u64,
    /// Tokens of a reply (`max_tokens`); a reply that is cut off there is refused.
    pub reply_tokens: u32,
    /// Texts that are embedded by one call.
    pub batch: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits {
            connect: Duration::from_secs(5),
            attempt: Duration::from_secs(60),
            total: Duration::from_secs(120),
            tries: 4,
            request_bytes: 1 << 20,
            response_bytes: 8 << 20,
            reply_tokens: 2048,
            batch: 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_host_and_a_model_and_hides_its_key() {
        let endpoint = Endpoint::new("http://127.0.0.1:8000/v1/", "m").unwrap().key("sk-secret").unwrap();
        assert_eq!(endpoint.url("embeddings"), "http://127.0.0.1:8000/v1/embeddings");
        assert!(!format!("{endpoint:?}").contains("secret"));
        for (url, why) in [
            ("127.0.0.1:8000", "no protocol"),
            ("ftp://x/v1", "no protocol"),
            ("http:///v1", "no host"),
            ("http://:80/v1", "no host"),
            ("http://me:pw@x/v1", "a user"),
            ("http://x/v1?key=1", "a query"),
            ("http://x /v1", "a blank"),
        ] {
            let error = Endpoint::new(url, "m").unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        assert!(Endpoint::new("http://x/v1", " ").is_err());
        assert_eq!(Endpoint::new("https://x/v1", "m").is_ok(), cfg!(feature = "tls"));
        for key in ["", "a\n", "a b", "é"] {
            assert!(Endpoint::new("http://x/v1", "m").unwrap().key(key).is_err(), "{key:?}");
        }
    }
}
