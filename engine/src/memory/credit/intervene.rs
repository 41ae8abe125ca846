//! Interventions on stored runs (Appendix D, Table 6): what a run would be with one known fault.
//!
//! | intervention | what changes | who is to blame |
//! |---|---|---|
//! | [`Intervention::ToolCorruption`] | an observation is wrong, and later memories repeat it | the observation |
//! | [`Intervention::MemoryDrop`] | the memory of one step is blank | that write |
//! | [`Intervention::DelayedDrop`] | the memory lacks, from a step on, what the step added | that write |
//! | [`Intervention::Perturb`] | one span of one step is blank | that span |
//!
//! Nothing is generated again: texts that exist are scored anew. What the paper leaves to a model, a wrong passage that
//! reads like the right one, is a role, [`Corruptor`]; the built-in one changes the words and numbers that the outcome
//! shares with the passage and keeps their length and case.

use super::run::{Run, RunStep, words};
use crate::Result;
use std::collections::{HashMap, HashSet};

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Module {
    /// `<mem>`.
    Memory,
    /// `<think>`.
    Think,
    /// `<tool_call>`.
    Call,
    /// The tool's return.
    Observation,
}

impl Module {
    /// All of them.
    pub const ALL: [Module; 4] = [Module::Memory, Module::Think, Module::Call, Module::Observation];

    /// Its text in a step.
    pub(super) fn text(self, step: &RunStep) -> &str {
        match self {
            Module::Memory => &step.memory,
            Module::Think => &step.think,
            Module::Call => &step.call,
            Module::Observation => &step.observation,
        }
    }

    fn text_mut(self, step: &mut RunStep) -> &mut String {
        match self {
            Module::Memory => &mut step.memory,
            Module::Think => &mut step.think,
            Module::Call => &mut step.call,
            Module::Observation => &mut step.observation,
        }
    }
}

/// A change of one thing in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intervention {
    /// The observation of a step is wrong, and the memories after it say so faithfully.
    ToolCorruption {
        /// The step.
        step: usize,
    },
    /// The memory of a step is blank; the others stay.
    MemoryDrop {
        /// The step.
        step: usize,
    },
    /// No memory from a step on has what that step added.
    DelayedDrop {
        /// The step.
        step: usize,
    },
    /// One span of a step is blank.
    Perturb {
        /// The span.
        module: Module,
        /// The step.
        step: usize,
    },
}

impl Intervention {
    /// The module and step that the fault was planted in.
    pub fn planted(self) -> (Module, usize) {
        match self {
            Intervention::ToolCorruption { step } => (Module::Observation, step),
            Intervention::MemoryDrop { step } | Intervention::DelayedDrop { step } => (Module::Memory, step),
            Intervention::Perturb { module, step } => (module, step),
        }
    }
}

/// A passage that is wrong, with the words it changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Corrupted {
    /// The wrong passage.
    pub passage: String,
    /// Each word that was replaced, in lower case, with its replacement.
    pub replaced: HashMap<String, String>,
}

/// Writes a plausible wrong passage in the style and length of a right one (D.1).
pub trait Corruptor {
    /// The wrong passage; `None` if there is nothing to change, which takes a marker instead and is counted.
    ///
    /// # Errors
    /// What the role fails with.
    fn corrupt(&self, passage: &str, outcome: &str) -> Result<Option<Corrupted>>;
}

/// The built-in corruptor: words and numbers that the outcome has too get other vowels and digits.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeAnswer;

impl Corruptor for ChangeAnswer {
    fn corrupt(&self, passage: &str, outcome: &str) -> Result<Option<Corrupted>> {
        let wanted: HashSet<String> = words(outcome).collect();
        let replaced: HashMap<String, String> =
            words(passage).filter(|word| wanted.contains(word)).map(|word| (word.clone(), changed(&word))).collect();
        let passage = replace_words(passage, &replaced);
        Ok((!replaced.is_empty()).then_some(Corrupted { passage, replaced }))
    }
}

/// A word of the same length and shape that is another one.
fn changed(word: &str) -> String {
    let turned = |c: char| match c {
        'a' => 'o',
        'e' => 'a',
        'i' => 'u',
        'o' => 'e',
        'u' => 'i',
        'y' => 'a',
        '0'..='9' => char::from(b'0' + (c as u8 - b'0' + 3) % 10),
        other => other,
    };
    let other: String = word.chars().map(turned).collect();
    if other == word { word.chars().map(|c| if c.is_ascii_lowercase() { 'o' } else { 'e' }).collect() } else { other }
}

/// A text with words replaced, in the case they have there.
fn replace_words(text: &str, replaced: &HashMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c: char| !c.is_alphanumeric()).unwrap_or(from.len()));
        out.push_str(before);
        match replaced.get(&word.to_lowercase()) {
            Some(other) if word.starts_with(char::is_uppercase) => {
                let mut letters = other.chars();
                out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                out.extend(letters);
            }
            Some(other) => out.push_str(other),
            None => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A run with a known fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervened {
    /// The run as it would be.
    pub run: Run,
    /// The corruptor had nothing to change, and the observation is a marker (D.1 asks for their rate).
    pub is_fallback: bool,
}

/// The observation of a passage that could not be corrupted.
const MARKER: &str = "[CORRUPTED-EVIDENCE]";

/// A run with one intervention; `None` where it changes nothing, because the step or its text does not exist.
///
/// # Errors
/// Those of the corruptor.
pub fn intervene(run: &Run, intervention: Intervention, corruptor: &dyn Corruptor) -> Result<Option<Intervened>> {
    let (module, at) = intervention.planted();
    let Some(step) = run.steps.get(at).filter(|step| !module.text(step).trim().is_empty()) else { return Ok(None) };
    let mut changed = run.clone();
    let mut is_fallback = false;
    match intervention {
        Intervention::ToolCorruption { .. } => {
            let corrupted = corruptor.corrupt(&step.observation, &run.outcome)?;
            is_fallback = corrupted.is_none();
            let fallback = || Corrupted { passage: MARKER.to_owned(), replaced: HashMap::new() };
            let corrupted = corrupted.unwrap_or_else(fallback);
            for later in changed.steps.iter_mut().skip(at + 1) {
                later.memory = replace_words(&later.memory, &corrupted.replaced);
            }
            if let Some(step) = changed.steps.get_mut(at) {
                step.observation = corrupted.passage;
            }
        }
        Intervention::DelayedDrop { .. } => {
            let before = run.state(at).memory;
            let known: HashSet<String> = words(before).collect();
            let added: HashSet<String> = words(&step.memory).filter(|word| !known.contains(word)).collect();
            let blank = added.into_iter().map(|word| (word, String::new())).collect();
            for later in changed.steps.iter_mut().skip(at) {
                later.memory = replace_words(&later.memory, &blank);
            }
        }
        Intervention::MemoryDrop { .. } | Intervention::Perturb { .. } => {
            if let Some(step) = changed.steps.get_mut(at) {
                module.text_mut(step).clear();
            }
        }
    }
    Ok((changed != *run).then_some(Intervened { run: changed, is_fallback }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let step = |memory: &str, observation: &str| RunStep {
            memory: memory.to_owned(),
            think: "Look further.".to_owned(),
            call: "search".to_owned(),
            observation: observation.to_owned(),
        };
        let steps = vec![step("", "Ann Lee was born in Oslo in 1994."), step("Ann, Oslo.", "Rain."), step("Oslo.", "")];
        Run { outcome: "Oslo, 1994".to_owned(), steps, ..Run::default() }
    }

    fn changed_by(intervention: Intervention) -> Option<Intervened> {
        intervene(&run(), intervention, &ChangeAnswer).unwrap()
    }

    #[test]
    fn a_corrupted_tool_is_believed_faithfully() {
        let corrupted = changed_by(Intervention::ToolCorruption { step: 0 }).unwrap();
        assert_eq!(corrupted.run.steps[0].observation, "Ann Lee was born in Esle in 4227.");
        assert_eq!(corrupted.run.steps[1].memory, "Ann, Esle.");
        assert!(!corrupted.is_fallback);
        let marked = changed_by(Intervention::ToolCorruption { step: 1 }).unwrap();
        assert_eq!((marked.run.steps[1].observation.as_str(), marked.is_fallback), (MARKER, true));
        assert_eq!(marked.run.steps[2].memory, "Oslo.");
    }

    #[test]
    fn a_drop_blanks_one_memory_or_what_it_added_for_good() {
        let dropped = changed_by(Intervention::MemoryDrop { step: 1 }).unwrap().run;
        assert_eq!((dropped.steps[1].memory.as_str(), dropped.steps[2].memory.as_str()), ("", "Oslo."));
        let delayed = changed_by(Intervention::DelayedDrop { step: 1 }).unwrap().run;
        assert_eq!((delayed.steps[1].memory.as_str(), delayed.steps[2].memory.as_str()), (", .", "."));
    }

    #[test]
    fn what_is_not_there_is_not_perturbed() {
        for (module, step) in [(Module::Memory, 0), (Module::Observation, 2), (Module::Think, 3)] {
            assert_eq!(changed_by(Intervention::Perturb { module, step }), None);
        }
        let silent = changed_by(Intervention::Perturb { module: Module::Call, step: 2 }).unwrap().run;
        assert_eq!((silent.steps[2].call.as_str(), silent.steps[2].think.as_str()), ("", "Look further."));
    }

    #[test]
    fn a_changed_word_is_another_one_of_the_same_length() {
        for word in ["oslo", "1994", "b", "zrh", "ö", "x7"] {
            let other = changed(word);
            assert_ne!(other, word);
            assert_eq!(other.chars().count(), word.chars().count());
        }
    }
}
