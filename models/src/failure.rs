//! The reasons for which a model gives no answer that can be used.

use std::time::Duration;

/// Why a call gave nothing that can be used. No message holds the key of the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The endpoint, a prompt or an option cannot be used as given.
    #[error("{0}")]
    Invalid(String),
    /// The request is longer than the limit.
    #[error("the request has {bytes} bytes, and {limit} are allowed; ask about less, or raise `request_bytes`")]
    RequestTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The server could not be reached, or the connection broke.
    #[error("no connection to {url}: {reason}")]
    Connection {
        /// The address of the call.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("{url} did not answer within {:.1} s; raise `attempt` if the model is that slow", limit.as_secs_f64())]
    TimedOut {
        /// The address of the call.
        url: String,
        /// The time it was given.
        limit: Duration,
    },
    /// The server answered with an error.
    #[error("{url} answered with status {status}: {message}")]
    Status {
        /// The address of the call.
        url: String,
        /// The status of HTTP.
        status: u16,
        /// The beginning of the answer.
        message: String,
    },
    /// The answer is longer than the limit. It was not read to its end.
    #[error("the answer of {url} has more than {limit} bytes; nothing of it is used")]
    ResponseTooLong {
        /// The address of the call.
        url: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The answer is not one of the interface.
    #[error("the answer of {url} {reason}")]
    Answer {
        /// The address of the call.
        url: String,
        /// The part of it that is wrong.
        reason: String,
    },
    /// The text of the model is not what its role asks for.
    #[error("the model's reply {reason}: {reply:?}")]
    Reply {
        /// The fault.
        reason: String,
        /// The beginning of the reply.
        reply: String,
    },
    /// Every try failed, or no time was left for another.
    #[error("given up after {tries} tries, {because}; the last: {last}")]
    GivenUp {
        /// The number of tries.
        tries: u32,
        /// Why there was no further one.
        because: String,
        /// The failure of the last try.
        last: Box<Failure>,
    },
}

impl Failure {
    /// A reply that is not what its role asks for.
    pub(crate) fn reply(reason: impl Into<String>, reply: &str) -> Failure {
        Failure::Reply { reason: reason.into(), reply: beginning(reply) }
    }
}

impl From<Failure> for holotype::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Reply { .. } => holotype::Error::Reply(failure.to_string()),
            _ => holotype::Error::Invalid(failure.to_string()),
        }
    }
}

/// The beginning of a text, for a message.
pub(crate) fn beginning(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
