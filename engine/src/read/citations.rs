//! Validating the citations of a text (HELM A.7, A.8, Algorithm 1).
//!
//! A text is a `<memory>…</memory>` block; its claims cite spans of traces:
//!
//! ```text
//! [[CITE tool=<t> log=<log_id> step=<s> field=<f> start=<i> end=<j>]]     optional: hash=<hex digits> unit=char
//! ```
//!
//! `tool=-` is no tool; `hash` is the first 16 to 64 hex digits of the span's BLAKE3 hash. A citation belongs to the
//! sentence before it. The verdict is `valid`, or the diagnostic that Algorithm 1 meets first, going through the
//! sentences in order and through the citations of each: *missing memory block*, *missing cite*, *malformed cite*,
//! *unresolved pointer*, *hash mismatch*. All sentences are shown, also behind the first diagnostic.
//!
//! 1. A sentence needs a citation of its own. A `<citations>…</citations>` block beside the memory is a listing: it
//!    excuses no sentence.
//! 2. A text with several memory blocks is checked in all of them.
//!
//! Coverage is the share of sentences with a valid citation, validity the share of citations that resolve.

use crate::Result;
use crate::model::item::ItemId;
use crate::model::pointer::{Pointer, Span, Target, span_bytes};
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::resolve::check_hash;
use crate::read::snapshot::Snapshot;

/// A diagnostic of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Diagnostic {
    MissingMemoryBlock,
    MissingCite,
    MalformedCite,
    UnresolvedPointer,
    HashMismatch,
}

impl Diagnostic {
    fn as_str(self) -> &'static str {
        match self {
            Diagnostic::MissingMemoryBlock => "missing memory block",
            Diagnostic::MissingCite => "missing cite",
            Diagnostic::MalformedCite => "malformed cite",
            Diagnostic::UnresolvedPointer => "unresolved pointer",
            Diagnostic::HashMismatch => "hash mismatch",
        }
    }
}

/// The fewest hex digits of a hash that tell one span from another.
const SHORTEST_HASH: usize = 16;
/// All of them.
const LONGEST_HASH: usize = 64;

/// A parsed citation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cite {
    tool: String,
    log: String,
    step: u64,
    field: String,
    start: u64,
    end: u64,
    hash: Option<String>,
    chars: bool,
}

/// A sentence with its citations as written.
struct Sentence {
    text: String,
    cites: Vec<String>,
}

/// Validates a text against a snapshot.
pub(crate) fn validate(snapshot: &Snapshot, text: &str) -> Result<Table> {
    let mut rows = Vec::new();
    let mut found: Option<Diagnostic> = None;
    let (mut cited, mut cites, mut valid) = (0u64, 0u64, 0u64);
    let blocks = memory_blocks(text);
    if blocks.is_empty() {
        found = Some(Diagnostic::MissingMemoryBlock);
    }
    let sentences: Vec<Sentence> = blocks.into_iter().flat_map(sentences).collect();
    for sentence in &sentences {
        let mut good = false;
        if sentence.cites.is_empty() {
            found.get_or_insert(Diagnostic::MissingCite);
            rows.push(row(&sentence.text, None, Diagnostic::MissingCite.as_str(), None));
        }
        for written in &sentence.cites {
            cites += 1;
            let checked = match parse(written) {
                None => Err(Diagnostic::MalformedCite),
                Some(cite) => check(snapshot, &cite)?,
            };
            match checked {
                Ok(text) => {
                    (good, valid) = (true, valid + 1);
                    rows.push(row(&sentence.text, Some(written), "valid", Some(text)));
                }
                Err(diagnostic) => {
                    found.get_or_insert(diagnostic);
                    rows.push(row(&sentence.text, Some(written), diagnostic.as_str(), None));
                }
            }
        }
        cited += u64::from(good);
    }
    let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
    let verdict = found.map_or("valid", Diagnostic::as_str);
    let notes = vec![
        verdict.to_owned(),
        format!("coverage {:.3}, validity {:.3}", share(cited, sentences.len() as u64), share(valid, cites)),
    ];
    let columns = ["sentence", "cite", "verdict", "text"].map(str::to_owned).to_vec();
    Ok(Table { verb: "verify", columns, rows, notes, failed: found.is_some() })
}

fn row(sentence: &str, cite: Option<&String>, verdict: &str, text: Option<String>) -> Vec<Option<Cell>> {
    vec![
        Some(Cell::text(sentence)),
        cite.map(|cite| Cell::text(cite.as_str())),
        Some(Cell::text(verdict)),
        text.map(Cell::Text),
    ]
}

/// The texts between `<memory>` and `</memory>`. A block that is not closed is none.
fn memory_blocks(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, inside)) = rest.split_once("<memory>") {
        let Some((block, behind)) = inside.split_once("</memory>") else { break };
        blocks.push(block);
        rest = behind;
    }
    blocks
}

/// The sentences of a block. A sentence ends at a line end, at a citation, or at `.`, `!` or `?` before a blank;
/// citations after it belong to it. Citations before the first sentence are a sentence without words.
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
        if let Some(after) = rest.strip_prefix("[[CITE") {
            end(&mut text, &mut sentences);
            if sentences.is_empty() {
                sentences.push(Sentence { text: String::new(), cites: Vec::new() });
            }
            let len = after.find("]]").map_or(after.len(), |at| at + 2);
            if let Some(sentence) = sentences.last_mut() {
                sentence.cites.push(rest[..6 + len].to_owned());
            }
            rest = &after[len..];
            continue;
        }
        rest = &rest[next.len_utf8()..];
        text.push(next);
        let is_end = next == '\n' || (matches!(next, '.' | '!' | '?') && rest.starts_with(char::is_whitespace));
        if is_end {
            end(&mut text, &mut sentences);
        }
    }
    end(&mut text, &mut sentences);
    sentences
}

/// A number in decimal digits alone.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

/// True for as many hex digits as a citation may give of a hash.
fn is_hash(text: &str) -> bool {
    (SHORTEST_HASH..=LONGEST_HASH).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Parses a citation; `None` if it is malformed.
fn parse(written: &str) -> Option<Cite> {
    let inner = written.strip_prefix("[[CITE")?.strip_suffix("]]")?;
    let mut cite = Cite::default();
    let mut seen = Vec::new();
    for part in inner.split_whitespace() {
        let (name, value) = part.split_once('=')?;
        if seen.contains(&name) {
            return None;
        }
        seen.push(name);
        match name {
            "tool" => cite.tool = if value == "-" { String::new() } else { value.to_owned() },
            "log" => value.clone_into(&mut cite.log),
            "step" => cite.step = number(value)?,
            "field" => value.clone_into(&mut cite.field),
            "start" => cite.start = number(value)?,
            "end" => cite.end = number(value)?,
            "hash" => cite.hash = Some(is_hash(value).then(|| value.to_owned())?),
            "unit" => {
                cite.chars = match value {
                    "char" => true,
                    "byte" => false,
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    ["tool", "log", "step", "field", "start", "end"].iter().all(|name| seen.contains(name)).then_some(cite)
}

/// The cited text, or the diagnostic. The bytes must match the given hash or, without one, the hash stored with a
/// pointer to the same span.
fn check(snapshot: &Snapshot, cite: &Cite) -> Result<Result<String, Diagnostic>> {
    let unresolved = Ok(Err(Diagnostic::UnresolvedPointer));
    let tool = Some(cite.tool.as_str()).filter(|tool| !tool.is_empty());
    let Some(id) = snapshot.state.trace(tool, snapshot.state.symbol(&cite.log)?, cite.step)?.map(ItemId) else {
        return unresolved;
    };
    let attributes = snapshot.state.attributes(id)?;
    if attributes.redacted {
        return unresolved;
    }
    let content = snapshot.content(id)?;
    let Some(field) = content.field(&cite.field) else { return unresolved };
    let bytes = field.value.bytes();
    let span = if cite.chars { Span::Chars(cite.start, cite.end) } else { Span::Bytes(cite.start, cite.end) };
    // An empty span is evidence of nothing.
    let Some((start, end)) = span_bytes(bytes, &span).filter(|(start, end)| start < end) else { return unresolved };
    let found = *blake3::hash(&bytes[start..end]).as_bytes();
    let text = String::from_utf8_lossy(&bytes[start..end]).into_owned();
    if let Some(hash) = &cite.hash {
        let pointer = Pointer { hash: Some(hash.clone()), ..Pointer::to_item(id) };
        debug_assert!(matches!(pointer.target, Target::Item(_)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_parse_in_their_form_only() {
        let good = "[[CITE tool=- log=e step=3 field=text start=0 end=5 unit=char]]";
        let cite = parse(good).unwrap();
        assert_eq!((cite.tool.as_str(), cite.log.as_str(), cite.step, cite.chars), ("", "e", 3, true));
        for bad in [
            "[[CITE tool=- log=e step=3 field=text start=0]]",
            "[[CITE tool=- log=e step=x field=text start=0 end=5]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 end=6]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 colour=red]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5",
            "[[CITE tool=- log=e step=+3 field=text start=0 end=5]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 hash=]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 hash=0123456789abcde]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 hash=0123456789abcdeg]]",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sentences_take_the_citations_behind_them() {
        let found = sentences("One is 1.5 so. [[CITE a]] Two! [[CITE b]][[CITE c]]\nThree");
        let found: Vec<(&str, usize)> =
            found.iter().map(|sentence| (sentence.text.as_str(), sentence.cites.len())).collect();
        assert_eq!(found, [("One is 1.5 so.", 1), ("Two!", 2), ("Three", 0)]);
    }
}
