//! Reasoning over the rows of an answer (PlugMem 3.3, C.4): one guidance for the agent, with citations, and before it
//! the choice of the memory to ask (C.3, Listing 8).
//!
//! A model fills [`Reasoner`] and [`ModeChooser`]; its replies are read strictly, by the formats of Listings 8 and 11
//! to 13. The built-in ones need none: [`Extractive`] takes the sentences that share words with the question, by their
//! stems, in the wording they have, and [`QuestionWords`] knows how questions about events and instructions are put.
//!
//! Invariant: a guidance cites only rows of its answer, and each sentence of the built-in one stands in the row it
//! cites.

use crate::memory::structure::sentences;
use crate::memory::write_back::ByWords;
use crate::model::item::{ItemId, Kind};
use crate::read::answer::{Answer, Row};
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap};

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
        // The listing prints the word as a heading, in brackets.
        let marks = ['#', '*', '`', '[', ']', ' ', '"', '.'];
        match section(reply, "Memory Type").map(|word| word.trim_matches(marks)) {
            Some("episodic_memory") => Ok(Mode::Episodic),
            Some("semantic_memory") => Ok(Mode::Semantic),
            Some("procedural_memory") => Ok(Mode::Procedural),
            _ => {
                Err(Error::Invalid(format!("the reply of a mode chooser names none of the three memories: {reply:?}")))
            }
        }
    }

    /// The name of the mode: `episodic`, `semantic` or `procedural`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Episodic => "episodic",
            Mode::Semantic => "semantic",
            Mode::Procedural => "procedural",
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

/// The built-in chooser: a task that gives an instruction, or asks how to do something, is procedural; a question about
/// what the asker or others did, said or had is episodic; all others are semantic.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuestionWords;

impl ModeChooser for QuestionWords {
    fn choose(&self, task: &str, observation: &str) -> Result<Mode> {
        Ok(of_words(task).or_else(|| of_words(observation)).unwrap_or(Mode::Semantic))
    }
}

/// The memory that a text asks for, where it says so.
fn of_words(text: &str) -> Option<Mode> {
    /// Words about what was said and done.
    const EVENTS: [&str; 17] = [
        "happened",
        "said",
        "told",
        "conversation",
        "conversations",
        "chat",
        "chats",
        "yesterday",
        "attended",
        "attend",
        "mentioned",
        "mention",
        "recommend",
        "recommended",
        "session",
        "sessions",
        "ago",
    ];
    /// The asker: what is asked about them is known from what they said.
    const ASKER: [&str; 6] = ["i", "my", "me", "mine", "we", "our"];
    /// Words that follow `last` where it is about time.
    const TIMES: [&str; 14] = [
        "time", "night", "week", "weekend", "month", "year", "summer", "winter", "spring", "autumn", "monday",
        "friday", "saturday", "sunday",
    ];
    let words: Vec<String> = words(text).collect();
    let has = |pair: [&str; 2]| words.windows(2).any(|two| two == pair);
    let is_how = has(["how", "to"])
        || ["do", "can", "should"].into_iter().any(|verb| {
            words
                .windows(3)
                .any(|three| three[0] == "how" && three[1] == verb && ["i", "we", "you"].contains(&&*three[2]))
        });
    let is_asked_of = |word: &String| EVENTS.contains(&word.as_str());
    let is_about_asker = || words.iter().any(|word| ASKER.contains(&word.as_str()));
    let is_about_time = || words.windows(2).any(|two| two[0] == "last" && TIMES.contains(&two[1].as_str()));
    let is_about_talk = || has(["did", "you"]) || has(["you", "told"]) || has(["how", "often"]);
    if words.is_empty() {
        None
    } else if is_how || is_instruction(text, &words) {
        Some(Mode::Procedural)
    } else if words.iter().any(is_asked_of) || is_about_asker() || is_about_time() || is_about_talk() {
        Some(Mode::Episodic)
    } else {
        None
    }
}

/// True for a text that tells somebody to do something: it begins with a verb of doing, or asks nothing and goes on
/// from its first word as verbs do (`Star the …`, `Draft an …`).
fn is_instruction(text: &str, words: &[String]) -> bool {
    const DO: [&str; 20] = [
        "click", "buy", "book", "find", "sort", "open", "search", "navigate", "go", "add", "complete", "fill", "order",
        "post", "create", "submit", "delete", "change", "update", "set",
    ];
    /// Words that may follow a verb, and seldom follow anything else that begins a text.
    const OBJECTS: [&str; 20] = [
        "a", "an", "the", "all", "every", "each", "any", "this", "that", "these", "those", "my", "your", "me", "it",
        "them", "to", "for", "in", "on",
    ];
    /// Words that begin a text and give no order.
    const OTHERS: [&str; 48] = [
        "what", "who", "whom", "whose", "which", "when", "where", "why", "how", "is", "are", "was", "were", "am", "do",
        "does", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may", "might", "in", "on",
        "at", "for", "from", "of", "to", "by", "with", "the", "a", "an", "i", "we", "you", "he", "she", "they", "it",
        "there", "remind",
    ];
    let (Some(first), second) = (words.first(), words.get(1)) else { return false };
    let is_question = text.trim_end().ends_with('?');
    let goes_on = second.is_some_and(|second| OBJECTS.contains(&second.as_str()));
    DO.contains(&first.as_str()) || (!is_question && goes_on && !OTHERS.contains(&first.as_str()))
}

/// A question to the rows of an answer.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The question.
    pub question: &'a str,
    /// The memory it is read in.
    pub mode: Mode,
    /// The reader's position in time, in microseconds since 1970: the current date of the question.
    pub now: Option<i64>,
    /// The state that the rows are from, for what a row does not have: the fields of a trace, the return score of a
    /// procedure.
    pub snapshot: Option<&'a Snapshot>,
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
    fn reason(&self, asked: &Asked<'_>, rows: &[Row]) -> Result<Guidance>;
}

/// Reads the reply of a model that was given rows with their keys in square brackets: the text after the heading of its
/// listing, or all of it for [`Mode::Episodic`]; `null` is nothing. The rows it cites are those whose keys, or keys of
/// whose lines, stand there in square brackets. A number, a text with blanks, and what stands in brackets in a row
/// itself is no citation but an element of a page, as in `type [1913] [usb hub] [1]`.
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
    let lines = rows.iter().flat_map(|row| row.lines.iter().map(|line| (line.key.as_str(), row.item)));
    let mut of_key: HashMap<&str, ItemId> = lines.collect();
    of_key.extend(rows.iter().map(|row| (row.key.as_str(), row.item)));
    let is_element = |named: &str| {
        let bracketed = format!("[{named}]");
        named.chars().all(|c| c.is_ascii_digit())
            || named.contains(char::is_whitespace)
            || rows.iter().any(|row| row.text.contains(&bracketed))
    };
    let mut cites = Vec::new();
    for cited in text.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0)) {
        match of_key.get(cited) {
            Some(id) if !cites.contains(id) => cites.push(*id),
            Some(_) => {}
            None if is_element(cited) => {}
            None => return Err(refused(format!("cites {cited:?}, which is none of the rows"))),
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

/// The built-in reasoner: of each row the sentences that share a content word with the question which not all rows
/// have, each followed by its row's key in square brackets; procedures whole. Events are counted, so that a sentence
/// about one needs no word that the others lack. A sentence that another one says already is left out.
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
    fn reason(&self, asked: &Asked<'_>, rows: &[Row]) -> Result<Guidance> {
        let words = ByWords::default();
        let wanted = words.content(asked.question);
        let of_rows: Vec<BTreeSet<String>> = rows.iter().map(|row| words.content(&row.text)).collect();
        let telling = |word: &&String| {
            let count = of_rows.iter().filter(|words| words.contains(*word)).count();
            count > 0 && (count < rows.len() || rows.len() == 1 || asked.mode == Mode::Episodic)
        };
        let telling: BTreeSet<&String> = wanted.iter().filter(telling).collect();
        // Rows that all say everything asked for are all of it.
        let telling = if telling.is_empty() { wanted.iter().collect() } else { telling };
        let mut found: Vec<(usize, &str, ItemId, &str)> = Vec::new();
        let mut said: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        for row in rows {
            let is_whole = asked.mode == Mode::Procedural || row.kind == Kind::Procedure;
            let spans = if is_whole { std::iter::once(0..row.text.len()).collect() } else { sentences(&row.text) };
            for sentence in spans.into_iter().filter_map(|span| row.text.get(span)) {
                let own = words.content(sentence);
                let shared = telling.iter().filter(|word| own.contains(**word)).count();
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
        self.guidance_within(question, mode, reasoner, None)
    }

    fn guidance_within(
        &self,
        question: &str,
        mode: Mode,
        reasoner: &dyn Reasoner,
        snapshot: Option<&Snapshot>,
    ) -> Result<Guidance> {
        let guidance = reasoner.reason(&Asked { question, mode, now: self.at.time, snapshot }, &self.rows)?;
        match guidance.cites.iter().find(|id| !self.rows.iter().any(|row| row.item == **id)) {
            Some(id) => Err(Error::Invalid(format!("a guidance cites {id}, which is no row of the answer"))),
            None => Ok(guidance),
        }
    }
}

impl Snapshot {
    /// One guidance out of the rows of an answer of this snapshot, with what the reasoner wants to know of their items.
    ///
    /// # Errors
    /// As [`Answer::guidance`].
    pub fn guidance(&self, answer: &Answer, question: &str, mode: Mode, reasoner: &dyn Reasoner) -> Result<Guidance> {
        answer.guidance_within(question, mode, reasoner, Some(self))
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
        for (question, of) in [
            ("How long is my daily commute?", Mode::Episodic),
            ("What degree did I graduate with?", Mode::Episodic),
            ("Which restaurant did you recommend in Orlando?", Mode::Episodic),
            ("When did I last visit the dentist?", Mode::Episodic),
            ("What was the name of the play we saw last weekend?", Mode::Episodic),
            ("Can you remind me of the job you told me about?", Mode::Episodic),
            ("Were Scott Derrickson and Ed Wood of the same nationality?", Mode::Semantic),
            ("Who was the last king of Rome?", Mode::Semantic),
            ("In which year was the director of Aurora born?", Mode::Semantic),
            ("The arena where the team plays has how many seats?", Mode::Semantic),
            ("Star the top five repos", Mode::Procedural),
            ("Create a new private project", Mode::Procedural),
            ("Draft an email to the owner", Mode::Procedural),
            ("Tell me the email of the customer who is the most unhappy", Mode::Procedural),
            ("How can I cancel order 307?", Mode::Procedural),
        ] {
            assert_eq!(mode("", question), of, "{question}");
        }
    }

    #[test]
    fn replies_of_mode_choosers_are_read_strictly() {
        let reply = |word: &str| format!("### Reasoning\nIt asks.\n\n### Memory Type\n\n{word}\n");
        assert_eq!(Mode::parse(&reply("procedural_memory")).unwrap(), Mode::Procedural);
        assert_eq!(Mode::parse(&reply("episodic_memory")).unwrap(), Mode::Episodic);
        assert_eq!(Mode::parse(&reply("## [episodic_memory]")).unwrap(), Mode::Episodic);
        assert_eq!(Mode::parse(&reply("**semantic_memory**")).unwrap(), Mode::Semantic);
        for refused in [&reply("both"), "semantic_memory", "", &reply("semantic_memory, surely")] {
            assert!(Mode::parse(refused).is_err(), "{refused}");
        }
        assert_eq!(Mode::parse(&reply("semantic_memory")).unwrap(), Mode::Semantic);
    }
}
