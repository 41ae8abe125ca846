//! Validating the citations of a text (HELM A.7, A.8, Algorithm 1).
//!
//! A text is a `<memory>…</memory>` block; its claims cite spans of traces (`cite`). A citation belongs to the sentence
//! before it. The verdict is `valid`, or the diagnostic that Algorithm 1 meets first, going through the sentences in
//! order and through the citations of each: *missing memory block*, *missing cite*, *malformed cite*, *unresolved
//! pointer*, *hash mismatch*. All sentences are shown, also behind the first diagnostic.
//!
//! 1. A sentence needs a citation of its own. A `<citations>…</citations>` block beside the memory is a listing: it
//!    excuses no sentence. Its citations are checked on their own.
//! 2. A text with several memory blocks is checked in all of them.
//! 3. With a scope, a span outside of it does not resolve: nobody can cite what was not visible.
//!
//! Coverage is the share of sentences with a valid citation, validity the share of citations that resolve.

use crate::memory::structure::is_abbreviation;
use crate::model::item::ItemId;
use crate::model::pointer::{Pointer, Span, span_bytes};
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::cite::{Cite, OPEN, len_of_cite};
use crate::read::resolve::check_hash;
use crate::read::snapshot::Snapshot;
use crate::state::attributes::{Column, ValueTest};
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use std::fmt::{self, Display, Formatter};

/// A diagnostic of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnostic {
    /// There is no `<memory>` block.
    MissingMemoryBlock,
    /// A sentence has no citation.
    MissingCite,
    /// A citation does not parse.
    MalformedCite,
    /// A citation names no span that is visible.
    UnresolvedPointer,
    /// The bytes of the span are not those that were cited.
    HashMismatch,
}

impl Diagnostic {
    /// The diagnostic in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Diagnostic::MissingMemoryBlock => "missing memory block",
            Diagnostic::MissingCite => "missing cite",
            Diagnostic::MalformedCite => "malformed cite",
            Diagnostic::UnresolvedPointer => "unresolved pointer",
            Diagnostic::HashMismatch => "hash mismatch",
        }
    }
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A citation of a text, with the cited text or what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedCite {
    /// As it was written.
    pub written: String,
    /// The bytes it cites.
    pub outcome: std::result::Result<String, Diagnostic>,
}

/// A sentence with its citations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSentence {
    /// The sentence without its citations.
    pub text: String,
    /// Its citations.
    pub cites: Vec<CheckedCite>,
}

/// A text checked by Algorithm 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryCheck {
    /// The first thing that is wrong, with the sentence or citation it was met at; `None` for a valid text.
    pub diagnostic: Option<(Diagnostic, String)>,
    /// The sentences of its `<memory>` blocks.
    pub sentences: Vec<CheckedSentence>,
    /// The citations of its `<citations>` blocks. They excuse no sentence and are no part of the verdict.
    pub listed: Vec<CheckedCite>,
}

impl MemoryCheck {
    /// True if Algorithm 1 finds nothing wrong.
    pub fn is_valid(&self) -> bool {
        self.diagnostic.is_none()
    }

    /// The share of sentences with a valid citation; 0 without sentences.
    pub fn coverage(&self) -> f64 {
        let cited = self.sentences.iter().filter(|sentence| sentence.cites.iter().any(|cite| cite.outcome.is_ok()));
        share(cited.count(), self.sentences.len())
    }

    /// The share of the sentences' citations that resolve; 0 without citations.
    pub fn validity(&self) -> f64 {
        let cites = || self.sentences.iter().flat_map(|sentence| &sentence.cites);
        share(cites().filter(|cite| cite.outcome.is_ok()).count(), cites().count())
    }

    /// The diagnostic in words, as a generator is told it.
    pub fn message(&self) -> String {
        match &self.diagnostic {
            None => "valid".to_owned(),
            Some((diagnostic, at)) if at.is_empty() => diagnostic.to_string(),
            Some((diagnostic, at)) => format!("{diagnostic}: {at}"),
        }
    }
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// A sentence with its citations as written.
struct Sentence {
    text: String,
    cites: Vec<String>,
}

impl Snapshot {
    /// Checks a text with `<memory>` blocks by HELM's Algorithm 1. With episodes, only their traces may be cited.
    ///
    /// # Errors
    /// [`Error::Missing`] for an episode that does not exist; those of reading.
    pub fn check_memory(&self, text: &str, episodes: &[&str]) -> Result<MemoryCheck> {
        let scope = scope_of(self, episodes)?;
        check_memory(self, text, scope.as_ref())
    }
}

/// The items of some episodes; `None` without episodes, which is everything.
pub(crate) fn scope_of(snapshot: &Snapshot, episodes: &[&str]) -> Result<Option<Bits>> {
    let state = &snapshot.state;
    let mut scope: Option<Bits> = None;
    for episode in episodes {
        let missing = || Error::Missing { what: "episode", name: format!("'{episode}'") };
        let number = i64::from(state.episode_number(episode)?.ok_or_else(missing)?);
        let found =
            state.attributes.select_values(Column::Episode, snapshot.len(), ValueTest::Range(number, number))?;
        scope = Some(scope.map_or_else(|| found.clone(), |scope| scope.or(&found)));
    }
    Ok(scope)
}

/// Checks a text against a snapshot; with a scope, only items in it may be cited.
pub(crate) fn check_memory(snapshot: &Snapshot, text: &str, scope: Option<&Bits>) -> Result<MemoryCheck> {
    let mut checked = MemoryCheck::default();
    let blocks = blocks(text, "<memory>", "</memory>");
    if blocks.is_empty() {
        checked.diagnostic = Some((Diagnostic::MissingMemoryBlock, String::new()));
    }
    for Sentence { text, cites } in blocks.into_iter().flat_map(sentences) {
        let missing = cites.is_empty().then(|| (Diagnostic::MissingCite, text.clone()));
        let cites: Vec<CheckedCite> =
            cites.into_iter().map(|written| check_cite(snapshot, written, scope)).collect::<Result<_>>()?;
        let wrong = cites.iter().find_map(|cite| Some((cite.outcome.as_ref().err().copied()?, cite.written.clone())));
        checked.diagnostic = checked.diagnostic.or(missing).or(wrong);
        checked.sentences.push(CheckedSentence { text, cites });
    }
    for cite in self::blocks(text, "<citations>", "</citations>").into_iter().flat_map(sentences) {
        for written in cite.cites {
            checked.listed.push(check_cite(snapshot, written, scope)?);
        }
    }
    Ok(checked)
}

fn check_cite(snapshot: &Snapshot, written: String, scope: Option<&Bits>) -> Result<CheckedCite> {
    let outcome = match Cite::parse(&written) {
        None => Err(Diagnostic::MalformedCite),
        Some(cite) => check(snapshot, &cite, scope)?,
    };
    Ok(CheckedCite { written, outcome })
}

/// Validates a text against a snapshot, as a table.
pub(crate) fn validate(snapshot: &Snapshot, text: &str, scope: Option<&Bits>) -> Result<Table> {
    let checked = check_memory(snapshot, text, scope)?;
    let mut rows = Vec::new();
    for sentence in &checked.sentences {
        if sentence.cites.is_empty() {
            rows.push(row(&sentence.text, None, Diagnostic::MissingCite.as_str(), None));
        }
        for CheckedCite { written, outcome } in &sentence.cites {
            let verdict = outcome.as_ref().map_or_else(|diagnostic| diagnostic.as_str(), |_| "valid");
            rows.push(row(&sentence.text, Some(written), verdict, outcome.clone().ok()));
        }
    }
    let verdict = checked.diagnostic.as_ref().map_or("valid", |(diagnostic, _)| diagnostic.as_str());
    let notes =
        vec![verdict.to_owned(), format!("coverage {:.3}, validity {:.3}", checked.coverage(), checked.validity())];
    let columns = ["sentence", "cite", "verdict", "text"].map(str::to_owned).to_vec();
    Ok(Table { verb: "verify", columns, rows, notes, failed: !checked.is_valid() })
}

fn row(sentence: &str, cite: Option<&String>, verdict: &str, text: Option<String>) -> Vec<Option<Cell>> {
    vec![
        Some(Cell::text(sentence)),
        cite.map(|cite| Cell::text(cite.as_str())),
        Some(Cell::text(verdict)),
        text.map(Cell::Text),
    ]
}

/// The texts between two tags. A block that is not closed is none.
fn blocks<'t>(text: &'t str, open: &str, close: &str) -> Vec<&'t str> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, inside)) = rest.split_once(open) {
        let Some((block, behind)) = inside.split_once(close) else { break };
        blocks.push(block);
        rest = behind;
    }
    blocks
}

/// The bytes at which the sentences of a text without citations end: behind `.`, `!` or `?` before a blank, other than
/// the dot of an abbreviation, and at line ends.
pub(crate) fn sentence_ends(text: &str) -> Vec<usize> {
    let (mut ends, mut start) = (Vec::new(), 0);
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let is_mark =
            matches!(c, '.' | '!' | '?') && text.get(end..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
        if c == '\n' || (is_mark && !(c == '.' && is_abbreviation(&text[start..at]))) {
            ends.push(end);
            start = end;
        }
    }
    ends.extend((start < text.len()).then_some(text.len()));
    ends
}

/// The sentences of a block. A sentence ends at a line end, at a citation, or at `.`, `!` or `?` before a blank, other
/// than the dot of an abbreviation; citations after it belong to it. Citations before the first sentence are a sentence
/// without words.
fn sentences(memory: &str) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut text = String::new();
    let mut rest = memory;
    let end = |text: &mut String, sentences: &mut Vec<Sentence>| {
        let said = std::mem::take(text);
        if said.chars().any(char::is_alphanumeric) {
            sentences.push(Sentence { text: said.trim().to_owned(), cites: Vec::new() });
        }
    };
    while let Some(next) = rest.chars().next() {
        if rest.starts_with(OPEN) {
            end(&mut text, &mut sentences);
            if sentences.is_empty() {
                sentences.push(Sentence { text: String::new(), cites: Vec::new() });
            }
            let len = len_of_cite(rest);
            if let Some(sentence) = sentences.last_mut() {
                sentence.cites.push(rest[..len].to_owned());
            }
            rest = &rest[len..];
            continue;
        }
        rest = &rest[next.len_utf8()..];
        let is_mark = matches!(next, '.' | '!' | '?') && rest.starts_with(char::is_whitespace);
        let is_end = next == '\n' || (is_mark && !(next == '.' && is_abbreviation(text.trim_start())));
        text.push(next);
        if is_end {
            end(&mut text, &mut sentences);
        }
    }
    end(&mut text, &mut sentences);
    sentences
}

/// The cited text, or the diagnostic. The bytes must match the given hash or, without one, the hash stored with a
/// pointer to the same span.
fn check(snapshot: &Snapshot, cite: &Cite, scope: Option<&Bits>) -> Result<Result<String, Diagnostic>> {
    let unresolved = Ok(Err(Diagnostic::UnresolvedPointer));
    let tool = cite.tool.as_deref().filter(|tool| !tool.is_empty());
    let Some(id) = snapshot.state.trace(tool, snapshot.state.symbol(&cite.log)?, cite.step)?.map(ItemId) else {
        return unresolved;
    };
    if id.0 >= snapshot.len() || scope.is_some_and(|scope| !scope.contains(id.0)) {
        return unresolved;
    }
    let attributes = snapshot.state.attributes(id)?;
    if attributes.redacted {
        return unresolved;
    }
    let content = snapshot.content(id)?;
    let Some(field) = content.field(&cite.field) else { return unresolved };
    let bytes = field.value.bytes();
    let span = if cite.chars { Span::Chars(cite.start, cite.end) } else { Span::Bytes(cite.start, cite.end) };
    let span = match cite.hash.is_none() && !cite.chars && !cite.is_unit_stated {
        true => match meant(snapshot, id, cite, bytes)? {
            Some(span) => span,
            None => return unresolved,
        },
        false => span,
    };
    // An empty span is evidence of nothing.
    let Some((start, end)) = span_bytes(bytes, &span).filter(|(start, end)| start < end) else { return unresolved };
    let found = *blake3::hash(&bytes[start..end]).as_bytes();
    let text = String::from_utf8_lossy(&bytes[start..end]).into_owned();
    if let Some(hash) = &cite.hash {
        let pointer = Pointer { hash: Some(hash.clone()), ..Pointer::to_item(id) };
        return Ok(check_hash(&pointer, &found).map(|()| text).map_err(|_| Diagnostic::HashMismatch));
    }
    for dependent in snapshot.state.dependents(id)? {
        for pointer in snapshot.state.pointers(dependent)? {
            let same = pointer.target == crate::records::record::PointerTarget::Item(id.0)
                && (pointer.field.as_str(), pointer.start, pointer.end) == (&cite.field, start as u64, end as u64);
            if same && pointer.hash != found {
                return Ok(Err(Diagnostic::HashMismatch));
            }
        }
    }
    Ok(Ok(text))
}

/// The span that offsets without a unit and without a hash mean. HELM counts characters, this database bytes: where the
/// two differ, the one that is a whole field, or that something stored cites, is meant; `None` if neither is.
fn meant(snapshot: &Snapshot, id: ItemId, cite: &Cite, bytes: &[u8]) -> Result<Option<Span>> {
    let (as_bytes, as_chars) = (Span::Bytes(cite.start, cite.end), Span::Chars(cite.start, cite.end));
    let (places, others) = (span_bytes(bytes, &as_bytes), span_bytes(bytes, &as_chars));
    if places == others || others.is_none() {
        return Ok(Some(as_bytes));
    }
    let mut cited = vec![(0, bytes.len())];
    for dependent in snapshot.state.dependents(id)? {
        for pointer in snapshot.state.pointers(dependent)? {
            let is_here = pointer.target == crate::records::record::PointerTarget::Item(id.0);
            if is_here && pointer.field == cite.field {
                cited.extend(usize::try_from(pointer.start).ok().zip(usize::try_from(pointer.end).ok()));
            }
        }
    }
    let is_cited = |place: Option<(usize, usize)>| place.is_some_and(|place| cited.contains(&place));
    Ok(if is_cited(places) { Some(as_bytes) } else { is_cited(others).then_some(as_chars) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prose that Algorithm 1 refused: every dot before a blank was an end.
    #[test]
    fn dots_of_abbreviations_end_no_sentence() {
        for text in ["Dr. Smith leaves at 9 a.m. from gate B7. [[CITE a]]", "1. The U.S. price is No. 5. [[CITE a]]"] {
            assert_eq!(sentences(text).len(), 1, "{text}");
        }
        assert_eq!(sentences("It is 9. It rains. [[CITE a]]").len(), 2);
        assert_eq!(sentence_ends("Dr. No left. It\nrained"), [12, 16, 22]);
    }

    #[test]
    fn sentences_take_the_citations_behind_them() {
        let found = sentences("One is 1.5 so. [[CITE a]] Two! [[CITE b]][[CITE c]]\nThree");
        let found: Vec<(&str, usize)> =
            found.iter().map(|sentence| (sentence.text.as_str(), sentence.cites.len())).collect();
        assert_eq!(found, [("One is 1.5 so.", 1), ("Two!", 2), ("Three", 0)]);
    }
}
