//! The event-driven interface of HELM 3.1: a reasoner writes `<recall>what it needs</recall>`, and each such span is
//! replaced by a `<memory>…</memory>` block.
//!
//! The requests of one text are of one step and share its limit of tokens ([`RECALL_TOKENS`]): what the first takes,
//! the next ones lack. A span that is not closed stays as it is.

use crate::Result;
use crate::agent::cited::{CitedMemory, CitedRecall, Generator, RECALL_TOKENS, RecallMode};
use crate::core::handle::Holotype;
use crate::state::reader_position::Reader;

const OPEN: &str = "<recall>";
const CLOSE: &str = "</recall>";

/// Replaces the requests of a text by memories.
#[derive(Debug, Clone)]
pub struct RecallInterface {
    /// The part that all requests share.
    recall: CitedRecall,
    tokens: u64,
    tries: u32,
}

impl Default for RecallInterface {
    fn default() -> Self {
        RecallInterface { recall: CitedRecall::new(""), tokens: RECALL_TOKENS, tries: 3 }
    }
}

/// A text with its requests answered.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The text.
    pub text: String,
    /// The memories, in order of the requests.
    pub memories: Vec<CitedMemory>,
}

impl RecallInterface {
    /// Memories from everywhere, cited (A1), with three tries.
    pub fn new() -> Self {
        RecallInterface::default()
    }

    /// Memories of requests like this one: its episodes, reader, mode, path and exclusions; its text counts for
    /// nothing.
    pub fn like(recall: CitedRecall) -> Self {
        RecallInterface { recall, ..RecallInterface::default() }
    }

    /// Memories from this episode, and others that are named.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        self.recall = self.recall.in_episode(id);
        self
    }

    /// Sets the position of the reader.
    pub fn at(mut self, reader: Reader) -> Self {
        self.recall = self.recall.at(reader);
        self
    }

    /// The strictness with which memories are tied to their evidence.
    pub fn mode(mut self, mode: RecallMode) -> Self {
        self.recall = self.recall.mode(mode);
        self
    }

    /// The most tokens that all memories of a text may have together.
    pub fn within(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// Tries that a generator has for each memory (R of Algorithm 2).
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Leaves a receipt of each recall in the log.
    pub fn with_receipts(mut self) -> Self {
        self.recall = self.recall.with_receipt();
        self
    }

    /// The same with the reader there, unless one is set.
    pub(crate) fn or_at(&self, reader: Reader) -> RecallInterface {
        match self.recall.has_reader() {
            true => self.clone(),
            false => self.clone().at(reader),
        }
    }

    /// Answers every `<recall>…</recall>` of a text. Without a generator, memories are spans with their citations.
    ///
    /// # Errors
    /// Those of the recalls.
    pub fn answer(
        &self,
        database: &Holotype,
        text: &str,
        mut generator: Option<&mut dyn Generator>,
    ) -> Result<Answered> {
        let mut answered = Answered { text: String::with_capacity(text.len()), memories: Vec::new() };
        let mut left = self.tokens;
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let Some((asked, behind)) = after.split_once(CLOSE) else { break };
            let memory = self.one(
                database,
                asked,
                left,
                generator.as_mut().map(|generator| &mut **generator as &mut dyn Generator),
            )?;
            left = left.saturating_sub(memory.tokens);
            answered.text += before;
            answered.text += &memory.text;
            answered.memories.push(memory);
            rest = behind;
        }
        answered.text += rest;
        Ok(answered)
    }

    pub(crate) fn one(
        &self,
        database: &Holotype,
        asked: &str,
        tokens: u64,
        generator: Option<&mut dyn Generator>,
    ) -> Result<CitedMemory> {
        let request = self.recall.clone().asking(asked.trim()).within(tokens);
        match generator {
            Some(generator) => request.run(database, generator, self.tries),
            None => request.spans(database),
        }
    }
}
