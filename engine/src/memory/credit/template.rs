//! Prompts for log-probabilities: frozen templates with a version and a hash (A.4).
//!
//! The distribution of `log rho` holds for one template only, so a template never changes: another text is another
//! version, with another hash, and scores of two templates do not mix ([`Refusal::TwoTemplates`]).
//!
//! | placeholder | stands for |
//! |---|---|
//! | `{question}` | `q` |
//! | `{memory}` | the memory slot: `m_{t-1}`, or what replaces it (eq. 5) |
//! | `{think}` `{call}` `{observation}` | the interaction before the write; a line of one that is empty is left out |
//! | `{outcome}` | `z*`, in the hindsight prompt only (eq. 9) |
//!
//! [`Refusal::TwoTemplates`]: super::Refusal::TwoTemplates

use crate::{Error, Result};
use std::borrow::Cow;

/// The parts of a pre-write state `H_t` (eq. 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreWriteState<'a> {
    /// `q`.
    pub question: &'a str,
    /// The memory slot.
    pub memory: &'a str,
    /// `r_{t-1}`, empty before the first step.
    pub think: &'a str,
    /// `c_{t-1}`, empty before the first step.
    pub call: &'a str,
    /// `o_{t-1}`, empty before the first step.
    pub observation: &'a str,
}

/// The two prompts of a write, to which a policy gives log-probabilities of a continuation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    version: Cow<'static, str>,
    answer: Cow<'static, str>,
    hindsight: Cow<'static, str>,
}

/// The first version.
const VERSION: &str = "himpo-1";
const ANSWER: &str = "Question: {question}\n<mem>{memory}</mem>\n<think>{think}</think>\n\
                      <tool_call>{call}</tool_call>\n<observation>{observation}</observation>\nAnswer: ";
const HINDSIGHT: &str = "Question: {question}\n<mem>{memory}</mem>\n<think>{think}</think>\n\
                         <tool_call>{call}</tool_call>\n<observation>{observation}</observation>\n\
                         The right answer is: {outcome}\n<mem>";
/// Placeholders of an interaction, whose line is left out where there is none.
const INTERACTION: [&str; 3] = ["{think}", "{call}", "{observation}"];

impl Default for Template {
    fn default() -> Self {
        Template { version: VERSION.into(), answer: ANSWER.into(), hindsight: HINDSIGHT.into() }
    }
}

impl Template {
    /// A template of the caller's, with a version that names it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a version that is empty or has a `:`, and for a prompt without a placeholder it needs:
    /// both need `{question}` and `{memory}`, the hindsight prompt also `{outcome}`, which the other must not have.
    pub fn new(version: impl Into<String>, answer: impl Into<String>, hindsight: impl Into<String>) -> Result<Self> {
        let (version, answer, hindsight) = (version.into(), answer.into(), hindsight.into());
        let refused = |why: String| Err(Error::Invalid(format!("the scoring template {version:?} {why}")));
        if version.is_empty() || version.contains(':') {
            return refused("needs a version without `:`".to_owned());
        }
        for (name, prompt, outcome) in [("answer", &answer, false), ("hindsight", &hindsight, true)] {
            for placeholder in ["{question}", "{memory}"] {
                if !prompt.contains(placeholder) {
                    return refused(format!("has no {placeholder} in its {name} prompt"));
                }
            }
            if prompt.contains("{outcome}") != outcome {
                return refused(format!("has {{outcome}} in the wrong prompt, or not at all: the {name} prompt"));
            }
        }
        Ok(Template { version: version.into(), answer: answer.into(), hindsight: hindsight.into() })
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// BLAKE3 over the version and both prompts, each with its length.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for part in [&self.version, &self.answer, &self.hindsight] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The name that lines carry as `template`: the version, and the first 16 hex digits of the hash.
    pub fn id(&self) -> String {
        let digits: String = self.hash().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}:{digits}", self.version)
    }

    /// The prompt whose continuation is the target outcome (eq. 5).
    pub fn answer(&self, state: &PreWriteState<'_>) -> String {
        fill(&self.answer, state, "")
    }

    /// The prompt whose continuation is the written memory (eq. 9).
    pub fn hindsight(&self, state: &PreWriteState<'_>, outcome: &str) -> String {
        fill(&self.hindsight, state, outcome)
    }
}

/// Fills the placeholders of a prompt, each once: what a text says is no placeholder.
fn fill(prompt: &str, state: &PreWriteState<'_>, outcome: &str) -> String {
    let values = [
        ("{question}", state.question),
        ("{memory}", state.memory),
        ("{think}", state.think),
        ("{call}", state.call),
        ("{observation}", state.observation),
        ("{outcome}", outcome),
    ];
    let is_left_out = |line: &str| {
        let mut held = values.iter().filter(|(name, _)| INTERACTION.contains(name) && line.contains(name)).peekable();
        held.peek().is_some() && held.all(|(_, value)| value.is_empty())
    };
    let mut filled = String::with_capacity(prompt.len() + state.memory.len() + state.observation.len());
    for line in prompt.split_inclusive('\n').filter(|line| !is_left_out(line)) {
        let mut rest = line;
        while let Some(at) = rest.find('{') {
            let (before, after) = rest.split_at(at);
            filled.push_str(before);
            match values.iter().find(|(name, _)| after.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &after[name.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &after[1..];
                }
            }
        }
        filled.push_str(rest);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: PreWriteState<'_> =
        PreWriteState { question: "Where?", memory: "In {call}.", think: "", call: "search", observation: "" };

    #[test]
    fn prompts_hold_the_state_and_nothing_twice() {
        let template = Template::default();
        assert_eq!(
            template.answer(&STATE),
            "Question: Where?\n<mem>In {call}.</mem>\n<tool_call>search</tool_call>\nAnswer: "
        );
        let hindsight = template.hindsight(&STATE, "Oslo {memory}");
        assert!(hindsight.ends_with("The right answer is: Oslo {memory}\n<mem>"), "{hindsight}");
        let first = PreWriteState { question: "Where?", ..PreWriteState::default() };
        assert_eq!(template.answer(&first), "Question: Where?\n<mem></mem>\nAnswer: ");
    }

    /// The bytes of a version never change: scores of it exist.
    #[test]
    fn the_hash_of_a_version_is_pinned() {
        assert_eq!(Template::default().id(), "himpo-1:4616c2c34840bf28");
        let other = Template::new("himpo-1", ANSWER, format!("{HINDSIGHT} ")).unwrap();
        assert_ne!(other.hash(), Template::default().hash());
    }

    #[test]
    fn a_template_without_a_placeholder_is_refused() {
        let new = |version: &str, answer: &str, hindsight: &str| Template::new(version, answer, hindsight).is_ok();
        assert!(new("mine", "{question}{memory}", "{question}{memory}{outcome}"));
        assert!(!new("", ANSWER, HINDSIGHT) && !new("a:b", ANSWER, HINDSIGHT));
        assert!(!new("mine", "{question}", HINDSIGHT) && !new("mine", ANSWER, "{question}{memory}"));
        assert!(!new("mine", "{question}{memory}{outcome}", HINDSIGHT));
    }
}
