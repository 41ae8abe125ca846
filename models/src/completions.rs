//! Log-probabilities of a given text, for the credit of memory writes (HiMPO eqs 5 and 9).
//!
//! The server echoes prompt and continuation with the log-probability and the place of each token (`echo`, `logprobs`,
//! as vLLM and llama.cpp have it). The one token that it must generate is dropped.

use crate::client::{Client, only_choice};
use crate::failure::Failure;
use holotype::credit::{Scorer, Scoring, Template};
use serde_json::{Map, Value, json};

const PATH: &str = "completions";

/// A model that scores the tokens of a continuation.
#[derive(Debug, Clone)]
pub struct TokenScorer {
    client: Client,
}

impl TokenScorer {
    /// The model behind a client.
    pub fn new(client: Client) -> TokenScorer {
        TokenScorer { client }
    }

    /// The log-probability of each token of a continuation after a prompt. A token on the border counts to the
    /// continuation.
    ///
    /// # Errors
    /// [`Failure::Answer`] where the tokens do not cover both texts, or a score is no log-probability; otherwise as a
    /// call fails.
    pub fn token_log_probs(&self, prompt: &str, continuation: &str) -> Result<Vec<f64>, Failure> {
        let request = json!({
            "model": self.client.endpoint().model(),
            "prompt": format!("{prompt}{continuation}"),
            "max_tokens": 1,
            "temperature": 0,
            "echo": true,
            "logprobs": 1,
        });
        let answer = self.client.call(PATH, &request)?;
        let (begin, len) = (prompt.chars().count() as u64, continuation.chars().count() as u64);
        read(&answer, begin, begin + len).map_err(|why| self.client.wrong(PATH, why))
    }
}

impl Scorer for TokenScorer {
    fn log_probs(&self, scoring: &Scoring<'_>, template: &Template) -> holotype::Result<Vec<f64>> {
        Ok(self.token_log_probs(&scoring.prompt(template), scoring.continuation)?)
    }
}

/// The scores of the tokens that reach into the characters from `begin` to `end`, or what is wrong.
fn read(answer: &Map<String, Value>, begin: u64, end: u64) -> Result<Vec<f64>, String> {
    let scored = only_choice(answer)?.get("logprobs").ok_or("has no `logprobs`; does the server support `echo`?")?;
    let list = |name: &str| scored.get(name).and_then(Value::as_array).ok_or(format!("has no list logprobs.{name}"));
    let (scores, offsets) = (list("token_logprobs")?, list("text_offset")?);
    if scores.len() != offsets.len() {
        return Err(format!("has {} scores for {} tokens", scores.len(), offsets.len()));
    }
    let offsets: Option<Vec<u64>> = offsets.iter().map(Value::as_u64).collect();
    let offsets = offsets.filter(|offsets| offsets.is_sorted() && offsets.first() == Some(&0));
    let offsets = offsets.ok_or("has places of tokens that do not begin at 0 and rise")?;
    if offsets.last().is_none_or(|last| *last < end) {
        return Err("has tokens that do not cover the text; the generated one is missing".to_owned());
    }
    let mut found = Vec::new();
    for (at, (score, offset)) in scores.iter().zip(&offsets).enumerate() {
        let next = offsets.get(at + 1).copied().unwrap_or(u64::MAX);
        if *offset >= end || next <= begin {
            continue;
        }
        let score = score.as_f64().filter(|score| score.is_finite() && *score <= 0.0);
        found.push(score.ok_or_else(|| format!("has a score of token {at} that is no log-probability"))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::read;
    use serde_json::json;

    #[test]
    fn tokens_of_the_continuation_are_told_by_their_places() {
        let answer = |scores: serde_json::Value, offsets: serde_json::Value| {
            let logprobs = json!({"token_logprobs": scores, "text_offset": offsets});
            json!({"choices": [{"logprobs": logprobs}]})
        };
        let read = |answer: serde_json::Value| read(answer.as_object().unwrap(), 4, 9);
        // `Ask ` and `yes 1`, then the generated token.
        let whole = answer(json!([null, -0.5, -1.0, -2.0]), json!([0, 4, 8, 9]));
        assert_eq!(read(whole).unwrap(), [-0.5, -1.0]);
        // A token that begins in the prompt and ends in the continuation is one of it.
        assert_eq!(read(answer(json!([null, -0.25, -2.0]), json!([0, 3, 9]))).unwrap(), [-0.25]);
        for (scores, offsets) in [
            (json!([null, -0.5]), json!([0, 4, 9])),
            (json!([null, -0.5, -1.0]), json!([0, 4, 8])),
            (json!([null, 0.5, -1.0]), json!([0, 4, 9])),
            (json!([null, "x", -1.0]), json!([0, 4, 9])),
            (json!([null, -0.5, -1.0]), json!([4, 0, 9])),
            (json!([null, -0.5, -1.0]), json!([1, 4, 9])),
            (json!([]), json!([])),
        ] {
            assert!(read(answer(scores.clone(), offsets.clone())).is_err(), "{scores} {offsets}");
        }
        assert!(super::read(json!({"choices": [{}]}).as_object().unwrap(), 0, 1).is_err());
    }
}
