//! Calls of an OpenAI-compatible server: one request, bounded in time and size, tried again where that may help.
//!
//! Nothing is followed elsewhere: no redirect, no proxy of the environment, no compressed answer.

use crate::clock::{Clock, SystemClock};
use crate::endpoint::{CallLimits, Endpoint};
use crate::failure::{Failure, beginning};
use crate::retry;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of an answer with an error status that are read for the message.
const ERROR_BYTES: u64 = 4096;

/// A reply with its cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// The text.
    pub text: String,
    /// Tokens of the request, as the server counts them; 0 where it does not say.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
}

/// A client of one endpoint. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    limits: CallLimits,
    agent: ureq::Agent,
    clock: Arc<dyn Clock>,
}

/// A try that failed.
struct Tried {
    failure: Failure,
    /// Another try may succeed.
    passing: bool,
    /// The wait that the server asks for.
    wait: Option<Duration>,
}

impl Tried {
    fn last(failure: Failure) -> Tried {
        Tried { failure, passing: false, wait: None }
    }
}

impl Client {
    /// A client with the default limits.
    ///
    /// # Errors
    /// As [`Client::with`].
    pub fn new(endpoint: Endpoint) -> Result<Client, Failure> {
        Client::with(endpoint, CallLimits::default())
    }

    /// A client with these limits.
    ///
    /// # Errors
    /// [`Failure::Invalid`] for a limit of 0.
    pub fn with(endpoint: Endpoint, limits: CallLimits) -> Result<Client, Failure> {
        let times = [limits.connect, limits.attempt, limits.total].iter().all(|time| !time.is_zero());
        let counts = limits.tries > 0 && limits.batch > 0 && limits.reply_tokens > 0 && limits.response_bytes > 0;
        if !(times && counts) {
            return Err(Failure::Invalid("a limit of a call is 0; every limit is above 0".to_owned()));
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(limits.connect))
            .user_agent(concat!("holotype-models/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Client { endpoint, limits, agent: config.new_agent(), clock: Arc::new(SystemClock::default()) })
    }

    /// The same client on another clock.
    pub fn on_clock(mut self, clock: Arc<dyn Clock>) -> Client {
        self.clock = clock;
        self
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The limits of its calls.
    pub fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// The reply of the model to a message of the system and one of the user, as it wrote it.
    ///
    /// # Errors
    /// [`Failure`]: no answer within the limits, one that is not of the interface, or a reply that was cut off.
    pub fn chat(&self, system: &str, user: &str) -> Result<String, Failure> {
        self.say(system, user).map(|said| said.text)
    }

    /// As [`Client::chat`], with the tokens that the server counted.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub fn say(&self, system: &str, user: &str) -> Result<Said, Failure> {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let request = Map::from_iter([
            ("model".to_owned(), json!(self.endpoint.model())),
            ("messages".to_owned(), json!([message("system", system), message("user", user)])),
            ("temperature".to_owned(), json!(0)),
            ("max_tokens".to_owned(), json!(self.limits.reply_tokens)),
            ("stream".to_owned(), json!(false)),
        ]);
        let request = self.endpoint.with_parameters(request);
        let path = "chat/completions";
        let answer = self.call(path, &request)?;
        let wrong = |reason: String| self.wrong(path, reason);
        let choice = only_choice(&answer).map_err(wrong)?;
        match choice.get("finish_reason").and_then(Value::as_str) {
            None | Some("stop") => {}
            Some("length") => {
                let limit = self.limits.reply_tokens;
                return Err(wrong(format!("was cut off at {limit} tokens; ask for less, or raise `reply_tokens`")));
            }
            Some(other) => return Err(wrong(format!("ended for the reason {:?}", beginning(other)))),
        }
        let content = choice.get("message").and_then(|message| message.get("content")).and_then(Value::as_str);
        let text = content.ok_or_else(|| wrong("has no text in choices[0].message.content".to_owned()))?;
        let counted = |name: &str| answer.get("usage").and_then(|usage| usage.get(name)).and_then(Value::as_u64);
        let (input, output) = (counted("prompt_tokens"), counted("completion_tokens"));
        Ok(Said { text: text.to_owned(), input_tokens: input.unwrap_or(0), output_tokens: output.unwrap_or(0) })
    }

    /// An answer that is not of the interface.
    pub(crate) fn wrong(&self, path: &str, reason: impl Into<String>) -> Failure {
        Failure::Answer { url: self.endpoint.url(path), reason: reason.into() }
    }

    /// The answer to a request, as the object that it must be.
    pub(crate) fn call(&self, path: &str, request: &Value) -> Result<Map<String, Value>, Failure> {
        let body = request.to_string();
        if body.len() > self.limits.request_bytes {
            return Err(Failure::RequestTooLong { bytes: body.len(), limit: self.limits.request_bytes });
        }
        let url = self.endpoint.url(path);
        let answer = self.tries(&url, &body)?;
        match serde_json::from_slice(&answer) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(self.wrong(path, "is no JSON object")),
            Err(error) => Err(self.wrong(path, format!("is no JSON: {error}"))),
        }
    }

    fn tries(&self, url: &str, body: &str) -> Result<Vec<u8>, Failure> {
        let began = self.clock.now();
        let left = || self.limits.total.saturating_sub(self.clock.now().saturating_sub(began));
        let mut tries = 0;
        loop {
            tries += 1;
            // Never 0, which would mean no limit at all.
            let limit = self.limits.attempt.min(left()).max(Duration::from_millis(1));
            let Tried { failure, passing, wait } = match self.attempt(url, body, limit) {
                Ok(answer) => return Ok(answer),
                Err(tried) => tried,
            };
            if !passing {
                return Err(failure);
            }
            let last = Box::new(failure);
            if tries == self.limits.tries {
                return Err(Failure::GivenUp { tries, because: "which are all that `tries` allows".to_owned(), last });
            }
            let wait = retry::wait(tries, wait);
            if wait >= left() {
                let (wait, total) = (wait.as_secs_f64(), self.limits.total.as_secs_f64());
                let because = format!("since a wait of {wait:.1} s would not end within the total of {total:.1} s");
                return Err(Failure::GivenUp { tries, because, last });
            }
            self.clock.wait(wait);
        }
    }

    /// One exchange, from the connection to the last byte of the answer, within a time.
    fn attempt(&self, url: &str, body: &str, limit: Duration) -> Result<Vec<u8>, Tried> {
        let request = self.agent.post(url).config().timeout_global(Some(limit)).build();
        let mut request = request.header("Content-Type", "application/json").header("Accept", "application/json");
        if let Some(authorization) = self.endpoint.authorization() {
            request = request.header("Authorization", authorization);
        }
        let failed = |error| self.failed(url, error, limit);
        let mut response = request.send(body).map_err(failed)?;
        let status = response.status().as_u16();
        if status == 200 {
            let body = response.body_mut().with_config().limit(self.limits.response_bytes);
            return body.read_to_vec().map_err(failed);
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let wait = retry::asked(header("retry-after"), header("date"));
        // The status says enough if its text cannot be read.
        let text = response.body_mut().with_config().limit(ERROR_BYTES).lossy_utf8(true).read_to_string();
        let message = beginning(&self.endpoint.shown(text.unwrap_or_default().trim()));
        let failure = Failure::Status { url: url.to_owned(), status, message };
        Err(Tried { failure, passing: retry::is_passing(status), wait })
    }

    fn failed(&self, url: &str, error: ureq::Error, limit: Duration) -> Tried {
        let url = url.to_owned();
        let again = |failure| Tried { failure, passing: true, wait: None };
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect) => {
                again(Failure::TimedOut { url, limit: limit.min(self.limits.connect) })
            }
            ureq::Error::Timeout(_) => again(Failure::TimedOut { url, limit }),
            ureq::Error::BodyExceedsLimit(limit) => Tried::last(Failure::ResponseTooLong { url, limit }),
            error @ (ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::HostNotFound) => {
                again(Failure::Connection { url, reason: error.to_string() })
            }
            error => Tried::last(Failure::Answer { url, reason: format!("cannot be read: {error}") }),
        }
    }
}

/// The only choice of a completion, or what is wrong.
pub(crate) fn only_choice(answer: &Map<String, Value>) -> Result<&Value, String> {
    match answer.get("choices").and_then(Value::as_array).map(Vec::as_slice) {
        Some([choice]) => Ok(choice),
        Some(choices) => Err(format!("has {} choices, and one was asked for", choices.len())),
        None => Err("has no list `choices`".to_owned()),
    }
}
