//! Pages and episodes as rows, for `find pages`, `find episodes` and `only` in a stage of them.

use crate::Result;
use crate::read::cell::{Cell, Cells};
use crate::read::snapshot::Snapshot;
use crate::records::tables::{self, EpisodeRow, PageRow};
use crate::state::history::CommitFinder;
use holotype_query::{AttributeId, Noun, PageState};
use holotype_storage::codec;
use std::collections::BTreeMap;

/// The rows of all pages or all episodes with their numbers, oldest first. Empty for other nouns.
pub(crate) fn rows(snapshot: &Snapshot, noun: Noun) -> Result<Vec<(u32, Cells)>> {
    match noun {
        Noun::Pages => pages(snapshot),
        Noun::Episodes => episodes(snapshot),
        _ => Ok(Vec::new()),
    }
}

/// The traces that are not on a closed page.
pub(crate) fn without_page(snapshot: &Snapshot) -> Result<Vec<u32>> {
    let mut traces = Vec::new();
    for (_, value) in snapshot.state.scan(tables::EPISODE, &[])? {
        traces.extend(codec::decode::<EpisodeRow>(&value)?.open_page);
    }
    Ok(traces)
}

/// The state of a page.
pub(crate) fn page_state(summarised: bool) -> PageState {
    if summarised { PageState::Summarised } else { PageState::Unsummarised }
}

fn pages(snapshot: &Snapshot) -> Result<Vec<(u32, Cells)>> {
    let mut commits = CommitFinder::new(&snapshot.state, |totals| totals.pages);
    let mut rows = Vec::new();
    for (key, value) in snapshot.state.scan(tables::PAGE, &[])? {
        let number = tables::number_at(&key, 0).unwrap_or(u32::MAX);
        let page: PageRow = codec::decode(&value)?;
        let mut row = BTreeMap::from([
            (AttributeId::Key, Cell::Text(page.key)),
            (AttributeId::Episode, Cell::Text(snapshot.state.episode(page.episode)?.id.clone())),
            (AttributeId::Traces, Cell::count(page.traces.len() as u64)),
            (AttributeId::Tokens, Cell::count(page.tokens)),
            (AttributeId::State, Cell::text(page_state(page.summarised).as_str())),
            (AttributeId::Hash, Cell::Text(crate::model::pointer::hex(&page.hash))),
        ]);
        row.extend(commits.of(number)?.map(|commit| (AttributeId::Commit, Cell::count(commit))));
        rows.push((number, row));
    }
    Ok(rows)
}

fn episodes(snapshot: &Snapshot) -> Result<Vec<(u32, Cells)>> {
    let mut commits = CommitFinder::new(&snapshot.state, |totals| totals.episodes);
    let mut rows = Vec::new();
    for (key, value) in snapshot.state.scan(tables::EPISODE, &[])? {
        let number = tables::number_at(&key, 0).unwrap_or(u32::MAX);
        let episode: EpisodeRow = codec::decode(&value)?;
        let mut row = BTreeMap::from([
            (AttributeId::Episode, Cell::Text(episode.id)),
            (AttributeId::Open, Cell::Bool(episode.open)),
            (AttributeId::Traces, Cell::count(u64::from(episode.traces))),
            (AttributeId::Pages, Cell::count(u64::from(episode.pages))),
        ]);
        row.extend(episode.task.map(|task| (AttributeId::Task, Cell::Text(task))));
        row.extend(episode.version.map(|version| (AttributeId::Version, Cell::Text(version))));
        row.extend(commits.of(number)?.map(|commit| (AttributeId::Commit, Cell::count(commit))));
        rows.push((number, row));
    }
    Ok(rows)
}
