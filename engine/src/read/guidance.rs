//! Reasoning over the rows of an answer (PlugMem 3.3, C.4): one guidance for the agent, with citations, and before it
//! the choice of the memory to ask (C.3, Listing 8).
//!
//! A model fills [`Reasoner`] and [`ModeChooser`]; its replies are read strictly, by the formats of Listings 8 and 11
//! to 13. The built-in ones need none: [`Extractive`] takes the sentences that share words with the question, in the
//! wording they have, and [`QuestionWords`] knows how questions about events and instructions begin.
//!
//! Invariant: a guidance cites only rows of its answer, and each sentence of the built-in one stands in the row it
//! cites.

use crate::memory::structure::sentences;
use crate::model::item::{ItemId, Kind};
use crate::read::answer::{Answer, Row};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

/// The memory that a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Events, as they happened.
    Episodic,
    /// Knowledge.
    Semantic,
    /// Instructions.
    Procedural,
}

impl Mode {
    /// Reads a reply in the format of Listing 8: one of the three words after `### Memory Type`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other reply.
    pub fn parse(reply: &str) -> Result<Mode> {
        match section(reply, "Memory Type") {
            Some("episodic_memory") => Ok(Mode::Episodic),
            Some("semantic_memory") => Ok(Mode::Semantic),
            Some("procedural_memory") => Ok(Mode::Procedural),
            _ => {
                Err(Error::Invalid(format!("the reply of a mode chooser names none of the three memories: {reply:?}")))
            }
        }
    }

    /// The path of a recall in this memory: facts lifted to the traces they came from, facts over concepts, or
    /// procedures over intents.
    pub fn path(self) -> &'static str {
        match self {
            Mode::Episodic => "facts 30 -> lift to episodes 3 -> traces 20",
            Mode::Semantic => "facts 20 -> (concepts 8 -> facts 20) up to 1 hops",
            Mode::Procedural => "intents 5 -> procedures 5",
        }
    }
}

/// Chooses the memory to ask.
pub trait ModeChooser {
    /// The memory for an observation of a task; where they disagree, the task decides.
    ///
    /// # Errors
    /// An error counts as [`Mode::Semantic`].
    fn choose(&self, task: &str, observation: &str) -> Result<Mode>;
}

/// The built-in chooser: a task or question that says how, or gives an instruction, is procedural; one about what
/// somebody did, said or saw, or about when and how often, is episodic; all others are semantic.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuestionWords;

impl ModeChooser for QuestionWords {
    fn choose(&self, task: &str, observation: &str) -> Result<Mode> {
        Ok(of_words(task).or_else(|| of_words(observation)).unwrap_or(Mode::Semantic))
    }
}

/// The memory that a text asks for, where it says so.
fn of_words(text: &str) -> Option<Mode> {
    const DO: [&str; 14] = [
        "click", "buy", "book", "find", "sort", "open", "search", "navigate", "go", "add", "complete", "fill", "order",
        "post",
    ];
    const HAPPENED: [&str; 12] = [
        "happened",
        "said",
        "told",
        "conversation",
        "chat",
        "yesterday",
        "last",
        "attended",
        "mentioned",
        "recommend",
        "recommended",
        "session",
    ];
    let words: Vec<String> = words(text).collect();
    let [first, ..] = words.as_slice() else { return None };
    let has = |pair: [&str; 2]| words.windows(2).any(|two| two == pair);
    let is_instruction =
        DO.contains(&first.as_str()) || has(["how", "to"]) || has(["how", "do"]) || has(["how", "can"]);
    let is_event = words.iter().any(|word| HAPPENED.contains(&word.as_str()))
        || has(["did", "i"])
        || has(["have", "i"])
        || has(["did", "we"])
        || has(["how", "often"]);
    match (is_event, is_instruction) {
        (true, _) => Some(Mode::Episodic),
        (false, true) => Some(Mode::Procedural),
        _ => None,
    }
}

/// One guidance out of many rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guidance {
    /// The text for the agent; empty if the rows hold nothing for it.
    pub text: String,
    /// The rows it rests on, best first.
    pub cites: Vec<ItemId>,
}

/// Condenses rows to a guidance.
pub trait Reasoner {
    /// The guidance for a question, in the reading of a memory.
    ///
    /// # Errors
    /// What the role fails with; the rows are still there.
    fn reason(&self, question: &str, mode: Mode, rows: &[Row]) -> Result<Guidance>;
}

/// Reads the reply of a model that was given rows with their keys in square brackets: the text after the heading of its
/// listing, or all of it for [`Mode::Episodic`]; `null` is nothing. The rows it cites are those whose keys stand there
/// in square brackets.
///
/// # Errors
/// [`Error::Invalid`] for a reply without its heading, and for a citation of what is none of the rows.
pub fn parse_guidance(reply: &str, mode: Mode, rows: &[Row]) -> Result<Guidance> {
    let refused = |why: String| Error::Invalid(format!("the reply of a reasoner {why}: {reply:?}"));
    let text = match mode {
        Mode::Episodic => Some(reply.trim()),
        Mode::Semantic => section(reply, "Information"),
        Mode::Procedural => section(reply, "Final Information"),
    };
    let text = text.ok_or_else(|| refused("lacks the heading of its format".to_owned()))?;
    if text.is_empty() || text.trim_matches('"') == "null" {
        return Ok(Guidance::default());
    }
    let of_key: HashMap<&str, ItemId> = rows.iter().map(|row| (row.key.as_str(), row.item)).collect();
    let mut cites = Vec::new();
    for cited in text.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0)) {
        let id = of_key.get(cited).ok_or_else(|| refused(format!("cites {cited:?}, which is none of the rows")))?;
        if !cites.contains(id) {
            cites.push(*id);
        }
    }
    Ok(Guidance { text: text.to_owned(), cites })
}

/// The text under a heading `### NAME`, up to the next one.
fn section<'r>(reply: &'r str, name: &str) -> Option<&'r str> {
    let heading = format!("### {name}");
    let mut start = 0;
    for line in reply.split_inclusive('\n') {
        start += line.len();
        if line.trim() == heading {
            let rest = reply.get(start..)?;
            return Some(rest.split("\n### ").next().unwrap_or(rest).trim());
        }
    }
    None
}

/// The built-in reasoner: of each row the sentences that share a word with the question which not all rows have, each
/// followed by its row's key in square brackets; procedures whole. A sentence that another one says already is left
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extractive {
    /// Sentences, or procedures, at most.
    pub most: usize,
}

impl Default for Extractive {
    fn default() -> Self {
        Extractive { most: 8 }
    }
}

impl Reasoner for Extractive {
    fn reason(&self, question: &str, mode: Mode, rows: &[Row]) -> Result<Guidance> {
        let asked: HashSet<String> = words(question).filter(|word| word.chars().count() > 2).collect();
        let of_rows: Vec<HashSet<String>> = rows.iter().map(|row| words(&row.text).collect()).collect();
        let telling = |word: &&String| {
            let count = of_rows.iter().filter(|words| words.contains(*word)).count();
            count > 0 && (count < rows.len() || rows.len() == 1)
        };
        let telling: HashSet<&String> = asked.iter().filter(telling).collect();
        let mut found: Vec<(usize, &str, ItemId, &str)> = Vec::new();
        let mut said: HashSet<Vec<String>> = HashSet::new();
        for row in rows {
            let is_whole = mode == Mode::Procedural || row.kind == Kind::Procedure;
            let spans = if is_whole { std::iter::once(0..row.text.len()).collect() } else { sentences(&row.text) };
            for sentence in spans.into_iter().filter_map(|span| row.text.get(span)) {
                let own: Vec<String> = words(sentence).collect();
                let shared = telling.iter().filter(|word| own.contains(word)).count();
                if (shared > 0 || is_whole) && said.insert(own) {
                    found.push((shared, sentence, row.item, &row.key));
                }
            }
        }
        // Those that share most; of equal ones the order of rows.
        found.sort_by_key(|(shared, ..)| std::cmp::Reverse(*shared));
        found.truncate(self.most);
        let mut guidance = Guidance::default();
        for (_, sentence, item, key) in found {
            if !guidance.text.is_empty() {
                guidance.text.push('\n');
            }
            guidance.text.push_str(&format!("{} [{key}]", sentence.trim()));
            if !guidance.cites.contains(&item) {
                guidance.cites.push(item);
            }
        }
        Ok(guidance)
    }
}

impl Answer {
    /// One guidance out of the rows of this answer, evidence included.
    ///
    /// # Errors
    /// Those of the reasoner; [`Error::Invalid`] if it cites what is no row.
    pub fn guidance(&self, question: &str, mode: Mode, reasoner: &dyn Reasoner) -> Result<Guidance> {
        let guidance = reasoner.reason(question, mode, &self.rows)?;
        match guidance.cites.iter().find(|id| !self.rows.iter().any(|row| row.item == **id)) {
            Some(id) => Err(Error::Invalid(format!("a guidance cites {id}, which is no row of the answer"))),
            None => Ok(guidance),
        }
    }
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_say_which_memory_they_ask() {
        let mode = |task: &str, observation: &str| QuestionWords.choose(task, observation).unwrap();
        assert_eq!(mode("", "How many weddings have I attended this year?"), Mode::Episodic);
        assert_eq!(mode("", "What did Joanna recommend?"), Mode::Episodic);
        assert_eq!(mode("", "Buy the cheapest lamp."), Mode::Procedural);
        assert_eq!(mode("", "How do I sort the list by price?"), Mode::Procedural);
        assert_eq!(mode("", "Who founded the studio that made Aurora?"), Mode::Semantic);
        assert_eq!(mode("Navigate the shop.", "What did Joanna recommend?"), Mode::Procedural);
        assert_eq!(mode("", ""), Mode::Semantic);
    }

    #[test]
    fn replies_of_mode_choosers_are_read_strictly() {
        let reply = |word: &str| format!("### Reasoning\nIt asks.\n\n### Memory Type\n\n{word}\n");
        assert_eq!(Mode::parse(&reply("procedural_memory")).unwrap(), Mode::Procedural);
        assert_eq!(Mode::parse(&reply("episodic_memory")).unwrap(), Mode::Episodic);
        for refused in [&reply("both"), "semantic_memory", "", &reply("semantic_memory, surely")] {
            assert!(Mode::parse(refused).is_err(), "{refused}");
        }
        assert_eq!(Mode::parse(&reply("semantic_memory")).unwrap(), Mode::Semantic);
    }
}
