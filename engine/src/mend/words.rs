//! The words of a layer made again: of every item that no sound segment holds.
//!
//! Which items a damaged segment held is not asked of it, for its ids may be what is damaged. They are those of the layer,
//! numbered below where the last checkpoint stood, that stand in no other segment and were not forgotten. Their texts are
//! read from the log and analysed as when they were new; memory is bounded by a quarter of the limit, with one segment
//! written whenever that is reached and all of them merged at the end.

use crate::attributes::Column;
use crate::content::{ContentReader, OwnItems};
use crate::database::Inner;
use crate::files::Form;
use crate::item::{ItemId, Layer};
use crate::layers::{by_size, pieces};
use crate::sealing::{Sealed, Sealer};
use crate::snapshot::is_damage;
use crate::state::State;
use crate::tables::{self, Meta};
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_index::words::{WordSegment, WordTail};
use std::sync::Arc;

/// How much text waits in memory before it is analysed.
const QUEUED_LEN: usize = 1 << 20;

/// The word segments that a layer should have: those that are sound, all of whose bytes are read to be sure of it, and what is
/// made of the log in the place of the others. Returns the generations of these, too.
pub(super) fn again(
    inner: &Inner,
    state: &State,
    layer: Layer,
    sealed: &mut Sealed,
) -> Result<(Vec<Arc<WordSegment>>, Vec<u64>)> {
    let place = layer as u32;
    let index = &state.layer(layer).words;
    let (mut sound, mut damaged, mut covered) = (Vec::new(), Vec::new(), Bits::new());
    for segment in index.segments.iter() {
        if segment.is_damaged() || segment.verify().is_err() {
            damaged.push(segment.file().identity().generation);
        } else {
            covered = covered.or(&segment.ids()?.collect());
            sound.push(Arc::clone(segment));
        }
    }
    let missing = checkpointed(state, layer)?.and_not(&covered);
    let sealer = Sealer::of(inner, state);
    let mut made = Vec::new();
    analysed(inner, state, layer, &missing, &mut |tail| {
        made.push(sealer.word_tail(&tail, place, state.bound(), sealed)?);
        Ok(())
    })?;
    if made.len() > 1 {
        let sources = made.iter().map(AsRef::as_ref).collect();
        let merged = sealer.merged_words(index.analyzer, sources, place, sealed)?;
        for part in made.drain(..) {
            sealed.take_back(&inner.files, Form::Words, place, part.file().identity().generation);
        }
        made.push(merged);
    }
    sealed.dropped.extend(damaged.iter().map(|generation| (Form::Words, place, *generation)));
    sound.append(&mut made);
    by_size(&mut sound);
    Ok((sound, damaged))
}

/// Reads items of a layer from the log and analyses them; hands on what it has whenever that takes a quarter of the memory. What
/// the log has no more of is left out.
pub(crate) fn analysed(
    inner: &Inner,
    state: &State,
    layer: Layer,
    items: &Bits,
    take: &mut dyn FnMut(WordTail) -> Result<()>,
) -> Result<()> {
    let analyzer = state.layer(layer).words.analyzer;
    let reader = ContentReader { log: Arc::clone(&inner.log), own: OwnItems::new() };
    let mut tail = WordTail::new(analyzer);
    for id in items.iter() {
        let content = match reader.read(state, ItemId(id)) {
            Err(error) if is_damage(&error) => continue,
            content => content?,
        };
        if tail.push(id, &pieces(&content.record))? > QUEUED_LEN {
            tail.catch_up();
        }
        if tail.byte_len() as u64 > inner.options.memory_limit / 4 {
            take(std::mem::replace(&mut tail, WordTail::new(analyzer)))?;
        }
    }
    if tail.document_count() > 0 { take(tail) } else { Ok(()) }
}

/// The items of a layer whose words the last checkpoint put into segments, without what was forgotten.
pub(crate) fn checkpointed(state: &State, layer: Layer) -> Result<Bits> {
    let meta: Option<Meta> = state.get(tables::META, &[])?;
    let meta = meta.ok_or_else(|| Error::Corrupt { what: "the catalog has no totals".to_owned() })?;
    let bound = meta.items.min(state.bound());
    let redacted = state.attributes.select(Column::Redacted, bound, &|redacted| redacted == 1.0)?;
    Ok(state.attributes.layer(layer, bound)?.and_not(&redacted))
}
