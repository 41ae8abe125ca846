//! The same corpora with facts and concepts that the built-in extractor draws: only traces are taken from the file.
//!
//! A fact whose text is one of the file's has the vector of that one, as a model would give it; any other has none.

use crate::Result;
use crate::dataset::Dataset;
use holotype::embed::{EmbedError, Embedder};
use holotype::structure::Roles;
use holotype::{Durability, ItemId, Layer, Snapshot};
use serde_json::Value;
use std::collections::HashMap;

/// Traces of a transaction.
const BATCH: usize = 500;

/// The vectors of texts that are known.
pub(super) struct KnownTexts {
    dim: usize,
    vectors: HashMap<String, Vec<f32>>,
}

impl std::fmt::Debug for KnownTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownTexts").field("texts", &self.vectors.len()).finish()
    }
}

impl Embedder for KnownTexts {
    fn fingerprint(&self) -> String {
        "bench".to_owned()
    }

    fn dimensions(&self) -> usize {
        self.dim
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        Ok(texts.iter().map(|text| self.vectors.get(*text).cloned()).collect())
    }
}

impl KnownTexts {
    /// The vectors of all recalls and themes of a database.
    pub(super) fn of(snapshot: &Snapshot) -> Result<KnownTexts> {
        let mut vectors = HashMap::new();
        for id in (0..snapshot.len()).map(ItemId) {
            let is_derived = snapshot.attributes(id)?.layer() != Layer::Trace;
            if let Some(vector) = snapshot.vector(id)?.filter(|_| is_derived) {
                vectors.insert(snapshot.item(id)?.content.text().to_owned(), vector);
            }
        }
        let dim = vectors.values().next().map_or(0, Vec::len);
        Ok(KnownTexts { dim, vectors })
    }
}

/// True for a line that extraction makes anew.
pub(crate) fn is_extracted(line: &Value) -> bool {
    ["recall", "theme", "link"].iter().any(|kind| line.get(kind).is_some())
}

/// Draws facts and concepts from every trace of a database.
pub(super) fn extract(dataset: &Dataset, known: Option<&KnownTexts>) -> Result<()> {
    let roles = Roles { embedder: known.map(|known| known as &dyn Embedder), ..Roles::default() };
    let traces: Vec<ItemId> = (0..dataset.database.snapshot().len()).map(ItemId).collect();
    for traces in traces.chunks(BATCH) {
        let mut transaction = dataset.database.begin()?;
        for trace in traces {
            transaction.induce(*trace, &roles)?;
        }
        transaction.commit(Durability::None)?;
    }
    dataset.database.checkpoint()?;
    Ok(())
}
