//! The trace that holds the words of a foreign fact.
//!
//! A fact of another memory says that something is so, and not where it was said. If a trace holds its very words, the
//! fact cites them there. The words index names the traces that may, and their texts decide: case, blanks and marks
//! count. Short words prove nothing, since they occur anywhere.

use holotype::query::{Channel, Lines, Noun, Part};
use holotype::{Error, Snapshot, Stage, Weights};

/// Traces that are looked at.
const CANDIDATES: u64 = 8;
/// Fewer words or bytes are no evidence.
const LEAST_WORDS: usize = 3;
const LEAST_LEN: usize = 12;
/// Words of a longer quote that are searched for: all of it has to occur, and these find it.
const SEARCHED_LEN: usize = 1_000;

/// True if a quote is long enough to say something.
pub(crate) fn is_telling(quote: &str) -> bool {
    quote.len() >= LEAST_LEN && quote.split_whitespace().count() >= LEAST_WORDS
}

/// The key of a trace that holds a quote, with the bytes of its first occurrence.
pub(crate) fn find(snapshot: &Snapshot, quote: &str) -> Result<Option<(String, u64, u64)>, Error> {
    let quote = quote.trim();
    if !is_telling(quote) || snapshot.is_empty() {
        return Ok(None);
    }
    let searched = &quote[..quote.floor_char_boundary(SEARCHED_LEN)];
    let stage = Stage::of(Noun::Traces).keep(CANDIDATES).by([Channel::Words]);
    let recall = snapshot.recall(searched).through([stage]).limit(CANDIDATES);
    let answer = recall.score(Weights::zero().weight(Part::Words, 1.0)).lines(Lines::None).run()?;
    for row in &answer.rows {
        let content = snapshot.item(row.item)?.content;
        if let Some(start) = content.text().find(quote) {
            return Ok(Some((row.key.clone(), start as u64, (start + quote.len()) as u64)));
        }
    }
    Ok(None)
}
