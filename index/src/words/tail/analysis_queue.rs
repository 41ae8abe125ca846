//! Documents that wait for their analysis, in batches.
//!
//! A batch copies the texts of its documents into one buffer and reuses the buffer afterwards. With one allocation per
//! document, the writer would allocate and the analysis thread free, which slows down both.

/// Documents per batch.
pub(crate) const BATCH: usize = 16;

/// Larger buffers are freed instead of reused.
const MAX_KEPT_ROOM: usize = 256 << 10;

/// A batch of up to [`BATCH`] documents.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The concatenated texts.
    text: String,
    /// The end in the text and the weight in sixteenths of each piece.
    pieces: Vec<(usize, u32)>,
    /// The id and the end of the pieces of each document.
    documents: Vec<(u32, usize)>,
}

impl Batch {
    /// An empty batch with about the capacity of another.
    pub(crate) fn like(other: &Self) -> Self {
        Self {
            text: String::with_capacity(other.text.len()),
            pieces: Vec::with_capacity(other.pieces.len()),
            documents: Vec::with_capacity(BATCH),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.documents.len() >= BATCH
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// The length of their text in bytes.
    pub(crate) fn text_len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn first_id(&self) -> Option<u32> {
        self.documents.first().map(|(id, _)| *id)
    }

    /// Adds a document, given as texts with weights.
    pub(crate) fn push<'t>(&mut self, id: u32, pieces: impl Iterator<Item = (&'t str, u32)>) {
        for (text, weight) in pieces {
            self.text.push_str(text);
            self.pieces.push((self.text.len(), weight));
        }
        self.documents.push((id, self.pieces.len()));
    }

    /// The documents in order: ids, and texts with weights.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = (&str, u32)>)> {
        let first_pieces = std::iter::once(0).chain(self.documents.iter().map(|(_, end)| *end));
        first_pieces.zip(&self.documents).map(|(first, &(id, end))| {
            let start = first.checked_sub(1).map_or(0, |before| self.pieces[before].0);
            let pieces = self.pieces[first..end].iter().scan(start, |start, &(end, weight)| {
                let text = &self.text[std::mem::replace(start, end)..end];
                Some((text, weight))
            });
            (id, pieces)
        })
    }

    /// The emptied batch for reuse, unless it is too large.
    pub(crate) fn emptied(mut self) -> Option<Self> {
        self.text.clear();
        self.pieces.clear();
        self.documents.clear();
        (self.text.capacity() <= MAX_KEPT_ROOM).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn documents_come_out_as_they_went_in(
            documents in proptest::collection::vec(
                proptest::collection::vec((".{0,9}", 0_u32..99), 0..4), 0..BATCH),
        ) {
            let mut batch = Batch::default();
            for _ in 0..2 {
                for (id, pieces) in (7..).zip(&documents) {
                    prop_assert!(!batch.is_full());
                    batch.push(id, pieces.iter().map(|(text, weight)| (text.as_str(), *weight)));
                }
                let found: Vec<(u32, Vec<(String, u32)>)> = batch
                    .documents()
                    .map(|(id, pieces)| (id, pieces.map(|(text, weight)| (text.to_owned(), weight)).collect()))
                    .collect();
                let expected: Vec<(u32, Vec<(String, u32)>)> = (7..).zip(documents.clone()).collect();
                prop_assert_eq!(found, expected);
                prop_assert_eq!(batch.first_id(), (!documents.is_empty()).then_some(7));
                prop_assert_eq!(batch.len(), documents.len());
                batch = batch.emptied().unwrap();
            }
        }
    }

    #[test]
    fn a_batch_of_a_long_text_is_not_kept() {
        let mut batch = Batch::default();
        batch.push(1, [(&*"x".repeat(MAX_KEPT_ROOM + 1), 1)].into_iter());
        assert!(batch.emptied().is_none());
    }
}
