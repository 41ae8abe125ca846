//! Figures about a database: what it holds, in which files.

use crate::Result;
use crate::core::handle::Holotype;
use crate::model::item::{Kind, Layer};
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::state::State;
use crate::state::attributes::Column;
use crate::state::layers::LayerIndex;

impl Holotype {
    /// What the database holds, as rows of a name and a value.
    pub fn stats(&self) -> Result<Table> {
        let mut table = stats(&self.snapshot())?;
        let mut row = |name: &str, value: Cell| table.rows.push(vec![Some(Cell::text(name)), Some(value)]);
        row("log bytes", Cell::count(self.core.log.end().0));
        row("log bytes known durable", Cell::count(self.core.log.durable().0));
        let verified = self.verified()?;
        row("log segments", Cell::count(verified.len() as u64));
        let times: Vec<i64> = verified.iter().filter_map(|(_, time)| *time).collect();
        row("log segments ever verified", Cell::count(times.len() as u64));
        if let Some(oldest) = times.iter().min() {
            row("oldest verification of a segment", Cell::Text(crate::model::time::format(*oldest)));
        }
        row("log page size", Cell::count(u64::from(self.core.log.page_size())));
        let limits = self.core.limits(&self.core.lock_writer());
        for limit in &limits {
            let max = limit.max.map_or("no limit".to_owned(), |max| max.to_string());
            row(limit.limit, Cell::Text(format!("{} of {max}", limit.used)));
        }
        let oldest = self.core.throttle.oldest_snapshot().map_or("none".to_owned(), crate::model::time::format);
        row("oldest snapshot", Cell::Text(oldest));
        row("merge debt", Cell::count(merge_debt(&self.core.published.load())));
        if let Some(catalog) = self.core.published.load().rows.base() {
            row("catalog bytes", Cell::count(catalog.file_len()?));
        }
        Ok(table)
    }
}

/// The items that a merge of each layer into one segment would write anew: those of all segments but the largest.
fn merge_debt(state: &State) -> u64 {
    let debt = |sizes: Vec<u64>| sizes.iter().sum::<u64>() - sizes.iter().max().copied().unwrap_or_default();
    let of_layer = |layer: &LayerIndex| {
        let words = layer.words.segments.iter().map(|segment| u64::from(segment.document_count())).collect();
        let vectors = layer.vectors.iter().flat_map(|vectors| vectors.segments.iter());
        debt(words) + debt(vectors.map(|segment| segment.len() as u64).collect())
    };
    state.layers.iter().map(of_layer).sum()
}

pub(crate) fn stats(snapshot: &Snapshot) -> Result<Table> {
    let state = &snapshot.state;
    let mut rows = Vec::new();
    let mut row = |name: String, value: Cell| rows.push(vec![Some(Cell::Text(name)), Some(value)]);
    row("commit".to_owned(), Cell::count(state.meta.commit));
    row("items".to_owned(), Cell::count(u64::from(state.bound())));
    for kind in Kind::ALL {
        let count = state.attributes.select(Column::Kind, state.bound(), &|byte| byte as u8 == kind.to_byte())?.count();
        if count > 0 {
            row(format!("  {kind}"), Cell::count(count));
        }
    }
    let inactive = state.attributes.select(Column::Active, state.bound(), &|active| active == 0.0)?.count();
    row("inactive items".to_owned(), Cell::count(inactive));
    row("episodes".to_owned(), Cell::count(u64::from(state.meta.episodes)));
    row("pages".to_owned(), Cell::count(u64::from(state.meta.pages)));
    row("edges ever made".to_owned(), Cell::count(u64::from(state.meta.edges)));
    row("claims".to_owned(), Cell::count(u64::from(state.meta.claims)));
    let space = snapshot.space()?.map_or("none".to_owned(), |space| space.to_string());
    row("embedding space".to_owned(), Cell::Text(space));
    let mut vectors = 0;
    for layer in &state.layers {
        vectors += layer.vector_index()?.map_or(0, |index| index.len() as u64);
    }
    row("vectors".to_owned(), Cell::count(vectors));
    Ok(Table { verb: "stats", columns: ["name", "value"].map(str::to_owned).to_vec(), rows, ..Table::default() })
}

/// The segments and tails of each layer.
pub(crate) fn segments(snapshot: &Snapshot) -> Result<Table> {
    let mut rows = Vec::new();
    for layer in Layer::ALL {
        let index = snapshot.state.layer(*layer);
        let mut row = |form: &str, part: &str, count: usize, bytes: Option<u64>| {
            rows.push(vec![
                Some(Cell::text(layer.as_str())),
                Some(Cell::text(form)),
                Some(Cell::text(part)),
                Some(Cell::count(count as u64)),
                bytes.map(Cell::count),
            ]);
        };
        if let Some(vectors) = &index.vectors {
            for segment in vectors.segments.iter() {
                row(
                    "vectors",
                    if segment.has_graph() { "graph" } else { "flat" },
                    segment.len(),
                    Some(segment.file().file_len()),
                );
            }
            row("vectors", "tail", vectors.tail.len(), None);
        }
        for segment in index.words.segments.iter() {
            row("words", "segment", segment.document_count() as usize, Some(segment.file_len()));
        }
        row("words", "tail", index.words.tails.iter().map(|tail| tail.document_count()).sum(), None);
    }
    let columns = ["layer", "form", "part", "items", "bytes"].map(str::to_owned).to_vec();
    Ok(Table { verb: "show", columns, rows, ..Table::default() })
}
