//! Vectors of texts that come without one, by the embedder of the options or a role's.

use super::Transaction;
use crate::Result;
use crate::model::embed::{self, Embedder};
use crate::model::item::ItemId;
use crate::model::space::Space;
use crate::records::record::{FieldValue, Record, SettingRecord};
use crate::state::embedder::{FINGERPRINT, canonical};
use crate::state::pages::is_event;
use crate::write::draft::{NewRecall, NewTrace};
use std::borrow::Cow;

impl Transaction<'_> {
    /// Records traces in their order; all texts without a vector are embedded in one call.
    ///
    /// # Errors
    /// As [`Transaction::record`]; [`Error::Embedder`](crate::Error::Embedder). Then none is recorded.
    pub fn record_all(&mut self, traces: impl IntoIterator<Item = NewTrace>) -> Result<Vec<ItemId>> {
        let mut traces: Vec<NewTrace> = traces.into_iter().collect();
        self.atomically(|transaction| {
            let texts: Vec<Option<Cow<'_, str>>> =
                traces.iter().map(|trace| text_of(trace).filter(|_| trace.vector.is_none())).collect();
            let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
            let vectors = transaction.configured_vectors(&texts)?;
            for (trace, vector) in traces.iter_mut().zip(vectors) {
                trace.vector = trace.vector.take().or(vector);
            }
            traces.into_iter().map(|trace| transaction.record(trace)).collect()
        })
    }

    /// Remembers recalls and themes in their order; all texts without a vector are embedded in one call.
    ///
    /// # Errors
    /// As [`Transaction::remember`]; [`Error::Embedder`](crate::Error::Embedder). Then none is remembered.
    pub fn remember_all(&mut self, recalls: impl IntoIterator<Item = NewRecall>) -> Result<Vec<ItemId>> {
        let mut recalls: Vec<NewRecall> = recalls.into_iter().collect();
        self.atomically(|transaction| {
            let texts: Vec<Option<&str>> =
                recalls.iter().map(|recall| recall.vector.is_none().then_some(recall.text.as_str())).collect();
            let vectors = transaction.configured_vectors(&texts)?;
            for (recall, vector) in recalls.iter_mut().zip(vectors) {
                recall.vector = recall.vector.take().or(vector);
            }
            recalls.into_iter().map(|recall| transaction.remember(recall)).collect()
        })
    }

    /// Records the fingerprint of [`Options::embedder`](crate::Options::embedder), as for a vector that it makes: for a
    /// caller who embeds by the same model and gives the vectors. Without an embedder it does nothing.
    ///
    /// # Errors
    /// [`Error::OtherEmbedder`](crate::Error::OtherEmbedder); [`Error::Vector`](crate::Error::Vector) for another
    /// dimension than the space's.
    pub fn note_embedder(&mut self) -> Result<()> {
        match self.core.options.embedder.clone() {
            Some(embedder) => self.adopt(embedder.as_ref()),
            None => Ok(()),
        }
    }

    /// The vector of a text by the embedder of the options, or by the built-in one in its space.
    ///
    /// # Errors
    /// [`Error::Embedder`](crate::Error::Embedder), [`Error::OtherEmbedder`](crate::Error::OtherEmbedder).
    pub fn text_vector(&mut self, text: &str) -> Result<Option<Vec<f32>>> {
        match self.state.embedder(self.core.options.embedder.as_ref())? {
            Some(embedder) => self.vector_by(embedder.as_ref(), text),
            None => Ok(None),
        }
    }

    /// The vector of a new trace, of its text behind its speaker, as [`Transaction::text_vector`] makes it.
    ///
    /// # Errors
    /// As [`Transaction::text_vector`].
    pub fn vector_for(&mut self, trace: &NewTrace) -> Result<Option<Vec<f32>>> {
        text_of(trace).map_or(Ok(None), |text| self.text_vector(&text))
    }

    /// The vector of the text of a new trace by the embedder of the options.
    pub(super) fn trace_vector(&mut self, trace: &NewTrace) -> Result<Option<Vec<f32>>> {
        match text_of(trace).filter(|_| !is_event(trace.tool.as_deref())) {
            Some(text) => self.configured_vector(&text),
            None => Ok(None),
        }
    }

    /// The vector of a text by the embedder of the options.
    pub(super) fn configured_vector(&mut self, text: &str) -> Result<Option<Vec<f32>>> {
        match self.core.options.embedder.clone() {
            Some(embedder) => {
                self.state.check_embedder(embedder.as_ref())?;
                self.vector_by(embedder.as_ref(), text)
            }
            None => Ok(None),
        }
    }

    /// The vectors of the texts that are there, by the embedder of the options, in one call.
    fn configured_vectors(&mut self, texts: &[Option<&str>]) -> Result<Vec<Option<Vec<f32>>>> {
        let given: Vec<&str> = texts.iter().copied().flatten().collect();
        let Some(embedder) = self.core.options.embedder.clone().filter(|_| !given.is_empty()) else {
            return Ok(vec![None; texts.len()]);
        };
        self.state.check_embedder(embedder.as_ref())?;
        let mut vectors = embed::vectors(embedder.as_ref(), &given)?.into_iter();
        let vectors: Vec<Option<Vec<f32>>> =
            texts.iter().map(|text| text.and_then(|_| vectors.next().flatten())).collect();
        if vectors.iter().any(Option::is_some) {
            self.adopt(embedder.as_ref())?;
        }
        Ok(vectors)
    }

    /// The vector of a text by an embedder, whose fingerprint is recorded with it.
    pub(super) fn vector_by(&mut self, embedder: &dyn Embedder, text: &str) -> Result<Option<Vec<f32>>> {
        let vector = embed::vector(embedder, text)?;
        if vector.is_some() {
            self.adopt(embedder)?;
        }
        Ok(vector)
    }

    /// Takes the space of an embedder where the database has none, and records the fingerprint where it has none.
    pub(crate) fn adopt(&mut self, embedder: &dyn Embedder) -> Result<()> {
        self.state.check_embedder(embedder)?;
        if self.state.meta.space.is_none() {
            self.define_space(&Space::new(embedder.name(), embedder.dimensions()))?;
        }
        if self.state.fingerprint()?.is_none() {
            let value = canonical(&embedder.fingerprint())?;
            self.push(Record::Setting(SettingRecord { name: FINGERPRINT.to_owned(), value }))?;
        }
        Ok(())
    }
}

/// The text of a new trace, behind its speaker.
fn text_of(trace: &NewTrace) -> Option<Cow<'_, str>> {
    let text = trace.fields.iter().find(|field| field.name == "text").and_then(|field| match &field.value {
        FieldValue::Text(text) => Some(text.as_str()),
        _ => None,
    })?;
    Some(embed::spoken(trace.speaker.as_deref(), text))
}
