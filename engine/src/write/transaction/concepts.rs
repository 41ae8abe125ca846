//! The concept of a name (PlugMem C.2): one item for a name and its aliases.
//!
//! A concept's text states its names, divided by `|` or on lines of their own: `European Space Agency|ESA`. Names are
//! the same if their words, run together, are, without case, marks and plural endings. A name that is stated with a new
//! alias supersedes the concept of each of them by one with all their names and all their links.
//!
//! Cost: one look-up by key for a name that is the first of its concept; else one search by words among the committed
//! themes, once for each name of a transaction, which remembers the names of the concepts that it wrote or found.

use super::Transaction;
use crate::memory::structure::Roles;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::read::snapshot::Snapshot;
use crate::recall::names::{normal_words, split_codes, stated};
use crate::recall::words::WordIndexes;
use crate::write::draft::NewRecall;
use crate::{Error, Result};
use std::sync::Arc;

/// Before the words of a concept's first name in its key.
const CONCEPT_KEY: &str = "concept:";
/// A concept's key has at most this many bytes of its name.
const MOST_OF_NAME: usize = 400;
/// Themes that share words with a name and are looked at.
const NEAR_NAMES: usize = 16;

/// One name of a concept, as it is stated and as its words.
struct Name<'t> {
    stated: &'t str,
    words: Vec<String>,
}

impl Name<'_> {
    fn is(&self, words: &[String]) -> bool {
        self.words.concat() == words.concat()
    }
}

fn names(text: &str) -> Vec<Name<'_>> {
    let names = stated(text).map(|stated| Name { stated, words: normal_words(stated) });
    let mut found: Vec<Name<'_>> = Vec::new();
    for name in names.filter(|name| !name.words.is_empty()) {
        if !found.iter().any(|known| known.is(&name.words)) {
            found.push(name);
        }
    }
    found
}

/// The key of a concept by the words of its first name.
fn key_of(words: &[String]) -> String {
    let words = words.join(" ");
    let end = (0..=MOST_OF_NAME.min(words.len())).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
    format!("{CONCEPT_KEY}{}", &words[..end])
}

impl Transaction<'_> {
    /// The concept of a name, or of several divided by `|`; written when there is none.
    pub(super) fn concept(&mut self, text: &str, roles: &Roles<'_>) -> Result<ItemId> {
        let names = names(text);
        let Some(first) = names.first() else {
            return Err(Error::Invalid(format!("a concept needs a name with a letter or a digit, not {text:?}")));
        };
        let mut known: Vec<ItemId> = Vec::new();
        for name in &names {
            known.extend(self.known_concept(&name.words)?.filter(|id| !known.contains(id)));
        }
        let Some(old) = known.first() else {
            let key = key_of(&first.words);
            let all: Vec<&str> = names.iter().map(|name| name.stated).collect();
            let mut concept = NewRecall::new(Kind::Concept, all.join("|")).ungrounded();
            if self.state.item_by_key(&key)?.is_none() {
                concept = concept.key(key);
            }
            concept.vector = self.embedded(&concept.text, roles)?;
            let concept = self.remember(concept)?;
            return self.note_names(concept);
        };
        if known.len() == 1 && names.len() == 1 {
            return Ok(*old);
        }
        self.united_concept(&known, &names, roles)
    }

    /// The active concept that has a name of these words.
    fn known_concept(&mut self, words: &[String]) -> Result<Option<ItemId>> {
        if let Some(known) = self.state.item_by_key(&key_of(words))?
            && self.is_concept(known)?
        {
            return Ok(Some(known));
        }
        let joined = words.concat();
        if let Some(known) = self.concept_names.get(&joined).copied()
            && self.is_named(known, words)?
        {
            return Ok(Some(known));
        }
        let snapshot = Snapshot::new(Arc::clone(self.core), Arc::new(self.state.clone()), self.reader());
        let indexes = WordIndexes::of(&snapshot)?;
        let asked = indexes.ask(Some(&format!("{}\n{joined}\n{}", words.join(" "), split_codes(&joined))))?;
        let Some(scorer) = asked.of(Layer::Theme)? else { return Ok(None) };
        for hit in scorer.top(None, NEAR_NAMES)? {
            if self.is_named(ItemId(hit.id), words)? {
                self.concept_names.insert(joined, ItemId(hit.id));
                return Ok(Some(ItemId(hit.id)));
            }
        }
        Ok(None)
    }

    /// True for an active concept that has a name of these words. Numbers of items that were not written in the end may
    /// be those of others now.
    fn is_named(&self, id: ItemId, words: &[String]) -> Result<bool> {
        let is_known = id.0 < self.state.bound() && self.is_concept(id)?;
        Ok(is_known && names(self.content(id)?.text()).iter().any(|name| name.is(words)))
    }

    /// Remembers an item by the names of its text.
    fn note_names(&mut self, id: ItemId) -> Result<ItemId> {
        let content = self.content(id)?;
        for name in names(content.text()) {
            self.concept_names.insert(name.words.concat(), id);
        }
        Ok(id)
    }

    fn is_concept(&self, id: ItemId) -> Result<bool> {
        let attributes = self.state.attributes(id)?;
        Ok(attributes.active && !attributes.redacted && attributes.kind == Kind::Concept)
    }

    /// One concept with the names of several and some more; the first of them if it has these names already.
    fn united_concept(&mut self, known: &[ItemId], more: &[Name<'_>], roles: &Roles<'_>) -> Result<ItemId> {
        let mut texts = Vec::new();
        for id in known {
            texts.push(self.content(*id)?.text().to_owned());
        }
        let stated: Vec<&str> = more.iter().map(|name| name.stated).collect();
        let all = [texts.join("|"), stated.join("|")].join("|");
        let united: Vec<&str> = names(&all).into_iter().map(|name| name.stated).collect();
        let (Some(first), Some(text)) = (known.first().copied(), texts.first()) else {
            return Err(Error::Invalid("there is no concept to unite".to_owned()));
        };
        if known.len() == 1 && united.len() == names(text).len() {
            return Ok(first);
        }
        let key = self.names()?.key_of(first)?;
        let mut concept = NewRecall::new(Kind::Concept, united.join("|")).ungrounded();
        concept.vector = self.embedded(&concept.text, roles)?;
        let new = self.update(&key, concept)?;
        for old in known {
            self.unite_links(*old, new)?;
            if *old != first {
                self.link(new, Edge::Supersedes, *old)?;
            }
        }
        self.note_names(new)
    }
}
