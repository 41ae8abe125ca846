//! `remember`: a claim with the quote that proves it, and what speaks against it.
//!
//! The quote is looked for as written, then without regard to case, white space and the forms of quotation marks and
//! dashes; what is stored are the bytes that stand in the item. A claim that is known in the same words gets one more
//! piece of evidence instead of a twin.

use super::{Effect, Outcome, described, properties, words};
use crate::memory::{Call, Memory, item};
use crate::problem::Problem;
use crate::quoting;
use crate::reply::Reply;
use holotype::answer::{Answer, Row};
use holotype::condition::attribute;
use holotype::{Durability, Item, Kind, NewRecall, Pointer, Snapshot, Status};
use rmcp::model::Tool;
use serde_json::{Value, json};
use std::ops::Range;

/// Claims that a new one is compared with.
const COMPARED: u64 = 6;
/// The share of the own score from which another claim counts as near.
const NEAR: f32 = 0.6;
/// Words in which two claims of the same may differ.
const MOST_OWN: usize = 6;
/// Characters shown of another claim.
const SHOWN: usize = 300;

/// The tool as clients are told of it.
pub(crate) fn tool() -> Tool {
    described(
        "remember",
        "Remember a claim",
        "Save a lasting fact, preference, decision or procedure for later sessions, proven by an exact quote from \
         a recorded item. Tells what it conflicts with and what is near.",
        Effect::Writes,
        (
            properties(
                &["claim", "quote", "from"],
                json!({
                    "claim": {"type": "string", "description": "one sentence that is clear without context"},
                    "quote": {"type": "string", "description": "exact words of the evidence"},
                    "from": {"type": "string", "description": "key of the item that has the quote"},
                    "kind": words(&["fact", "procedure", "summary"]),
                    "replaces": {"type": "string", "description": "key of the claim that this updates"},
                }),
            ),
            json!({"key": {"type": "string"}, "conflicts": {"type": "array"}, "near": {"type": "array"}}),
        ),
    )
}

pub(crate) fn run(call: &Call<'_>) -> Result<Outcome, Problem> {
    call.memory.check_writable()?;
    let arguments = &call.arguments;
    let claim = arguments.needed("claim")?.trim();
    let quote = arguments.needed("quote")?;
    let kind = match arguments.word("kind")? {
        Some(kind) => kind.parse::<Kind>().map_err(holotype::Error::from)?,
        None => Kind::Fact,
    };
    let snapshot = call.snapshot()?;
    let evidence = item(&snapshot, arguments.needed("from")?)?;
    let span = find_quote(&evidence, quote)?;
    let pointer = Pointer::to_item(evidence.id).bytes(span.start as u64, span.end as u64);
    let replaced = arguments.text("replaces")?.map(|key| item(&snapshot, key)).transpose()?;
    if let Some(replaced) = &replaced {
        check_replaced(replaced, kind, &arguments.word("kind")?)?;
    }
    if replaced.is_none()
        && let Some(known) = known(call.memory, &snapshot, claim, kind)?
    {
        return add_evidence(call, &known, &evidence, span, &pointer);
    }
    let recall = NewRecall::new(replaced.as_ref().map_or(kind, |item| item.attributes.kind), claim).from(pointer);
    let recall = match call.memory.vector(claim) {
        Some(vector) => recall.vector(vector),
        None => recall,
    };
    let mut transaction = call.memory.database.begin()?;
    let id = match &replaced {
        Some(old) => transaction.update(&old.key, recall)?,
        None => transaction.remember(recall)?,
    };
    let commit = transaction.commit(Durability::Sync)?;
    let snapshot = call.snapshot()?;
    let key = snapshot.key_of(id)?;
    let cited = evidence.content.text().get(span.clone()).unwrap_or_default();
    let opening = format!(
        "Remembered [{}] ({}), proven by {} in [{}].",
        quoting::name(&key),
        if replaced.is_some() { "updated" } else { "new" },
        quoting::quoted(cited, SHOWN),
        quoting::name(&evidence.key)
    );
    let mut reply = Reply::new(opening)
        .with("key", key.as_str())
        .with("status", if replaced.is_some() { "updated" } else { "new" })
        .with("commit", commit.number);
    note_evidence(&mut reply, &evidence);
    let (conflicts, near) = compare(call.memory, &snapshot, &key, claim)?;
    tell(&mut reply, &key, &conflicts, &near);
    Ok(reply.with("conflicts", conflicts).with("near", near).into())
}

/// Only claims are replaced, and by their own kind.
fn check_replaced(replaced: &Item, kind: Kind, stated: &Option<&str>) -> Result<(), Problem> {
    let (key, old) = (quoting::name(&replaced.key), replaced.attributes.kind);
    if old.layer() == holotype::Layer::Trace {
        let cause = format!("[{key}] is a {old}: what happened cannot be replaced");
        return Err(Problem::new(cause, "leave out `replaces`, or name a claim that remember or recall showed"));
    }
    if stated.is_some() && old != kind {
        let cause = format!("[{key}] is a {old} and cannot become a {kind}");
        return Err(Problem::new(cause, "leave out `kind`, or leave out `replaces`"));
    }
    Ok(())
}

fn note_evidence(reply: &mut Reply, evidence: &Item) {
    let key = quoting::name(&evidence.key);
    if evidence.attributes.status == Some(Status::Failed) {
        reply.note(format!("[{key}] is marked failed: recall leaves out what rests on nothing else."));
    }
    if !evidence.attributes.active {
        reply.note(format!("[{key}] is inactive."));
    }
}

/// An active claim of the same words and kind.
fn known(memory: &Memory, snapshot: &Snapshot, claim: &str, kind: Kind) -> Result<Option<Item>, Problem> {
    let answer = nearest_claims(memory, snapshot, claim)?;
    let same = answer.rows.iter().find(|row| row.kind == kind && row.text.trim() == claim);
    Ok(same.map(|row| snapshot.item(row.item)).transpose()?)
}

fn nearest_claims(memory: &Memory, snapshot: &Snapshot, claim: &str) -> Result<Answer, Problem> {
    let recalls = attribute("layer").is("recall");
    Ok(memory.recall(snapshot, claim).filter(recalls).limit(COMPARED).run()?)
}

fn add_evidence(
    call: &Call<'_>,
    known: &Item,
    evidence: &Item,
    span: Range<usize>,
    pointer: &Pointer,
) -> Result<Outcome, Problem> {
    let (key, from) = (quoting::name(&known.key), quoting::name(&evidence.key));
    let same = |cite: &holotype::answer::Citation| {
        cite.target == evidence.key && (cite.start, cite.end) == (span.start as u64, span.end as u64)
    };
    let has = call.snapshot()?.citations(known.id)?.iter().any(same);
    let reply = if has {
        Reply::new(format!("Known already as [{key}], with this quote of [{from}]; nothing was written."))
    } else {
        let mut transaction = call.memory.database.begin()?;
        transaction.cite(known.id, pointer)?;
        transaction.commit(Durability::Sync)?;
        Reply::new(format!("Known already as [{key}]; the quote of [{from}] was added to its evidence."))
    };
    let none = || Value::Array(Vec::new());
    Ok(reply
        .with("key", known.key.as_str())
        .with("status", "known")
        .with("conflicts", none())
        .with("near", none())
        .into())
}

/// Claims that say something else of the same, and claims that are near.
fn compare(memory: &Memory, snapshot: &Snapshot, key: &str, claim: &str) -> Result<(Vec<Value>, Vec<Value>), Problem> {
    let answer = nearest_claims(memory, snapshot, claim)?;
    let (mut conflicts, mut near) = (Vec::new(), Vec::new());
    let strength = |row: &Row| row.parts.similarity + row.parts.words;
    let own = answer.rows.iter().find(|row| row.key == key).map_or(0.0, strength);
    let said = |key: &str, text: &str| json!({"key": key, "text": quoting::head(text, SHOWN)});
    for row in &answer.rows {
        for line in row.lines.iter().filter(|line| line.key != key) {
            let text = snapshot.item(line.item)?.content.text().to_owned();
            let list = if differs(claim, &text) { &mut conflicts } else { &mut near };
            list.push(said(&line.key, &text));
        }
        if row.key == key {
            continue;
        }
        if row.conflict_key.as_deref() == Some(key) || differs(claim, &row.text) {
            conflicts.push(said(&row.key, &row.text));
        } else if own > 0.0 && strength(row) >= NEAR * own {
            near.push(said(&row.key, &row.text));
        }
    }
    Ok((conflicts, near))
}

/// True if two sentences are the same but for one place in which each has words of its own: `The rent is 850 dollars`,
/// `The rent is 900 dollars`.
fn differs(a: &str, b: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (a, b) = (words(a), words(b));
    let shorter = a.len().min(b.len());
    let before = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let behind = a.iter().rev().zip(b.iter().rev()).take(shorter - before).take_while(|(a, b)| a == b).count();
    let own = |words: &[String]| words.len() - before - behind;
    let shared = before + behind;
    (1..=MOST_OWN).contains(&own(&a)) && (1..=MOST_OWN).contains(&own(&b)) && shared >= 2 && 2 * shared >= shorter
}

fn tell(reply: &mut Reply, key: &str, conflicts: &[Value], near: &[Value]) {
    let list = |items: &[Value]| {
        let said = |item: &Value| {
            let of = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("[{}] {}", quoting::name(of("key")), quoting::quoted(of("text"), SHOWN))
        };
        items.iter().map(said).collect::<Vec<_>>().join("; ")
    };
    if !conflicts.is_empty() {
        reply.note(format!(
            "It conflicts with {}. If that is outdated, mark it inactive; both are shown until then.",
            list(conflicts)
        ));
    }
    if !near.is_empty() {
        reply.note(format!(
            "Near it: {}. If one says the same, mark [{}] inactive or update that one with `replaces`.",
            list(near),
            quoting::name(key)
        ));
    }
}

/// The bytes of an item's text that a quote names.
fn find_quote(evidence: &Item, quote: &str) -> Result<Range<usize>, Problem> {
    let (text, key) = (evidence.content.text(), quoting::name(&evidence.key));
    if evidence.attributes.redacted {
        let cause = format!("the text of [{key}] was forgotten");
        return Err(Problem::new(cause, "quote another item"));
    }
    let exact: Vec<usize> = text.match_indices(quote).map(|(at, _)| at).take(2).collect();
    if let [at] = exact[..] {
        return Ok(at..at + quote.len());
    }
    let loose = if exact.is_empty() { loosely(text, quote) } else { Vec::new() };
    match (exact.len(), loose.as_slice()) {
        (0, [span]) => Ok(span.clone()),
        (0, []) => Err(Problem::new(
            format!("the quote {} is not in [{key}]", quoting::quoted(quote, 120)),
            format!("copy words of it exactly; nearest is {}", quoting::quoted(nearest_passage(text, quote), SHOWN)),
        )),
        _ => Err(Problem::new(
            format!("the quote {} is in [{key}] more than once", quoting::quoted(quote, 120)),
            "quote some words more before or after it",
        )),
    }
}

/// A character as it is compared: without case and form; `None` for white space.
fn folded(c: char) -> Option<char> {
    match c {
        c if c.is_whitespace() => None,
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '`' | '\u{b4}' => Some('\''),
        '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' => Some('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        c => c.to_lowercase().next(),
    }
}

/// The first two places of a quote, without regard to case, white space and forms.
fn loosely(text: &str, quote: &str) -> Vec<Range<usize>> {
    let sought: String = quote.chars().filter_map(folded).collect();
    if sought.is_empty() {
        return Vec::new();
    }
    let mut plain = String::with_capacity(text.len());
    // The range in `text` of the character that begins at each byte of `plain`.
    let mut places: Vec<(usize, Range<usize>)> = Vec::new();
    for (at, c) in text.char_indices() {
        if let Some(c_folded) = folded(c) {
            places.push((plain.len(), at..at + c.len_utf8()));
            plain.push(c_folded);
        }
    }
    let place = |at: usize| places.binary_search_by_key(&at, |(start, _)| *start).ok().map(|index| &places[index].1);
    let last = sought.chars().next_back().map_or(0, char::len_utf8);
    let found = plain.match_indices(&sought).take(2);
    found.filter_map(|(at, _)| Some(place(at)?.start..place(at + sought.len() - last)?.end)).collect()
}

/// The passage of a text that shares most words with a quote, as long as it.
fn nearest_passage<'t>(text: &'t str, quote: &str) -> &'t str {
    let plain = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let sought: std::collections::HashSet<String> = quote.split_whitespace().map(plain).collect();
    let words: Vec<Range<usize>> = text
        .split_whitespace()
        .map(|word| {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            at..at + word.len()
        })
        .collect();
    let len = quote.split_whitespace().count().clamp(3, 40);
    let matching: Vec<bool> = words.iter().map(|word| sought.contains(&plain(&text[word.clone()]))).collect();
    // Of equal passages, one that begins with a word of the quote.
    let score = |at: usize| {
        let shared = matching[at..].iter().take(len).filter(|matches| **matches).count();
        2 * shared + usize::from(matching[at])
    };
    // Reversed, since the last of equal ones is taken.
    let best = (0..words.len()).rev().max_by_key(|at| score(*at)).unwrap_or(0);
    let end = words.get(best + len - 1).or(words.last()).map_or(0, |word| word.end);
    let start = words.get(best).map_or(0, |word| word.start);
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_found_in_another_form() {
        let text = "He said:\n  “Don’t   MOVE — it”, twice.";
        let spans = loosely(text, "\"don't move - it\"");
        assert_eq!(spans.len(), 1);
        assert_eq!(&text[spans[0].clone()], "“Don’t   MOVE — it”");
        assert_eq!(loosely("aa bb aa", "AA").len(), 2);
        assert!(loosely("abc", "  ").is_empty() && loosely("abc", "abd").is_empty());
    }

    #[test]
    fn claims_of_the_same_differ_in_one_place() {
        assert!(differs("The rent is 850 dollars.", "the rent is 900 dollars"));
        assert!(differs("The service uses Postgres 15", "The service uses Redis"));
        assert!(!differs("The rent is 850 dollars.", "The rent is 850 dollars"));
        assert!(!differs("The rent is 850", "The rent is 850 from May on"));
        assert!(!differs("The rent is 850", "Tea is at four"));
        assert!(!differs("", "") && !differs("a", "b"));
    }

    #[test]
    fn the_nearest_passage_shares_most_words() {
        let text = "The rent was 850 dollars in May. Since June the rent is 900 dollars a month.";
        assert_eq!(nearest_passage(text, "rent is 950 dollars"), "the rent is 900 dollars".split_at(4).1);
        assert_eq!(nearest_passage("", "x"), "");
    }
}
