//! Log-probabilities of a given text, for the credit of memory writes (HiMPO eqs 5 and 9).
//!
//! The server echoes prompt and continuation with the text and the log-probability of each token (`echo`, `logprobs`,
//! as vLLM and llama.cpp have it). The texts are aligned with what was sent, and what does not align is refused: a
//! score of other tokens would be noise that looks like credit. The one token that the server must generate is dropped.

use crate::client::{Client, only_choice};
use crate::failure::Failure;
use holotype::credit::{Scorer, Scoring, Template};
use serde_json::{Map, Value, json};
use std::ops::Range;

const PATH: &str = "completions";
/// Prompts that one call scores.
const BATCH: usize = 32;

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
    /// [`Failure::Answer`] where the tokens are not those of both texts, or a score is no log-probability; otherwise as
    /// a call fails.
    pub fn token_log_probs(&self, prompt: &str, continuation: &str) -> Result<Vec<f64>, Failure> {
        let text = format!("{prompt}{continuation}");
        let answer = self.client.call(PATH, &self.request(&json!(text)))?;
        read(&answer, &text, prompt.len()).map_err(|why| self.client.wrong(PATH, why))
    }

    /// As [`TokenScorer::token_log_probs`] for several prompts with their continuations, 32 in a call.
    ///
    /// # Errors
    /// As [`TokenScorer::token_log_probs`].
    pub fn token_log_probs_of_all(&self, pairs: &[(String, &str)]) -> Result<Vec<Vec<f64>>, Failure> {
        let mut found = Vec::with_capacity(pairs.len());
        for batch in pairs.chunks(BATCH) {
            let texts: Vec<String> =
                batch.iter().map(|(prompt, continuation)| format!("{prompt}{continuation}")).collect();
            let answer = self.client.call(PATH, &self.request(&json!(texts)))?;
            // A server that takes one prompt alone is asked for each.
            let Ok(choices) = in_order(&answer, texts.len()) else {
                for (prompt, continuation) in batch {
                    found.push(self.token_log_probs(prompt, continuation)?);
                }
                continue;
            };
            for ((text, (prompt, _)), choice) in texts.iter().zip(batch).zip(choices) {
                let one = Map::from_iter([("choices".to_owned(), json!([choice]))]);
                found.push(read(&one, text, prompt.len()).map_err(|why| self.client.wrong(PATH, why))?);
            }
        }
        Ok(found)
    }

    fn request(&self, prompt: &Value) -> Value {
        json!({
            "model": self.client.endpoint().model(),
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
            "echo": true,
            "logprobs": 1,
        })
    }
}

/// The choices of an answer in the order of the prompts, one for each.
fn in_order(answer: &Map<String, Value>, count: usize) -> Result<Vec<&Value>, String> {
    let choices = answer.get("choices").and_then(Value::as_array).ok_or("has no list `choices`")?;
    let mut placed: Vec<Option<&Value>> = vec![None; count];
    for (at, choice) in choices.iter().enumerate() {
        let index = choice.get("index").map_or(Some(at as u64), Value::as_u64);
        let place = index.and_then(|index| placed.get_mut(usize::try_from(index).ok()?));
        let place = place.ok_or_else(|| format!("has a choice with an `index` beyond {count} prompts"))?;
        if place.replace(choice).is_some() {
            return Err("has two choices with one `index`".to_owned());
        }
    }
    placed
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| format!("has {} choices for {count} prompts", choices.len()))
}

impl Scorer for TokenScorer {
    fn log_probs(&self, scoring: &Scoring<'_>, template: &Template) -> holotype::Result<Vec<f64>> {
        Ok(self.token_log_probs(&scoring.prompt(template), scoring.continuation)?)
    }

    fn log_probs_of_all(&self, scorings: &[Scoring<'_>], template: &Template) -> holotype::Result<Vec<Vec<f64>>> {
        let pairs: Vec<(String, &str)> =
            scorings.iter().map(|scoring| (scoring.prompt(template), scoring.continuation)).collect();
        Ok(self.token_log_probs_of_all(&pairs)?)
    }
}

/// The scores of the tokens that reach into the bytes of a text from `begin` on, or what is wrong. Places of tokens are
/// found by their texts: servers count a mark of the beginning, and characters of several tokens, each in its own way.
fn read(answer: &Map<String, Value>, text: &str, begin: usize) -> Result<Vec<f64>, String> {
    let scored = only_choice(answer)?.get("logprobs").ok_or("has no `logprobs`; does the server support `echo`?")?;
    let list = |name: &str| scored.get(name).and_then(Value::as_array).ok_or(format!("has no list logprobs.{name}"));
    let (scores, tokens) = (list("token_logprobs")?, list("tokens")?);
    if scores.len() != tokens.len() {
        return Err(format!("has {} scores for {} tokens", scores.len(), tokens.len()));
    }
    let tokens: Option<Vec<&str>> = tokens.iter().map(Value::as_str).collect();
    let places = aligned(text, &tokens.ok_or("has a token that is no text")?)?;
    let mut found = Vec::new();
    for (at, (score, place)) in scores.iter().zip(&places).enumerate() {
        if place.is_empty() || place.end <= begin {
            continue;
        }
        let score = score.as_f64().filter(|score| score.is_finite() && *score <= 0.0);
        found.push(score.ok_or_else(|| format!("has a score of token {at} that is no log-probability"))?);
    }
    let crossing = places.iter().filter(|place| place.start < begin && place.end > begin).count();
    if crossing > 1 {
        return Err("divides a character at the border of prompt and continuation; end the prompt elsewhere".to_owned());
    }
    Ok(found)
}

/// The bytes of the text that each token is. Marks before the text and what was generated behind it are empty places;
/// the tokens of a character that is divided among several have the place of all of them.
fn aligned(text: &str, tokens: &[&str]) -> Result<Vec<Range<usize>>, String> {
    let refused = |at: usize, token: &str| {
        let rest: String = text.get(at..).unwrap_or_default().chars().take(20).collect();
        format!("has the token {token:?} where the text goes on with {rest:?}; its tokens are not those of the text")
    };
    let mut places: Vec<Range<usize>> = Vec::with_capacity(tokens.len());
    let (mut at, mut nth) = (0, 0);
    while let Some(token) = tokens.get(nth) {
        if at == text.len() {
            places.push(at..at);
            nth += 1;
        } else if let Some(end) = end_of(text, at, token) {
            places.push(at..end);
            at = end;
            nth += 1;
        } else if is_divided(token) {
            let count = tokens[nth..].iter().take_while(|token| is_divided(token)).count();
            let end = end_of_divided(text, at, count, tokens.get(nth + count).copied());
            let is_replaced = tokens[nth..nth + count].iter().any(|token| token.contains('\u{fffd}'));
            let end = end.filter(|end| !is_replaced || !text[at..*end].is_ascii()).ok_or_else(|| refused(at, token))?;
            places.extend(std::iter::repeat_n(at..end, count));
            (at, nth) = (end, nth + count);
        } else if at == 0 {
            // A mark of the beginning, such as `<s>`.
            places.push(0..0);
            nth += 1;
        } else {
            return Err(refused(at, token));
        }
    }
    let behind = places.iter().filter(|place| place.start == text.len()).count();
    match at == text.len() && behind <= 1 {
        true => Ok(places),
        false if at < text.len() => Err(refused(at, "")),
        false => Err(format!("has {behind} tokens behind the text; one was asked for")),
    }
}

/// The end of a token that stands at a byte of the text; decoding one token alone may have lost the blank before it.
fn end_of(text: &str, at: usize, token: &str) -> Option<usize> {
    let rest = text.get(at..)?;
    if token.is_empty() {
        return None;
    }
    let blank = usize::from(rest.starts_with(' ') && !rest.starts_with(token));
    rest.get(blank..)?.starts_with(token).then_some(at + blank + token.len())
}

/// True for the text of a token that is a part of a character: nothing, signs of replacement, or a byte.
fn is_divided(token: &str) -> bool {
    let is_byte = token.len() == 6 && token.starts_with("<0x") && token.ends_with('>');
    token.chars().all(|c| c == '\u{fffd}') || is_byte || token.starts_with("bytes:\\x")
}

/// The end of the characters that so many tokens share: the first place where the next token, or the end, stands.
fn end_of_divided(text: &str, at: usize, count: usize, next: Option<&str>) -> Option<usize> {
    let rest = text.get(at..)?;
    // The bytes of a blank or a line end may be tokens of their own, too.
    let ends = rest.char_indices().map(|(from, c)| at + from + c.len_utf8());
    let ends = ends.take_while(|end| *end <= at + 4 * count);
    let mut ends = ends.filter(|end| *end == text.len() || next.is_some_and(|next| end_of(text, *end, next).is_some()));
    ends.find(|end| *end - at >= count)
}

#[cfg(test)]
mod tests {
    use super::{aligned, read};
    use serde_json::{Value, json};

    fn answer(tokens: &Value, scores: &Value) -> Value {
        json!({"choices": [{"logprobs": {"token_logprobs": scores, "tokens": tokens}}]})
    }

    fn scores(tokens: &Value, scores: &Value) -> Result<Vec<f64>, String> {
        read(answer(tokens, scores).as_object().unwrap(), "Ask yes 1", 4)
    }

    #[test]
    fn tokens_of_the_continuation_are_told_by_their_texts() {
        // `Ask ` and `yes 1`, then the generated token, with a mark of the beginning or without one.
        let plain = scores(&json!(["Ask ", "yes ", "1", "!"]), &json!([null, -0.5, -1.0, -2.0]));
        assert_eq!(plain.unwrap(), [-0.5, -1.0]);
        let marked = scores(&json!(["<s>", "Ask ", "yes ", "1", "!"]), &json!([null, -3.0, -0.5, -1.0, -2.0]));
        assert_eq!(marked.unwrap(), [-0.5, -1.0]);
        let lost_blanks = scores(&json!(["<s>", "Ask", "yes", "1", "!"]), &json!([null, -3.0, -0.5, -1.0, -2.0]));
        assert_eq!(lost_blanks.unwrap(), [-0.5, -1.0]);
        // A token that begins in the prompt and ends in the continuation is one of it.
        let crossing = scores(&json!(["As", "k yes 1", "!"]), &json!([null, -0.25, -2.0]));
        assert_eq!(crossing.unwrap(), [-0.25]);
        for (tokens, given) in [
            (json!(["Ask ", "yes ", "1"]), json!([null, -0.5])),
            (json!(["Ask ", "yes "]), json!([null, -0.5])),
            (json!(["Ask ", "yes ", "2", "!"]), json!([null, -0.5, -1.0, -2.0])),
            (json!(["Ask ", "yes ", "1", "!", "!"]), json!([null, -0.5, -1.0, -2.0, -2.0])),
            (json!(["Ask ", "yes ", "1", "!"]), json!([null, 0.5, -1.0, -2.0])),
            (json!(["Ask ", "yes ", "1", "!"]), json!([null, "x", -1.0, -2.0])),
            (json!(["Ask ", 7, "1", "!"]), json!([null, -1.0, -1.0, -2.0])),
            (json!([]), json!([])),
        ] {
            assert!(scores(&tokens, &given).is_err(), "{tokens} {given}");
        }
        assert!(read(json!({"choices": [{}]}).as_object().unwrap(), "x", 0).is_err());
    }

    #[test]
    fn characters_of_several_tokens_move_nothing_behind_them() {
        let text = "Grüße 你好, ok";
        let tokens = ["<s>", "Gr", "\u{fffd}", "\u{fffd}", "ße ", "<0xE4>", "<0xBD>", "<0xA0>", "好", ", ok", "."];
        let places = aligned(text, &tokens).unwrap();
        let texts: Vec<&str> = places.iter().map(|place| &text[place.clone()]).collect();
        assert_eq!(texts, ["", "Gr", "ü", "ü", "ße ", "你", "你", "你", "好", ", ok", ""]);
        let end = aligned("a你", &["a", "\u{fffd}", "\u{fffd}", "", "x"]).unwrap();
        assert_eq!(end, [0..1, 1..4, 1..4, 1..4, 4..4]);
        assert!(aligned("ab", &["a", "\u{fffd}\u{fffd}", "c"]).is_err());
        // The border inside of a character that is divided cannot be told.
        let tokens = json!(["a", "<0xC3>", "<0xBC>", "b", "c"]);
        let answer = answer(&tokens, &json!([null, -1.0, -1.0, -1.0, -1.0]));
        assert_eq!(read(answer.as_object().unwrap(), "aüb", 3).unwrap(), [-1.0]);
        assert!(read(answer.as_object().unwrap(), "aüb", 2).is_err());
    }
}
