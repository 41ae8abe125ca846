//! Repair of word segments: the items that no intact segment holds are analysed again.
//!
//! The ids in a damaged segment may themselves be damaged. The lost items are computed instead: the items of the layer
//! below the last checkpoint's bound that are in no other segment and are not forgotten. Their texts are read from the
//! log. A segment is written whenever the new tail fills a quarter of the memory limit; all of them are merged at the
//! end.

use crate::core::Core;
use crate::core::files::Form;
use crate::derive::derived_writer::{DerivedWriter, ManifestChanges};
use crate::model::item::{ItemId, Layer};
use crate::read::snapshot::is_damage;
use crate::records::tables::{self, Meta};
use crate::state::State;
use crate::state::attributes::Column;
use crate::state::content::{ContentReader, OwnItems};
use crate::state::layers::{by_size, pieces};
use crate::state::pages::is_event;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_index::words::{WordSegment, WordTail};
use std::sync::Arc;

/// The bytes of text that are queued before they are analysed.
const QUEUED_LEN: usize = 1 << 20;

/// The word segments of a layer after repair: the intact ones, verified in full, and one rebuilt from the log. Also
/// returns the generations of the damaged ones.
pub(super) fn rebuild_words(
    core: &Core,
    state: &State,
    layer: Layer,
    changes: &mut ManifestChanges,
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
    let missing = checkpointed_items(state, layer)?.and_not(&covered);
    let files_writer = DerivedWriter::of(core, state.head);
    let mut made = Vec::new();
    analyse_items(core, state, layer, &missing, &mut |tail| {
        made.push(files_writer.word_tail(&tail, place, state.bound(), changes)?);
        Ok(())
    })?;
    if made.len() > 1 {
        let sources = made.iter().map(AsRef::as_ref).collect();
        let merged = files_writer.merged_words(index.analyzer, sources, place, changes, None)?;
        for part in made.drain(..) {
            changes.discard_file(&core.files, Form::Words, place, part.file().identity().generation);
        }
        made.push(merged);
    }
    changes.replaced.extend(damaged.iter().map(|generation| (Form::Words, place, *generation)));
    sound.append(&mut made);
    by_size(&mut sound);
    Ok((sound, damaged))
}

/// Reads items of a layer from the log and analyses them. `take` receives a tail whenever it fills a quarter of the
/// memory limit, and the last one. Items whose records are damaged or erased are left out.
pub(crate) fn analyse_items(
    core: &Core,
    state: &State,
    layer: Layer,
    items: &Bits,
    take: &mut dyn FnMut(WordTail) -> Result<()>,
) -> Result<()> {
    let analyzer = state.layer(layer).words.analyzer;
    let reader = ContentReader { log: Arc::clone(&core.log), own: OwnItems::new() };
    let mut tail = WordTail::new(analyzer);
    for id in items.iter() {
        let content = match reader.read(state, ItemId(id)) {
            Err(error) if is_damage(&error) => continue,
            content => content?,
        };
        if is_event(content.record.tool.as_deref()) {
            continue;
        }
        if tail.push(id, &pieces(&content.record))? > QUEUED_LEN {
            tail.catch_up();
        }
        if tail.byte_len() as u64 > core.options.memory_limit / 4 {
            take(std::mem::replace(&mut tail, WordTail::new(analyzer)))?;
        }
    }
    if tail.document_count() > 0 { take(tail) } else { Ok(()) }
}

/// The items of a layer that the last checkpoint wrote to segments, except forgotten ones.
pub(crate) fn checkpointed_items(state: &State, layer: Layer) -> Result<Bits> {
    let meta: Option<Meta> = state.get(tables::META, &[])?;
    let meta = meta.ok_or_else(|| Error::Corrupt { what: "the catalog has no totals".to_owned() })?;
    let bound = meta.items.min(state.bound());
    let redacted = state.attributes.select(Column::Redacted, bound, &|redacted| redacted == 1.0)?;
    Ok(state.attributes.layer(layer, bound)?.and_not(&redacted))
}
