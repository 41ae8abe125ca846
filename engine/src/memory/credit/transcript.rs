//! Runs as text, as policies write them (HiMPO 3.1), and the match of answers (Table 2).
//!
//! ```text
//! <mem>Oslo</mem><think>now the year</think><tool_call>search</tool_call>
//! <tool_response>She was born in 1994.</tool_response>
//! <mem>Oslo 1994</mem> … <answer>1994</answer>
//! ```
//!
//! A step begins with `<mem>`; what stands before the first is a step without a memory. Text between the marks is
//! thought aloud, and joins `<think>`. Answers match as in SQuAD: lower case, without articles, signs and repeated
//! blanks.

use super::run::RunStep;
use crate::{Error, Result};
use std::collections::HashMap;

/// The marks, each with the part of a step that it holds; several names for what tools return are in use.
const MARKS: [(&str, Part); 8] = [
    ("mem", Part::Memory),
    ("think", Part::Think),
    ("tool_call", Part::Call),
    ("search", Part::Call),
    ("tool_response", Part::Observation),
    ("information", Part::Observation),
    ("observation", Part::Observation),
    ("answer", Part::Answer),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Memory,
    Think,
    Call,
    Observation,
    Answer,
}

/// A run read from its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// The steps.
    pub steps: Vec<RunStep>,
    /// Its answer, if it gave one.
    pub answer: Option<String>,
}

impl Transcript {
    /// Reads a run.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a mark that is opened and not closed, with its byte.
    ///
    /// ```
    /// use holotype::credit::Transcript;
    ///
    /// let run = Transcript::parse("<mem>Oslo</mem><tool_call>year</tool_call><answer>1994</answer>")?;
    /// assert_eq!((run.steps[0].memory.as_str(), run.answer.as_deref()), ("Oslo", Some("1994")));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Transcript> {
        let mut run = Transcript::default();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let opened = MARKS.iter().filter_map(|(name, part)| Some((rest.find(&format!("<{name}>"))?, *name, *part)));
            let Some((from, name, part)) = opened.min_by_key(|(from, ..)| *from) else {
                run.add(Part::Think, rest);
                break;
            };
            run.add(Part::Think, &rest[..from]);
            let begin = from + name.len() + 2;
            let close = format!("</{name}>");
            let Some(len) = rest[begin..].find(&close) else {
                return Err(Error::Invalid(format!("the <{name}> at byte {} of a run is not closed", at + from)));
            };
            run.add(part, &rest[begin..begin + len]);
            at += begin + len + close.len();
        }
        Ok(run)
    }

    fn add(&mut self, part: Part, text: &str) {
        let text = text.trim();
        if part == Part::Answer {
            self.answer = Some(text.to_owned());
            return;
        }
        if part == Part::Memory {
            self.steps.push(RunStep { memory: text.to_owned(), ..RunStep::default() });
            return;
        }
        if text.is_empty() {
            return;
        }
        if self.steps.is_empty() {
            self.steps.push(RunStep::default());
        }
        let Some(step) = self.steps.last_mut() else { return };
        let held = match part {
            Part::Call => &mut step.call,
            Part::Observation => &mut step.observation,
            Part::Think | Part::Memory | Part::Answer => &mut step.think,
        };
        if !held.is_empty() {
            held.push('\n');
        }
        held.push_str(text);
    }
}

/// True if an answer is one of the right ones, letter by letter after normalisation (EM).
pub fn exact_match(answer: &str, right: &[&str]) -> bool {
    right.iter().any(|right| normal(answer) == normal(right))
}

/// The best F1 of an answer's words with those of a right one, from 0 to 1.
///
/// ```
/// use holotype::credit::{exact_match, word_f1};
/// assert!(exact_match("The Oslo.", &["oslo"]));
/// assert_eq!(word_f1("in Oslo", &["Oslo, Norway"]), 0.5);
/// ```
pub fn word_f1(answer: &str, right: &[&str]) -> f64 {
    right.iter().map(|right| f1(&normal(answer), &normal(right))).fold(0.0, f64::max)
}

fn f1(answer: &[String], right: &[String]) -> f64 {
    if answer.is_empty() || right.is_empty() {
        return f64::from(u8::from(answer == right));
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    right.iter().for_each(|word| *left.entry(word).or_default() += 1);
    let mut common = 0;
    for word in answer {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    2.0 * f64::from(common) / (answer.len() + right.len()) as f64
}

/// The words of an answer, in lower case, without signs and articles.
fn normal(text: &str) -> Vec<String> {
    let kept: String = text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    kept.split_whitespace().filter(|word| !matches!(*word, "a" | "an" | "the")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_step_by_step() {
        let text = "Hm. <think>first</think><tool_call>city</tool_call>\n<tool_response>Oslo.</tool_response>\n\
                    <mem>Oslo</mem> aloud <search>year</search><information>1994</information>\
                    <mem></mem><answer> 1994 </answer>";
        let run = Transcript::parse(text).unwrap();
        assert_eq!(run.answer.as_deref(), Some("1994"));
        let [first, second, third] = run.steps.as_slice() else { panic!("{run:?}") };
        assert_eq!((first.memory.as_str(), first.think.as_str(), first.call.as_str()), ("", "Hm.\nfirst", "city"));
        assert_eq!(first.observation, "Oslo.");
        let texts = [&second.memory, &second.think, &second.call, &second.observation].map(String::as_str);
        assert_eq!(texts, ["Oslo", "aloud", "year", "1994"]);
        assert_eq!(*third, RunStep::default());
        let refused = Transcript::parse("<mem>Oslo</mem><think>").unwrap_err().to_string();
        assert!(refused.contains("<think> at byte 15"), "{refused}");
        assert_eq!(Transcript::parse("").unwrap(), Transcript::default());
    }

    #[test]
    fn answers_match_as_in_squad() {
        assert!(exact_match("the  Eiffel-Tower!", &["x", "EiffelTower"]));
        assert!(!exact_match("Eiffel", &["Eiffel Tower"]));
        assert_eq!(word_f1("a b b", &["b b c"]), 0.8);
        assert_eq!((word_f1("", &[""]), word_f1("x", &[]), word_f1("", &["x"])), (1.0, 0.0, 0.0));
    }
}
