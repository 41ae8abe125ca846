//! Refined logs (HELM 3.1): the salient fields of a long trace as a short recall, with a pointer to each field's bytes.
//!
//! ```text
//! trace t1     field text: 3,000 bytes of JSON, in it "price": 450 and "gate": "D24"
//! refined log  The price of ua123 is 450.       pointer t1.text[812..815]
//!              The gate of ua123 is d24.        pointer t1.text[1204..1207]
//! ```
//!
//! Salient are the fields that the caller names, else the claims extracted from the trace. Invariant: each line
//! of a refined log comes with a pointer to the bytes that say it, and a log without lines is not written.

use crate::extract::{self, ExtractOptions};
use crate::model::item::{ItemId, Kind, Layer, Origin};
use crate::model::pointer::Pointer;
use crate::records::record::FieldValue;
use crate::state::settings;
use crate::write::draft::NewRecall;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use std::collections::BTreeSet;

/// Lines of a refined log, at most.
const MOST_LINES: usize = 24;

impl Transaction<'_> {
    /// Stores the refined log of a trace: the named fields, or the claims extracted from it if none is named. Gives
    /// `None` if there is nothing salient. The log inherits the standing of its trace.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the item is no trace, or has no text in a field that is named.
    ///
    /// ```
    /// use holotype::{Durability, Holotype, NewTrace, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// let mut transaction = database.begin()?;
    /// let long = NewTrace::call("trip-42", "search", "a long page …").field("title", "UA123 to Oslo");
    /// let trace = transaction.record(long)?;
    /// let refined = transaction.refine(trace, &["title"])?.expect("it has a title");
    /// transaction.commit(Durability::Sync)?;
    /// assert_eq!(database.snapshot().item(refined)?.content.text(), "title: UA123 to Oslo");
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn refine(&mut self, trace: ItemId, fields: &[&str]) -> Result<Option<ItemId>> {
        let snapshot = self.snapshot()?;
        let attributes = snapshot.state.attributes(trace)?;
        if attributes.layer() != Layer::Trace {
            return Err(Error::Invalid(format!("{trace} is a {}; only traces are refined", attributes.kind)));
        }
        let content = snapshot.content(trace)?;
        let texts: Vec<(&str, &str)> = content
            .record
            .fields
            .iter()
            .filter(|field| matches!(field.value, FieldValue::Text(_) | FieldValue::Json(_)))
            .filter_map(|field| Some((field.name.as_str(), std::str::from_utf8(field.value.bytes()).ok()?)))
            .collect();
        let mut lines = Vec::new();
        for name in fields {
            let missing = || Error::Invalid(format!("{trace} has no text in a field `{name}`"));
            let (name, text) = texts.iter().find(|(other, _)| other == name).ok_or_else(missing)?;
            lines.push((format!("{name}: {text}"), Pointer::to_item(trace).field(*name)));
        }
        if fields.is_empty() {
            let inputs: Vec<_> = texts.iter().map(|(name, text)| extract::Field { name, text }).collect();
            let options = ExtractOptions { ignore: settings::ignored(&snapshot.state)?, ..ExtractOptions::default() };
            let mut names = BTreeSet::new();
            for claim in extract::extract(content.record.tool.as_deref(), &inputs, &options) {
                if !claim.span.is_empty() && names.insert((claim.name(), claim.value.clone())) {
                    let (start, end) = (claim.span.start as u64, claim.span.end as u64);
                    let pointer = Pointer::to_item(trace).field(texts[claim.field].0).bytes(start, end);
                    lines.push((format!("The {} is {}.", claim.name(), claim.value), pointer));
                }
            }
            lines.truncate(MOST_LINES);
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let text = lines.iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("\n");
        let mut recall = NewRecall::new(Kind::Refined, text.clone()).origin(Origin::Refined);
        recall.vector = self.text_vector(&text)?;
        let recall = lines.into_iter().fold(recall, |recall, (_, pointer)| recall.from(pointer));
        self.remember(recall).map(Some)
    }
}
