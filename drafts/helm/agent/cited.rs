//! Cited recall (HELM A.8, Algorithm 2): evidence is recalled, a generator writes a `<memory>` block from it, and the
//! block's citations are checked before anyone reads it.
//!
//! ```text
//! r ← request and evidence
//! repeat at most 1 + R times:
//!     y ← generate(r);  d ← check y (Algorithm 1)
//!     return y if it is valid
//!     r ← r ‖ d                                   the diagnostic, verbatim
//! return the fallback
//! ```
//!
//! | mode | what the generator may write | fallback |
//! |---|---|---|
//! | A0 [`Plain`](RecallMode::Plain) | anything; nothing is checked | the evidence as it is |
//! | A1 [`Cited`](RecallMode::Cited) | sentences that cite spans visible in scope | spans with citations |
//! | A2 [`Extractive`](RecallMode::Extractive) | sentences that cite traces of the selected spans | spans with citations |
//!
//! 1. The fallback of A1 and A2 is valid by Algorithm 1, because each line is a span with its own citation.
//! 2. A generator that fails counts as one attempt. So does (ours) an output longer than the limit of tokens, without
//!    its citations, and one whose `<citations>` block lists a citation that is not valid.
//! 3. A question without evidence gives an empty block, and the generator is not asked.
//! 4. The recall goes through [`Holotype::query_within`], so that with `audit = reads` it is audited.

use crate::core::handle::Holotype;
use crate::model::item::ItemId;
use crate::model::tokens;
use crate::read::answer::{Answer, Output};
use crate::read::citations::{MemoryCheck, check_memory};
use crate::read::limits::Limits;
use crate::read::snapshot::Snapshot;
use crate::state::reader_position::Reader;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_query::{ParamValue, Params};

/// The most tokens that recalls may inject at a step (HELM Table 11).
pub const RECALL_TOKENS: u64 = 1500;

/// Writes a text for a prompt: a model behind a call.
pub trait Generate {
    /// The text, or why there is none.
    ///
    /// # Errors
    /// In words, for the record of the attempt.
    fn generate(&mut self, prompt: &str) -> std::result::Result<String, String>;
}

impl<F: FnMut(&str) -> std::result::Result<String, String>> Generate for F {
    fn generate(&mut self, prompt: &str) -> std::result::Result<String, String> {
        self(prompt)
    }
}

/// How strictly a recalled memory is tied to its evidence (HELM 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecallMode {
    /// A0: baseline recall.
    Plain,
    /// A1: each sentence cites.
    #[default]
    Cited,
    /// A2: spans are selected first, and only they may be cited.
    Extractive,
}

impl RecallMode {
    /// The paper's name of the mode.
    pub const fn as_str(self) -> &'static str {
        match self {
            RecallMode::Plain => "A0",
            RecallMode::Cited => "A1",
            RecallMode::Extractive => "A2",
        }
    }

    fn instruction(self) -> &'static str {
        match self {
            RecallMode::Plain => {
                "Answer the request from the evidence, inside <memory>…</memory>. Do not add what the evidence does not say."
            }
            RecallMode::Cited => {
                "Answer the request from the evidence, inside <memory>…</memory>. End every sentence with at least one of \
                 the citations [[CITE …]] of the evidence, copied as it is. Do not state what no span supports. Do not cite \
                 spans that are not listed."
            }
            RecallMode::Extractive => {
                "Compress these spans into a short answer to the request, inside <memory>…</memory>, in their own words. End \
                 every sentence with the citations [[CITE …]] of the spans it is made of, copied as they are. Add nothing."
            }
        }
    }
}

/// A request for memory.
///
/// ```
/// use holotype::{CitedRecall, Durability, Holotype, NewTrace, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
/// let mut transaction = database.begin()?;
/// transaction.record(NewTrace::call("trip-42", "search", "UA123 price=$450").step(12))?;
/// transaction.commit(Durability::Sync)?;
///
/// // A model would stand here. This one forgets to cite, and copies the citation when it is told.
/// let mut generator = |prompt: &str| {
///     let cite = prompt.split("[[CITE tool").nth(1).and_then(|rest| rest.split("]]").next()).unwrap_or_default();
///     Ok(match prompt.contains("missing cite") {
///         false => "<memory>UA123 costs $450.</memory>".to_owned(),
///         true => format!("<memory>UA123 costs $450. [[CITE tool{cite}]]</memory>"),
///     })
/// };
/// let memory = CitedRecall::new("price of UA123").in_episode("trip-42").run(&database, &mut generator, 2)?;
/// assert_eq!(memory.attempts[0].diagnostic.as_deref(), Some("missing cite: UA123 costs $450."));
/// assert!(memory.check.is_some_and(|check| check.is_valid()) && !memory.fell_back);
/// # Ok::<(), holotype::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CitedRecall {
    request: String,
    vector: Option<Vec<f32>>,
    episodes: Vec<String>,
    reader: Reader,
    mode: RecallMode,
    tokens: u64,
}

/// One try of the generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What it was asked.
    pub prompt: String,
    /// What it wrote; empty if it failed.
    pub output: String,
    /// What was wrong with it, as it is told the next time; `None` for the one that was taken.
    pub diagnostic: Option<String>,
}

/// A `<memory>` block and how it came about.
#[derive(Debug, Clone)]
pub struct CitedMemory {
    /// The block, with its tags.
    pub text: String,
    /// The tries of the generator, in order.
    pub attempts: Vec<Attempt>,
    /// True if no try was valid and the text is the fallback.
    pub fell_back: bool,
    /// The text by Algorithm 1; `None` in mode A0.
    pub check: Option<MemoryCheck>,
    /// The evidence.
    pub evidence: Answer,
    /// The tokens of the text without its citations.
    pub tokens: u64,
}

/// A span that may be cited.
struct Evidence {
    text: String,
    cite: String,
    trace: Option<ItemId>,
}

impl CitedRecall {
    /// A request in words, as an agent writes it between `<recall>` and `</recall>`.
    pub fn new(request: impl Into<String>) -> Self {
        CitedRecall {
            request: request.into(),
            vector: None,
            episodes: Vec::new(),
            reader: Reader::default(),
            mode: RecallMode::default(),
            tokens: RECALL_TOKENS,
        }
    }

    /// The request's vector, in the space of the database.
    pub fn vector(mut self, vector: Vec<f32>) -> Self {
        self.vector = Some(vector);
        self
    }

    /// Evidence from this episode, and others that are named; by default from everywhere.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        self.episodes.push(id.into());
        self
    }

    /// Where the reader stands.
    pub fn at(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    /// How strictly the memory is tied to its evidence; A1 by default.
    pub fn mode(mut self, mode: RecallMode) -> Self {
        self.mode = mode;
        self
    }

    /// The most tokens of evidence, and of the memory without its citations.
    pub fn within(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// Recalls, generates and checks, with at most `retries` tries after the first (Algorithm 2).
    ///
    /// # Errors
    /// Those of the recall. What the generator does wrong is no error.
    pub fn run(&self, database: &Holotype, generator: &mut dyn Generate, retries: u32) -> Result<CitedMemory> {
        let (evidence, spans) = self.recall(database)?;
        if spans.is_empty() {
            return self.fallback(database, evidence, &spans, Vec::new());
        }
        let snapshot = database.snapshot();
        let scope = self.scope(&snapshot, &spans)?;
        let mut prompt = self.prompt(&spans);
        let mut attempts = Vec::new();
        for _ in 0..=u64::from(retries) {
            let output = generator.generate(&prompt);
            let (output, outcome) = match output {
                Ok(output) => {
                    let checked = self.check(&snapshot, &output, scope.as_ref())?;
                    (output, checked)
                }
                Err(error) => (String::new(), Err(format!("no answer: {error}"))),
            };
            let diagnostic = outcome.as_ref().err().cloned();
            attempts.push(Attempt { prompt: prompt.clone(), output: output.clone(), diagnostic });
            match outcome {
                Ok((text, check)) => {
                    let tokens = spoken_tokens(&text);
                    return Ok(CitedMemory { text, attempts, fell_back: false, check, evidence, tokens });
                }
                Err(diagnostic) => {
                    prompt.push('\n');
                    prompt += &diagnostic;
                }
            }
        }
        self.fallback(database, evidence, &spans, attempts)
    }

    /// Recalls without a generator: spans with their citations, or in mode A0 the rows.
    ///
    /// # Errors
    /// Those of the recall.
    pub fn spans(&self, database: &Holotype) -> Result<CitedMemory> {
        let (evidence, spans) = self.recall(database)?;
        Ok(CitedMemory { fell_back: false, ..self.fallback(database, evidence, &spans, Vec::new())? })
    }

    fn recall(&self, database: &Holotype) -> Result<(Answer, Vec<Evidence>)> {
        let mut params = Params::from([("q".to_owned(), ParamValue::Text(self.request.clone()))]);
        let mut statement = "recall $q".to_owned();
        if let Some(vector) = &self.vector {
            params.insert("v".to_owned(), ParamValue::Vector(vector.clone()));
            statement += " near $v";
        }
        for (nth, episode) in self.episodes.iter().enumerate() {
            params.insert(format!("e{nth}"), ParamValue::Text(episode.clone()));
            statement += &format!("{} $e{nth}", if nth == 0 { " in episode" } else { "," });
        }
        let Reader { step, time, version, .. } = &self.reader;
        let mut moments = Vec::new();
        moments.extend(step.map(|step| format!("step {step}")));
        moments.extend(time.map(|time| format!("time {time}")));
        if let Some(version) = version {
            params.insert("version".to_owned(), ParamValue::Text(version.clone()));
            moments.push("version $version".to_owned());
        }
        if !moments.is_empty() {
            statement += &format!(" at {}", moments.join(", "));
        }
        statement += &format!(" budget {} tokens", self.tokens);
        match database.query_within(&statement, &params, &Limits::none())?.pop() {
            Some(Output::Answer(answer)) => {
                let spans = spans(&database.snapshot(), &answer);
                Ok((*answer, spans))
            }
            _ => Err(Error::Invalid("a recall gave no answer".to_owned())),
        }
    }

    /// The traces that may be cited; `None` for all.
    fn scope(&self, snapshot: &Snapshot, spans: &[Evidence]) -> Result<Option<Bits>> {
        if self.mode == RecallMode::Extractive {
            return Ok(Some(spans.iter().filter_map(|span| span.trace).map(|id| id.0).collect()));
        }
        let episodes: Vec<&str> = self.episodes.iter().map(String::as_str).collect();
        crate::read::citations::scope_of(snapshot, &episodes)
    }

    fn prompt(&self, spans: &[Evidence]) -> String {
        let lines: Vec<String> = spans.iter().map(|Evidence { text, cite, .. }| format!("- {text} {cite}")).collect();
        format!("{}\n\nEvidence:\n{}\n\nRequest: {}", self.mode.instruction(), lines.join("\n"), self.request)
    }

    /// The text to take with its check, or the diagnostic.
    fn check(
        &self,
        snapshot: &Snapshot,
        output: &str,
        scope: Option<&Bits>,
    ) -> Result<std::result::Result<(String, Option<MemoryCheck>), String>> {
        if self.mode == RecallMode::Plain {
            let text = memory_of(output).unwrap_or_else(|| block(output));
            return Ok(self.fits(&text).map(|()| (text, None)));
        }
        let check = check_memory(snapshot, output, scope)?;
        if !check.is_valid() {
            return Ok(Err(check.message()));
        }
        for listed in &check.listed {
            if let Err(diagnostic) = listed.outcome {
                return Ok(Err(format!("{diagnostic}: {}", listed.written)));
            }
        }
        let text = memory_of(output).unwrap_or_default();
        Ok(self.fits(&text).map(|()| (text, Some(check))))
    }

    fn fits(&self, text: &str) -> std::result::Result<(), String> {
        match spoken_tokens(text) {
            tokens if tokens > self.tokens => Err(format!("too long: {tokens} tokens of at most {}", self.tokens)),
            _ => Ok(()),
        }
    }

    fn fallback(
        &self,
        database: &Holotype,
        evidence: Answer,
        spans: &[Evidence],
        attempts: Vec<Attempt>,
    ) -> Result<CitedMemory> {
        let mut lines = Vec::new();
        let mut left = self.tokens;
        let rows: Vec<(String, String)> = match self.mode {
            RecallMode::Plain => evidence.rows.iter().map(|row| (row.text.clone(), String::new())).collect(),
            _ => spans.iter().map(|span| (span.text.clone(), format!(" {}", span.cite))).collect(),
        };
        for (text, cite) in rows {
            let tokens = u64::from(tokens::count(&text));
            if tokens <= left && text.chars().any(char::is_alphanumeric) {
                left -= tokens;
                lines.push(format!("{}{cite}", one_sentence(&text)));
            }
        }
        let text = block(&lines.join("\n"));
        let check = match self.mode {
            RecallMode::Plain => None,
            _ if lines.is_empty() => None,
            _ => Some(check_memory(&database.snapshot(), &text, None)?),
        };
        let fell_back = !attempts.is_empty();
        Ok(CitedMemory { tokens: spoken_tokens(&text), text, attempts, fell_back, check, evidence })
    }
}

/// The spans of an answer that cite bytes of traces, each once.
fn spans(snapshot: &Snapshot, answer: &Answer) -> Vec<Evidence> {
    let mut spans: Vec<Evidence> = Vec::new();
    for citation in answer.rows.iter().flat_map(|row| &row.citations) {
        let (Some(text), Some(cite)) = (&citation.text, citation.cite()) else { continue };
        if !spans.iter().any(|known| known.cite == cite) {
            let trace = snapshot.item_named(&citation.target).ok();
            spans.push(Evidence { text: text.clone(), cite, trace });
        }
    }
    spans
}

/// A text as one sentence: on one line, without a sentence's end inside, and without tags and citations of its own.
fn one_sentence(text: &str) -> String {
    let text = text.replace("[[CITE", "[CITE").replace("</memory>", "").replace("<memory>", "");
    let mut sentence = String::with_capacity(text.len());
    let mut chars = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?') && chars.peek() == Some(&' ');
        sentence.push(if ends { ';' } else { c });
    }
    sentence
}

fn block(text: &str) -> String {
    format!("<memory>{text}</memory>")
}

/// The `<memory>` blocks of a text, with their tags.
fn memory_of(output: &str) -> Option<String> {
    let from = output.find("<memory>")?;
    let to = output.rfind("</memory>")? + "</memory>".len();
    output.get(from..to).map(str::to_owned)
}

/// The tokens of a memory block without its tags and citations.
fn spoken_tokens(text: &str) -> u64 {
    let mut spoken = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[[CITE") {
        spoken += before;
        let len = crate::read::cite::len_of_cite(&format!("[[CITE{after}")).saturating_sub("[[CITE".len());
        rest = after.get(len..).unwrap_or_default();
    }
    spoken += rest;
    u64::from(tokens::count(&spoken.replace("<memory>", "").replace("</memory>", "")))
}
