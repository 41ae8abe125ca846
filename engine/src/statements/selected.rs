//! The items that a write goes over: `{ in … | where … | at … }`.

use super::listing::items;
use crate::Result;
use crate::read::filter::episode_numbers;
use crate::read::snapshot::Snapshot;
use crate::recall::reader_of;
use crate::state::reader_position::{Reader, ReaderPosition};
use holotype_index::bitmap::Bits;
use holotype_query::Noun;
use holotype_query::plan::{Listing, Scope, Selection};

/// The selected items of a noun, and where the reader stands: where the selection says, else at `reader`.
pub(crate) fn selected(
    snapshot: &Snapshot,
    noun: Noun,
    selection: &Selection,
    reader: &Reader,
) -> Result<(ReaderPosition, Bits)> {
    let episodes = match &selection.scope {
        Some(Scope::Episodes(ids)) => Some(episode_numbers(&snapshot.state, ids)?),
        _ => None,
    };
    let given = selection.reader.as_ref().map_or_else(|| reader.clone(), |reader| reader_of(reader));
    let position = ReaderPosition::find(&snapshot.state, episodes.as_deref(), &given, snapshot.core.now())?;
    let (scope, filter) = (selection.scope.clone(), selection.filter.clone());
    let found = items(snapshot, &position, noun, &Listing { scope, filter, ..Listing::default() }, None)?;
    let found = found.iter().map(|id| id.0).collect();
    Ok((position, found))
}

/// The selection of everything in one episode.
pub(crate) fn in_episode(id: String) -> Selection {
    let scope = Scope::Episodes(vec![id]);
    Selection { scope: Some(scope), ..Selection::default() }
}
