//! Writing a fact by reflection (PlugMem F, after RMM): the nearest known facts decide whether it is added or merged.

use super::Transaction;
use crate::memory::structure::{Reflection, Reflector};
use crate::model::item::{ItemId, Kind, Layer};
use crate::write::draft::NewRecall;
use crate::{Error, Result};

impl Transaction<'_> {
    /// Adds a fact, or merges it with one of the `nearest` known facts of the database, by the reflector's word. A
    /// merged statement supersedes the known fact, and keeps its key, its links and the pointers of both.
    ///
    /// A fact without a vector takes that of the embedder; where there is none, it is added.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything but a fact; those of [`Transaction::remember`] and [`Transaction::update`].
    pub fn reflect(&mut self, mut fact: NewRecall, nearest: usize, reflector: &dyn Reflector) -> Result<ItemId> {
        if fact.kind != Kind::Fact {
            return Err(Error::Invalid(format!("reflection is on facts, not on a {}", fact.kind)));
        }
        if fact.vector.is_none() {
            fact.vector = self.text_vector(&fact.text)?;
        }
        let Some(vector) = fact.vector.clone() else { return self.remember(fact) };
        let snapshot = self.snapshot()?;
        let (mut known, mut texts) = (Vec::new(), Vec::new());
        for (id, _) in snapshot.nearest(Layer::Recall, &vector, nearest)? {
            let attributes = self.state.attributes(id)?;
            if attributes.kind == Kind::Fact && attributes.active && !attributes.redacted {
                known.push(id);
                texts.push(snapshot.content(id)?.text().to_owned());
            }
        }
        let decision = reflector.reflect(&texts, &fact.text).unwrap_or(Reflection::Add);
        let (old, text) = match decision {
            Reflection::Merge(index, text) => match known.get(index) {
                Some(old) => (*old, text),
                None => return self.remember(fact),
            },
            Reflection::Add => return self.remember(fact),
        };
        self.atomically(|transaction| {
            let key = transaction.names()?.key_of(old)?;
            let vector = transaction.text_vector(&text)?.or(fact.vector);
            let merged = NewRecall { vector, text, key: None, ..fact };
            let new = transaction.update(&key, merged)?;
            transaction.unite_links(old, new)?;
            Ok(new)
        })
    }
}
