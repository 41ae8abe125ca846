//! The statements that a row of an answer shows, and how they are counted: the one place of this bench that knows
//! the form of rows.

use holotype::Prepared;
use holotype::answer::{Answer, Row};

/// The keys of the statements whose text is given: the row itself and its lines.
pub(super) fn told(row: &Row) -> impl Iterator<Item = &str> {
    std::iter::once(row.key.as_str()).chain(row.lines.iter().map(|line| line.key.as_str()))
}

/// The keys of the statements that a row shows: with text, or folded into it.
pub(super) fn shown(row: &Row) -> impl Iterator<Item = &str> {
    told(row).chain(row.folded.iter().map(String::as_str))
}

/// The tokens of a row with everything below it.
pub(super) fn tokens(row: &Row) -> u64 {
    u64::from(row.tokens) + row.lines.iter().map(|line| u64::from(holotype::tokens::count(&line.text))).sum::<u64>()
}

/// True if the stored evidence answers the question.
pub(super) fn is_answerable(answer: &Answer) -> bool {
    answer.answerable
}

/// The same recall with every statement as a row, where the language can say so.
pub(super) fn ungrouped(recall: &str) -> Option<String> {
    let alone = format!("{recall} lines none");
    Prepared::new(&alone).is_ok().then_some(alone)
}
