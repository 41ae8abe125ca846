//! The entry of a database in a router: a fact with fields, and a theme for each centroid.
//!
//! | field | content |
//! |---|---|
//! | `database` | its path from the root, which is the key of the fact too |
//! | `commit`, `head` | the commit it was seen at, and the hash of the log there |
//! | `durable`, `instance` | what its LOCK said, so that a change is seen without opening it |
//! | `forgets` | the number of its erasures |
//! | `items`, `vectors` | what it holds that can be recalled |
//! | `from`, `to` | the times that its items span |
//! | `space` | its embedding space |
//! | `sampled` | true if it was too large to be read whole |
//!
//! The text of the fact has its words, the most frequent first. Each theme has the words that mark its part, and the
//! field `items` with their number.

use crate::model::edge::Edge;
use crate::model::item::{ItemId, Layer};
use crate::model::pointer::hex;
use crate::model::time;
use crate::read::snapshot::{Item, Snapshot};
use crate::write::draft::NewRecall;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_storage::log::Head;
use holotype_storage::standing::Standing;
use serde_json::Value;

/// The entry of a database in a router.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The path of the database, from the root.
    pub path: String,
    /// The commit it was seen at.
    pub commit: u64,
    /// The hash of its log at that commit, in hex.
    pub head: String,
    /// Items that can be recalled.
    pub items: u64,
    /// Those that have a vector.
    pub vectors: u64,
    /// The earliest time of an item, in microseconds since the epoch.
    pub from: Option<i64>,
    /// The latest.
    pub to: Option<i64>,
    /// The embedding space, if it has one.
    pub space: Option<String>,
    /// True if the database was too large to be read whole: its words and parts are those of a sample.
    pub sampled: bool,
    /// Its words, the most frequent first.
    pub words: String,
    pub(super) durable: u64,
    pub(super) instance: Option<String>,
    pub(super) forgets: u64,
}

/// A part of a database: items that are near each other.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// The words that mark it.
    pub words: String,
    /// Its items.
    pub items: u64,
    /// The centroid of their vectors.
    pub centroid: Vec<f32>,
}

/// The hash of a head in hex.
pub(in crate::fleet) fn head_of(head: &Head) -> String {
    hex(head.hash.as_ref())
}

/// The number of a directory in hex.
pub(super) fn instance_of(standing: Option<Standing>) -> Option<String> {
    standing.and_then(|standing| standing.instance).map(|number| hex(&number))
}

impl Entry {
    /// True if the LOCK of the database is as it was when this was made. Without that file, a database cannot be
    /// written to.
    pub(in crate::fleet) fn is_of(&self, standing: Option<Standing>) -> bool {
        let durable = standing.map_or(0, |standing| standing.durable.0);
        durable == self.durable && instance_of(standing) == self.instance
    }

    /// True if the other was read at the same head, and LOCK said the same.
    pub(super) fn is_as_new_as(&self, other: &Entry) -> bool {
        (&self.head, self.durable, &self.instance) == (&other.head, other.durable, &other.instance)
    }

    /// Writes the fact and the themes above it.
    pub(super) fn write(&self, transaction: &mut Transaction<'_>, parts: &[Part]) -> Result<()> {
        let fact = NewRecall::fact(self.words.clone())
            .ungrounded()
            .field("database", self.path.clone())
            .field("commit", self.commit)
            .field("head", self.head.clone())
            .field("durable", self.durable)
            .field("instance", self.instance.clone())
            .field("forgets", self.forgets)
            .field("items", self.items)
            .field("vectors", self.vectors)
            .field("from", self.from.map(time::format))
            .field("to", self.to.map(time::format))
            .field("space", self.space.clone())
            .field("sampled", self.sampled);
        // The key of an entry before this one still leads there, and has to be moved.
        match transaction.state()?.item_by_key(&self.path)? {
            None => drop(transaction.remember(fact.key(self.path.clone()))?),
            Some(_) => {
                let fact = transaction.remember(fact)?;
                transaction.rename(fact, &self.path)?;
            }
        }
        for part in parts {
            let theme = NewRecall::theme(part.words.clone()).child(self.path.clone()).field("items", part.items);
            transaction.remember(theme.vector(part.centroid.clone()))?;
        }
        Ok(())
    }

    fn read(item: &Item) -> Result<Entry> {
        let content = &item.content;
        let text = |name: &str| match content.field_value(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let number = |name: &str| content.field_value(name).and_then(|value| value.as_u64());
        let required = |name: &str| {
            let what =
                || Error::Corrupt { what: format!("the entry '{}' of the router has no field {name}", item.key) };
            number(name).ok_or_else(what)
        };
        Ok(Entry {
            path: item.key.clone(),
            commit: required("commit")?,
            head: text("head").unwrap_or_default(),
            items: required("items")?,
            vectors: required("vectors")?,
            from: text("from").map(|text| time::parse(&text)).transpose()?,
            to: text("to").map(|text| time::parse(&text)).transpose()?,
            space: text("space"),
            sampled: content.field_value("sampled") == Some(Value::Bool(true)),
            words: content.text().to_owned(),
            durable: required("durable")?,
            instance: text("instance"),
            forgets: required("forgets")?,
        })
    }

    /// The parts of a database, as a router has them.
    pub(super) fn parts(snapshot: &Snapshot, fact: ItemId) -> Result<Vec<Part>> {
        let part = |theme: ItemId| {
            let item = snapshot.item(theme)?;
            let items = item.content.field_value("items").and_then(|value| value.as_u64()).unwrap_or_default();
            let centroid = snapshot.vector(theme)?.unwrap_or_default();
            Ok(Part { words: item.content.text().to_owned(), items, centroid })
        };
        themes_of(snapshot, fact)?.into_iter().map(part).collect()
    }
}

/// The themes in force above a fact.
pub(super) fn themes_of(snapshot: &Snapshot, fact: ItemId) -> Result<Vec<ItemId>> {
    let themes = snapshot.state.attributes.base_sets(snapshot.state.bound()).layer(Layer::Theme)?;
    let mut parents = all_themes_of(snapshot, fact)?;
    parents.retain(|theme| themes.contains(theme.0));
    Ok(parents)
}

/// The themes above a fact, the inactive ones included.
pub(super) fn all_themes_of(snapshot: &Snapshot, fact: ItemId) -> Result<Vec<ItemId>> {
    snapshot.linked(fact, Edge::Parent)
}

/// The name of the database that a fact is about; `None` for one that is no entry.
pub(super) fn database_of(snapshot: &Snapshot, fact: ItemId) -> Result<Option<String>> {
    Ok(snapshot.content(fact)?.field_text("database").map(str::to_owned))
}

/// The entries of a router with their facts, in the order of the facts.
pub(super) fn read_all(snapshot: &Snapshot) -> Result<Vec<(ItemId, Entry)>> {
    let facts = snapshot.state.attributes.base_sets(snapshot.state.bound()).layer(Layer::Recall)?;
    let mut entries = Vec::new();
    for id in facts.iter() {
        let item = snapshot.item(ItemId(id))?;
        if item.content.field_value("database").is_some() {
            entries.push((ItemId(id), Entry::read(&item)?));
        }
    }
    Ok(entries)
}
