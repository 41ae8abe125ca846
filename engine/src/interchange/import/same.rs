//! Comparison of an item line with the stored item: the first member that differs, if any.
//!
//! An item is compared as it was written and, for attributes that may change, as it is now: status and utility by
//! marks, `active` by a deactivation, pointers by later citations. If the line does not state a step, the engine
//! assigned it; if it does not state a vector, an embedder computed it.

use crate::interchange::{
    self,
    line::{FieldValue, Pointer, Recall, Span, Stated, Theme, Trace, Unit},
};
use crate::model::item::{Attributes, Inherited};
use crate::model::plural::counted;
use crate::model::pointer::hex;
use crate::model::time;
use crate::read::resolve;
use crate::records::field::LABELS;
use crate::records::record::{self, Field, ItemRecord, PointerRecord, PointerTarget};
use crate::records::tables;
use crate::state::content::Content;
use crate::write::transaction::Transaction;
use crate::{Edge, ItemId, Kind, Origin, Result, Source, Status};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

/// The first member in which a line and a stored item differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: Vec<String>,
    pub(super) stored: String,
    pub(super) given: String,
}

/// A stored item.
pub(super) struct Stored {
    content: Content,
    attributes: Attributes,
    pointers: Vec<PointerRecord>,
    episode: Option<String>,
    /// True if an embedder computed the vector, so that a line need not state it.
    embedded: bool,
}

impl Stored {
    pub(super) fn read(transaction: &mut Transaction<'_>, id: ItemId) -> Result<Stored> {
        let mut content = transaction.content(id)?;
        if content.record.vector.is_none() || transaction.state()?.vector_epoch()?.is_some() {
            Arc::make_mut(&mut content.record).vector = transaction.stored_vector(id)?;
        }
        let state = transaction.state()?;
        let episode = content.record.episode.map(|number| state.episode(number)).transpose()?.map(|row| row.id.clone());
        let embedded = state.fingerprint()?.is_some();
        Ok(Stored { content, attributes: state.attributes(id)?, pointers: state.pointers(id)?, episode, embedded })
    }

    /// The text; `None` if it was forgotten.
    fn said(&self) -> Option<&str> {
        (!self.attributes.redacted).then(|| self.record().text())
    }

    pub(super) fn record(&self) -> &ItemRecord {
        &self.content.record
    }

    /// The first difference from a trace line with its kind and its vector's bytes.
    pub(super) fn differs_from_trace(&self, line: &Trace, kind: Kind, vector: Option<&[u8]>) -> Option<Difference> {
        let record = self.record();
        let mut compare = Compare::new("trace");
        compare.option("episode", self.episode.as_deref(), Some(line.episode.as_str()));
        if line.step.is_some() {
            compare.option("step", record.step, line.step);
        }
        compare.option("time", record.time.map(time::format), line.time.map(time::format));
        compare.option("kind", Kind::from_byte(record.kind), Some(kind));
        compare.option("source", record.source.and_then(Source::from_byte).map(Source::as_str), line.source.as_deref());
        compare.option("tool", filled(&record.tool), filled(&line.tool));
        let episode = Some(line.episode.as_str());
        compare.option("log_id", record.log_id.as_deref().or(episode), line.log_id.as_deref().or(episode));
        let unknown = Status::Unknown.as_str();
        compare.status(
            record.status.and_then(Status::from_byte).map_or(unknown, Status::as_str),
            self.attributes.status.map_or(unknown, Status::as_str),
            line.status.as_deref().unwrap_or(unknown),
        );
        compare.option("version", record.version.as_deref(), line.version.as_deref());
        compare.option("speaker", record.speaker.as_deref(), line.speaker.as_deref());
        compare.fields(&record.fields, &line.fields);
        compare.vector(record.vector.as_deref(), vector, self.embedded);
        compare.difference
    }

    /// The first difference from a recall line.
    pub(super) fn differs_from_recall(
        &self,
        transaction: &mut Transaction<'_>,
        line: &Recall,
        kind: Kind,
        vector: Option<&[u8]>,
    ) -> Result<Option<Difference>> {
        let mut compare = Compare::new("recall");
        compare.option("kind", Kind::from_byte(self.record().kind), Some(kind));
        compare.option("text", self.said(), line.text.as_deref());
        if compare.difference.is_none() {
            let found = self.differing_pointer(transaction, &line.from)?;
            compare.difference = found;
        }
        if line.status.is_some() || self.record().status.is_some() {
            let none = "none";
            let stands =
                (self.attributes.inherited & Inherited::STATUS == 0).then_some(self.attributes.status).flatten();
            compare.status(
                self.record().status.and_then(Status::from_byte).map_or(none, Status::as_str),
                stands.map_or(none, Status::as_str),
                line.status.as_deref().unwrap_or(none),
            );
        }
        compare.vector(self.record().vector.as_deref(), vector, self.embedded);
        self.compare_stated(&mut compare, &line.stated);
        Ok(compare.difference)
    }

    /// The first difference from a theme line, less its children.
    pub(super) fn differs_from_theme(&self, line: &Theme, kind: Kind, vector: Option<&[u8]>) -> Option<Difference> {
        let mut compare = Compare::new("theme");
        compare.option("kind", Kind::from_byte(self.record().kind), Some(kind));
        compare.option("text", self.said(), line.text.as_deref());
        compare.vector(self.record().vector.as_deref(), vector, self.embedded);
        self.compare_stated(&mut compare, &line.stated);
        compare.difference
    }

    fn compare_stated(&self, compare: &mut Compare, line: &Stated) {
        let record = self.record();
        compare.option("episode", self.episode.as_deref(), line.episode.as_deref());
        compare.option("source", record.source.and_then(Source::from_byte).map(Source::as_str), line.source.as_deref());
        compare.option("step", record.step, line.step);
        compare.option("time", record.time.map(time::format), line.time.map(time::format));
        compare.option("version", record.version.as_deref(), line.version.as_deref());
        if line.utility != interchange::utility(&self.attributes) {
            compare.option("utility", record.utility, line.utility);
        }
        compare.option("return_score", record.return_score, line.return_score);
        if line.active == Some(false) {
            compare.option("active", Some(self.attributes.active), line.active);
        }
        compare.option("ungrounded", Some(record.ungrounded), Some(line.ungrounded.unwrap_or(false)));
        let origin = line.origin.as_deref().unwrap_or(Origin::Original.as_str());
        compare.option("origin", Origin::from_byte(record.origin).map(Origin::as_str), Some(origin));
        // The text is a member of its own, and labels that the line does not state are those of the evidence.
        let is_stated = |name: &str| line.fields.iter().any(|(stated, _)| stated == name);
        let is_compared = |field: &&Field| field.name != "text" && (field.name != LABELS || is_stated(LABELS));
        let stored: Vec<Field> = record.fields.iter().filter(is_compared).cloned().collect();
        compare.fields(&stored, &line.fields);
    }

    /// The line's pointers must be original or present pointers of the item, and must include all that are both.
    fn differing_pointer(&self, transaction: &mut Transaction<'_>, line: &[Pointer]) -> Result<Option<Difference>> {
        let written = &self.record().from;
        let present: HashSet<&PointerRecord> = self.pointers.iter().collect();
        let kept: HashSet<&PointerRecord> = written.iter().filter(|pointer| present.contains(pointer)).collect();
        let stored = PointersByPlace::new(self.pointers.iter().chain(written));
        let mut seen = HashSet::new();
        for (position, pointer) in line.iter().enumerate() {
            let held = stored.same_as(transaction, pointer)?;
            if held.is_empty() {
                let path = vec!["recall".to_owned(), "from".to_owned(), position.to_string()];
                let stored = counted(self.pointers.len() as u64, "other pointers");
                return Ok(Some(Difference { path, stored, given: format!("one to '{}'", pointer.target()) }));
            }
            seen.extend(held.into_iter().filter(|held| kept.contains(held)));
        }
        Ok((seen.len() < kept.len()).then(|| Difference {
            path: vec!["recall".to_owned(), "from".to_owned()],
            stored: counted(kept.len() as u64, "pointers"),
            given: format!("{} of them", seen.len()),
        }))
    }
}

/// The pointers of an item, found by what a line says of one: comparing each with each would take quadratic time.
struct PointersByPlace<'p> {
    all: Vec<&'p PointerRecord>,
    by_place: HashMap<(PointerTarget, &'p str, u64, u64), Vec<&'p PointerRecord>>,
}

impl<'p> PointersByPlace<'p> {
    fn new(pointers: impl Iterator<Item = &'p PointerRecord>) -> Self {
        let mut seen = HashSet::new();
        let all: Vec<_> = pointers.filter(|pointer| seen.insert(*pointer)).collect();
        let mut by_place: HashMap<_, Vec<_>> = HashMap::new();
        for pointer in &all {
            let place = (pointer.target, pointer.field.as_str(), pointer.start, pointer.end);
            by_place.entry(place).or_default().push(*pointer);
        }
        Self { all, by_place }
    }

    /// Those that a line's pointer equals. A key means the item that has it now, or else the one that had it when the
    /// pointer was stored.
    fn same_as(&self, transaction: &mut Transaction<'_>, line: &Pointer) -> Result<Vec<&'p PointerRecord>> {
        let here = place(transaction, line)?
            .and_then(|(target, field, start, end)| self.by_place.get(&(target, field, start, end)).cloned());
        let here = here.map(|here| same(transaction, line, &here)).transpose()?.unwrap_or_default();
        if here.is_empty() { same(transaction, line, &self.all) } else { Ok(here) }
    }
}

fn same<'p>(
    transaction: &mut Transaction<'_>,
    line: &Pointer,
    stored: &[&'p PointerRecord],
) -> Result<Vec<&'p PointerRecord>> {
    let mut found = Vec::new();
    for stored in stored {
        if same_pointer(transaction, line, stored)? {
            found.push(*stored);
        }
    }
    Ok(found)
}

/// The place that a line's pointer names, if its key is one of the present.
fn place<'l>(
    transaction: &mut Transaction<'_>,
    line: &'l Pointer,
) -> Result<Option<(PointerTarget, &'l str, u64, u64)>> {
    Ok(match line {
        Pointer::Page { page, .. } => {
            transaction.state()?.page_number(page)?.map(|number| (PointerTarget::Page(number), "", 0, 0))
        }
        Pointer::Field { key, field, span, .. } => {
            let Some(item) = transaction.state()?.item_by_key(key)? else { return Ok(None) };
            let target = PointerTarget::Item(item.0);
            match span {
                Some(Span { start, end, unit: Unit::Bytes }) => Some((target, field, *start, *end)),
                _ => {
                    let found = resolve::resolve(&super::items::pointer(line), item, &transaction.content(item)?);
                    found.ok().map(|found| (target, field.as_str(), found.start, found.end))
                }
            }
        }
    })
}

/// True if an item has or had this key.
fn is_called(transaction: &mut Transaction<'_>, id: ItemId, key: &str) -> Result<bool> {
    if transaction.state()?.item_by_key(key)? == Some(id) {
        return Ok(true);
    }
    Ok(transaction.content(id)?.record.key.as_deref() == Some(key))
}

/// True if a line's pointer equals a stored one; its key counts as of when the pointer was stored.
pub(super) fn same_pointer(transaction: &mut Transaction<'_>, line: &Pointer, stored: &PointerRecord) -> Result<bool> {
    let same_hash =
        |hash: &Option<String>| hash.as_ref().is_none_or(|hash| hex(&stored.hash).starts_with(hash.as_str()));
    match (line, stored.target) {
        (Pointer::Page { page, hash }, PointerTarget::Page(number)) => {
            Ok(transaction.state()?.page_number(page)? == Some(number) && same_hash(hash))
        }
        (Pointer::Field { key, field, span, hash }, PointerTarget::Item(target)) => {
            let target = ItemId(target);
            if *field != stored.field || !same_hash(hash) || !is_called(transaction, target, key)? {
                return Ok(false);
            }
            if let Some(Span { start, end, unit: Unit::Bytes }) = span {
                return Ok((*start, *end) == (stored.start, stored.end));
            }
            let pointer = super::items::pointer(line);
            let found = resolve::resolve(&pointer, target, &transaction.content(target)?);
            Ok(found.is_ok_and(|found| (found.start, found.end) == (stored.start, stored.end)))
        }
        _ => Ok(false),
    }
}

/// True if a theme has, or had, a child by that key.
pub(super) fn child(transaction: &mut Transaction<'_>, theme: ItemId, key: &str) -> Result<Option<ItemId>> {
    let state = transaction.state()?;
    if let Some(child) = state.item_by_key(key)? {
        let edge = tables::edge(child.0, Edge::Parent.to_byte(), theme.0);
        if state.has(tables::EDGE_OUT, &edge)? {
            return Ok(Some(child));
        }
    }
    let ends = state.edges_in(theme, Some(Edge::Parent))?;
    for end in ends {
        if is_called(transaction, end.far, key)? {
            return Ok(Some(end.far));
        }
    }
    Ok(None)
}

fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Members compared one after the other until one differs.
struct Compare {
    kind: &'static str,
    difference: Option<Difference>,
}

impl Compare {
    fn new(kind: &'static str) -> Compare {
        Compare { kind, difference: None }
    }

    fn differ(&mut self, members: &[&str], stored: String, given: String) {
        if self.difference.is_none() {
            let path = [self.kind].iter().chain(members).map(|step| (*step).to_owned()).collect();
            self.difference = Some(Difference { path, stored, given });
        }
    }

    fn option<T: PartialEq + Display>(&mut self, member: &str, stored: Option<T>, given: Option<T>) {
        if stored != given {
            self.differ(&[member], shown(stored), shown(given));
        }
    }

    fn status(&mut self, written: &str, stands: &str, given: &str) {
        if given != written && given != stands {
            self.differ(&["status"], stands.to_owned(), given.to_owned());
        }
    }

    fn fields(&mut self, stored: &[Field], given: &[(String, FieldValue)]) {
        for (name, value) in given {
            let field = stored.iter().find(|field| field.name == *name);
            if field.is_none_or(|field| !same_value(&field.value, value)) {
                let stored = shown(field.map(|field| String::from_utf8_lossy(field.value.bytes()).into_owned()));
                let given = shown(Some(String::from_utf8_lossy(value.as_bytes())));
                return self.differ(&["fields", name], stored, given);
            }
        }
        if let Some(field) = stored.iter().find(|field| given.iter().all(|(name, _)| *name != field.name)) {
            self.differ(&["fields"], format!("a field {:?}", field.name), "none".to_owned());
        }
    }

    fn vector(&mut self, stored: Option<&[u8]>, given: Option<&[u8]>, embedded: bool) {
        if stored == given || (given.is_none() && embedded) {
            return;
        }
        let what =
            |vector: Option<&[u8]>, other: &str| if vector.is_none() { "none".to_owned() } else { other.to_owned() };
        self.differ(&["vector"], what(stored, "a vector"), what(given, "another one"));
    }
}

fn same_value(stored: &record::FieldValue, given: &FieldValue) -> bool {
    match (stored, given) {
        (record::FieldValue::Json(stored), FieldValue::Json(given)) => stored == given.as_str(),
        (record::FieldValue::Json(_), _) | (_, FieldValue::Json(_)) => false,
        // Bytes that are text are the same either way.
        (stored, given) => stored.bytes() == given.as_bytes(),
    }
}

fn shown<T: Display>(value: Option<T>) -> String {
    const MOST: usize = 60;
    let Some(value) = value else { return "none".to_owned() };
    let text = value.to_string();
    if text.chars().count() <= MOST {
        return text;
    }
    text.chars().take(MOST).chain(['…']).collect()
}
