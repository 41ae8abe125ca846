//! The sets that filters begin with: the items of a noun, of a scope, of episodes, and by the value of an attribute.

use crate::Result;
use crate::model::item::{Kind, Layer};
use crate::read::cell::Cell;
use crate::read::filter::{Filter, episode_numbers};
use crate::records::tables;
use crate::state::attributes::{Column, ValueTest};
use holotype_index::bitmap::Bits;
use holotype_query::plan::Scope;
use holotype_query::{AttributeId, Name, Noun};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Intervals that are selected one after another before items are read one by one.
const MAX_INTERVALS: usize = 1_000;

/// The values of an attribute, with the items that have each.
pub(crate) type Groups = Vec<(Cell, Bits)>;

impl Filter<'_> {
    /// The items whose primary episode this is.
    pub(super) fn of_episode(&self, number: u32) -> Result<Bits> {
        self.select_values(Column::Episode, ValueTest::Range(i64::from(number), i64::from(number)))
    }

    /// The items of episodes, first or further ones.
    fn members(&self, episodes: &[u32]) -> Result<Bits> {
        let mut found = Bits::new();
        for number in episodes {
            found = found.or(&self.of_episode(*number)?);
            let also = self.state().scan(tables::EPISODE_MEMBER, &tables::numbers([*number]))?;
            let also: Bits = also.iter().filter_map(|(key, _)| tables::number_at(key, 4)).collect();
            found = found.or(&also);
        }
        Ok(found)
    }

    /// The items of the episodes with these ids; an id that no episode has selects nothing.
    pub(super) fn in_episodes(&self, ids: &[&String]) -> Result<Bits> {
        let mut known = Vec::with_capacity(ids.len());
        for id in ids {
            known.extend(self.state().episode_number(id)?);
        }
        self.members(&known)
    }

    /// The values that an attribute with few of them has in the database, with the items that have each; `None` for
    /// any other attribute.
    pub(crate) fn groups(&self, name: &Name) -> Result<Option<Groups>> {
        if !name.attribute().is_some_and(has_few_values) {
            return Ok(None);
        }
        let seen: RefCell<Vec<Cell>> = RefCell::new(Vec::new());
        let note = |cell: &Cell| {
            let mut seen = seen.borrow_mut();
            if !seen.contains(cell) {
                seen.push(cell.clone());
            }
            false
        };
        self.by_name(name, &note)?;
        let mut groups = Vec::new();
        for value in seen.into_inner() {
            groups.extend(self.by_name(name, &|cell| *cell == value)?.map(|found| (value.clone(), found)));
        }
        Ok(Some(groups))
    }

    /// The intervals of a width in which times lie, by `floor`, with the items of each; `None` if there are many.
    pub(crate) fn time_groups(&self, floor: impl Fn(i64) -> i64, width: u64) -> Result<Option<Groups>> {
        let starts: RefCell<BTreeSet<i64>> = RefCell::new(BTreeSet::new());
        let last = std::cell::Cell::new(None);
        self.select(Column::Time, &|time| {
            let start = floor(time as i64);
            if last.replace(Some(start)) != Some(start) {
                starts.borrow_mut().insert(start);
            }
            false
        })?;
        let starts = starts.into_inner();
        if starts.len() > MAX_INTERVALS {
            return Ok(None);
        }
        let width = i64::try_from(width.max(1)).unwrap_or(i64::MAX);
        let group = |start: i64| {
            let within = ValueTest::Range(start, start.saturating_add(width - 1));
            Ok((Cell::Time(start), self.select_values(Column::Time, within)?))
        };
        starts.into_iter().map(group).collect::<Result<Vec<_>>>().map(Some)
    }

    /// The items in scope.
    pub(crate) fn scope(&self, scope: Option<&Scope>) -> Result<Bits> {
        let state = self.state();
        match scope {
            None | Some(Scope::All) => Ok(Bits::full(state.bound())),
            Some(Scope::Episodes(ids)) => {
                // Themes without an episode are in no scope here; the recall plan adds them.
                self.members(&episode_numbers(state, ids)?)
            }
            Some(Scope::Pages(keys)) => {
                let mut traces = Vec::new();
                for key in keys {
                    traces.extend(self.snapshot.page_traces(key)?);
                }
                let mut found: Vec<u32> = traces.iter().map(|id| id.0).collect();
                for trace in traces {
                    found.extend(state.dependents(trace)?.iter().map(|id| id.0));
                }
                Ok(found.into_iter().collect())
            }
        }
    }

    /// The items of a noun.
    pub(crate) fn noun(&self, noun: Noun) -> Result<Bits> {
        let kind = |kind: Kind| self.select(Column::Kind, &|byte| byte as u8 == kind.to_byte());
        let layer = |of: Layer| {
            self.select(Column::Kind, &|byte| Kind::from_byte(byte as u8).is_some_and(|kind| kind.layer() == of))
        };
        match noun {
            Noun::Themes => layer(Layer::Theme),
            Noun::Concepts => kind(Kind::Concept),
            Noun::Intents => kind(Kind::Intent),
            Noun::Recalls => layer(Layer::Recall),
            Noun::Summaries => kind(Kind::Summary),
            Noun::Facts => kind(Kind::Fact),
            Noun::Procedures => kind(Kind::Procedure),
            Noun::Traces => layer(Layer::Trace),
            Noun::Turns => kind(Kind::Turn),
            Noun::Calls => kind(Kind::Call),
            Noun::Observations => kind(Kind::Observation),
            Noun::Items => Ok(Bits::full(self.state().bound())),
            Noun::Pages | Noun::Episodes => Ok(Bits::new()),
        }
    }
}

/// Returns true for an attribute that is kept as one byte an item.
fn has_few_values(attribute: AttributeId) -> bool {
    use AttributeId::{Active, Kind, Layer, Redacted, Source, Status, Support, Ungrounded};
    matches!(attribute, Active | Kind | Layer | Redacted | Source | Status | Support | Ungrounded)
}
