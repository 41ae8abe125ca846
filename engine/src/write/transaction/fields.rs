//! Fields and labels of new items: their checks, and the labels that a recall takes from its evidence.

use super::Transaction;
use crate::Error;
use crate::Result;
use crate::model::item::ItemId;
use crate::records::field::{self, LABELS};
use crate::records::record::{Field, PointerRecord, PointerTarget};
use crate::state::content::CHUNK_LEN;
use std::collections::{BTreeSet, HashSet};

/// The longest label, in bytes.
const MAX_LABEL_LEN: usize = 512;

/// Refuses names that are empty or given twice, and values that are too long.
pub(super) fn check(fields: &[Field]) -> Result<()> {
    let limit = (64 * CHUNK_LEN) as u64;
    let mut seen = HashSet::new();
    for field in fields {
        if field.name.is_empty() || !seen.insert(field.name.as_str()) {
            return Err(Error::Invalid(format!("field {:?}: field names must be unique and not empty", field.name)));
        }
        let needed = field.value.bytes().len() as u64;
        if needed > limit {
            return Err(Error::Limit { what: "the length of a field in bytes", limit, needed });
        }
    }
    Ok(())
}

/// Adds labels to the fields of an item, to those that a field `labels` gives.
pub(super) fn add_labels(fields: &mut Vec<Field>, labels: Vec<String>) -> Result<()> {
    for label in &labels {
        if label.is_empty() || label.len() > MAX_LABEL_LEN || label.contains([',', '\0']) {
            let expected = format!("expected 1 to {MAX_LABEL_LEN} bytes without a comma and without NUL");
            return Err(Error::Invalid(format!("label {label:?}: {expected}")));
        }
    }
    if labels.is_empty() {
        return Ok(());
    }
    let given = field::labels(fields);
    fields.retain(|field| field.name != LABELS);
    fields.extend(field::of_labels(given.into_iter().chain(labels)));
    Ok(())
}

impl Transaction<'_> {
    /// The labels of what an item rests on, as a field.
    pub(super) fn labels_of_evidence(&self, from: &[PointerRecord], children: &[ItemId]) -> Result<Option<Field>> {
        let mut evidence: BTreeSet<u32> = children.iter().map(|child| child.0).collect();
        for pointer in from {
            match pointer.target {
                PointerTarget::Item(item) => drop(evidence.insert(item)),
                PointerTarget::Page(page) => evidence.extend(self.state.page(page)?.traces.iter().copied()),
            }
        }
        let mut labels = Vec::new();
        for item in evidence {
            labels.extend(field::labels(&self.content(ItemId(item))?.record.fields));
        }
        Ok(field::of_labels(labels))
    }

    /// The fields of an item that a newer one takes over: those that `stated` does not have.
    pub(super) fn fields_to_keep(&self, old: ItemId, stated: &[Field]) -> Result<Vec<Field>> {
        let is_stated = |name: &str| name == "text" || stated.iter().any(|field| field.name == name);
        let old = self.content(old)?;
        Ok(old.record.fields.iter().filter(|field| !is_stated(&field.name)).cloned().collect())
    }
}
