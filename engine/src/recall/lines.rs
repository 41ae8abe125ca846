//! Lines: the other statements of a row's frame, as short as they can be told.
//!
//! A line shows the tokens in which its statement differs from the row's, with one token on each side, stretched to
//! blanks and joined by ` … `; the whole text if that is over 0.7 of it. Its label says whether the statement is
//! `earlier` or `later` than the row's (`also` where neither is newer), at which step or time. The label speaks of
//! time, not of validity.

use super::group::{Frame, Member};
use crate::Result;
use crate::memory::frames::{Relation, each_token};
use crate::model::item::{Attributes, ItemId, Status};
use crate::model::time;
use crate::model::tokens;
use crate::read::answer::{Line, Order};
use crate::read::snapshot::Snapshot;
use crate::state::conflicts::is_newer;
use std::ops::Range;

/// Tokens beside a difference that a line shows.
const AROUND: usize = 1;
/// The most bytes by which a snippet is stretched to a blank.
const MAX_STRETCH: usize = 12;
/// The share of its text from which a line shows all of it.
const WHOLE_SHARE: f64 = 0.7;
/// Separates the parts of a snippet.
const ELLIPSIS: &str = " … ";

/// A line before it is part of an answer.
pub(crate) struct Draft {
    pub(crate) id: ItemId,
    pub(crate) attributes: Attributes,
    order: Order,
    text: String,
    /// The length of its text in tokens; its label is not counted.
    pub(crate) tokens: u64,
}

impl Draft {
    /// The line of a member below the row of another one.
    pub(super) fn new(snapshot: &Snapshot, frame: &Frame, at: usize, leader: &Attributes) -> Result<Draft> {
        let member = &frame.members[at];
        let content = snapshot.content(member.scored.id)?;
        let text = snippet(content.text(), &differences(frame, member));
        let order = match (is_newer(&member.attributes, leader), is_newer(leader, &member.attributes)) {
            (true, _) => Order::Later,
            (_, true) => Order::Earlier,
            _ => Order::Also,
        };
        let tokens = u64::from(tokens::count(&text));
        Ok(Draft { id: member.scored.id, attributes: member.attributes.clone(), order, text, tokens })
    }

    /// The line of an answer, with its evidence read and hashed again.
    pub(super) fn line(self, snapshot: &Snapshot) -> Result<Line> {
        let state = &snapshot.state;
        let Draft { id, attributes, order, text, .. } = self;
        let episode = attributes.episode.map(|episode| state.episode_id(episode)).transpose()?;
        let status = attributes.status.filter(|status| *status == Status::Failed);
        let when = match (attributes.time, attributes.step) {
            (Some(micros), _) => Some(time::format(micros)),
            (None, Some(step)) => Some(format!("step {step}")),
            (None, None) => None,
        };
        let said: Vec<String> = when.into_iter().chain(status.map(|status| status.as_str().to_owned())).collect();
        let label = match said.is_empty() {
            true => order.as_str().to_owned(),
            false => format!("{} ({})", order.as_str(), said.join(", ")),
        };
        Ok(Line {
            item: id,
            key: snapshot.key_of(id)?,
            order,
            label,
            text,
            status: attributes.status,
            source: attributes.source,
            episode: episode.map(|id| id.as_ref().to_owned()),
            step: attributes.step,
            time: attributes.time,
            citations: super::rows::citations_of(snapshot, id, &attributes)?,
        })
    }
}

/// The tokens in which a member differs from the seed; of the seed, those in which the first other member differs.
fn differences(frame: &Frame, member: &Member) -> Vec<Range<usize>> {
    match &member.relation {
        Some(relation) => relation.differences().iter().map(|difference| difference.second.clone()).collect(),
        None => {
            let others = frame.members.iter().filter_map(|other| other.relation.as_ref());
            let first = others.map(Relation::differences).find(|differences| !differences.is_empty());
            first.unwrap_or_default().iter().map(|difference| difference.first.clone()).collect()
        }
    }
}

/// The parts of a text around ranges of its tokens.
fn snippet(text: &str, differing: &[Range<usize>]) -> String {
    let mut tokens = Vec::new();
    each_token(text, |_, range| tokens.push(range));
    let mut parts: Vec<Range<usize>> = Vec::new();
    for range in differing {
        let (from, to) = (range.start.saturating_sub(AROUND), (range.end + AROUND).min(tokens.len()));
        let Some((first, last)) = tokens.get(from).zip(to.checked_sub(1).and_then(|last| tokens.get(last))) else {
            continue;
        };
        if from >= to {
            continue;
        }
        let (start, end) = (stretch_left(text, first.start), stretch_right(text, last.end));
        match parts.last_mut().filter(|before| start <= before.end) {
            Some(before) => before.end = before.end.max(end),
            None => parts.push(start..end),
        }
    }
    let shown: Vec<&str> = parts.into_iter().filter_map(|part| text.get(part)).map(str::trim).collect();
    let shown = shown.join(ELLIPSIS);
    match shown.is_empty() || shown.len() as f64 >= WHOLE_SHARE * text.len() as f64 {
        true => text.to_owned(),
        false => shown,
    }
}

/// The beginning of the run without blanks before a place, at most [`MAX_STRETCH`] bytes.
fn stretch_left(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let run = before.char_indices().rev().take_while(|(start, c)| !c.is_whitespace() && at - start <= MAX_STRETCH);
    run.last().map_or(at, |(start, _)| start)
}

/// The end of the run without blanks behind a place, at most [`MAX_STRETCH`] bytes.
fn stretch_right(text: &str, at: usize) -> usize {
    let behind = text.get(at..).unwrap_or_default();
    let run = behind.char_indices().map(|(start, c)| (start + c.len_utf8(), c));
    run.take_while(|(end, c)| !c.is_whitespace() && *end <= MAX_STRETCH).last().map_or(at, |(end, _)| at + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_show_the_difference_and_a_token_beside_it() {
        let text = "The rent of the flat in Lisbon is $850.00, heating included, as agreed in January.";
        let of = |text: &str, differing: &[(usize, usize)]| {
            snippet(text, &differing.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>())
        };
        assert_eq!(of(text, &[(8, 9)]), "is $850.00, heating");
        assert_eq!(of(text, &[(2, 3), (13, 14)]), "rent of the … agreed in January.");
        assert_eq!(of("The rent is $850.", &[(3, 4)]), "is $850.");
        assert_eq!(of("Rent: $850.", &[(1, 2)]), "Rent: $850.");
        assert_eq!(of("The rent is $850.", &[]), "The rent is $850.");
    }
}
