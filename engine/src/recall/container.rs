//! Containers of traces: the pages and the episodes that a stage can gather and a row can come from.

use crate::Result;
use crate::model::item::{Attributes, Layer};
use crate::read::snapshot::Snapshot;
use crate::state::attributes::{Column, ValueTest};
use holotype_query::Noun;

/// A page or an episode, which contains traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Container {
    /// A memory page, by number.
    Page(u32),
    /// An episode, by number.
    Episode(u32),
}

impl Container {
    /// The container of a trace; `None` while its page is open.
    pub(crate) fn of(noun: Noun, attributes: &Attributes) -> Option<Container> {
        match noun {
            Noun::Pages => attributes.page.map(Container::Page),
            Noun::Episodes => attributes.episode.map(Container::Episode),
            _ => None,
        }
    }

    /// Its name: `page p7`, `episode trip-42`.
    pub(crate) fn name(self, snapshot: &Snapshot) -> Result<String> {
        Ok(match self {
            Container::Page(number) => format!("page {}", snapshot.state.page(number)?.key),
            Container::Episode(number) => format!("episode {}", snapshot.state.episode(number)?.id),
        })
    }

    /// Its traces, in order.
    pub(crate) fn traces(self, snapshot: &Snapshot) -> Result<Vec<u32>> {
        let state = &snapshot.state;
        match self {
            Container::Page(number) => Ok(state.page(number)?.traces),
            Container::Episode(number) => {
                let wanted = ValueTest::Range(i64::from(number), i64::from(number));
                let of_episode = state.attributes.select_values(Column::Episode, state.bound(), wanted)?;
                Ok(of_episode.and(&state.attributes.layer(Layer::Trace, state.bound())?).iter().collect())
            }
        }
    }
}
