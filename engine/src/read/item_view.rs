//! One item as statements see it: every attribute of the query language.

use crate::Result;
use crate::model::item::{Attributes, ItemId, Kind, Layer, Source, Status, Support};
use crate::model::plural::counted;
use crate::read::answer::Citation;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::records::field;
use crate::records::record::FieldValue;
use crate::state::attributes::Column;
use crate::state::conflicts::Conflicts;
use crate::state::content::Content;
use crate::state::reader_position::{ReaderPosition, Window};
use holotype_query::{AttributeId, Name};
use std::cell::OnceCell;

/// The default columns of `find`, in order.
pub(crate) const ITEM_COLUMNS: &[AttributeId] = &[
    AttributeId::Item,
    AttributeId::Key,
    AttributeId::Kind,
    AttributeId::Episode,
    AttributeId::Step,
    AttributeId::Time,
    AttributeId::Status,
    AttributeId::Source,
    AttributeId::Speaker,
    AttributeId::Tool,
    AttributeId::Version,
    AttributeId::Active,
    AttributeId::Support,
    AttributeId::Tokens,
    AttributeId::Text,
];

/// All columns of `return *`.
pub(crate) const ALL_ITEM_COLUMNS: &[AttributeId] = &[
    AttributeId::Item,
    AttributeId::Key,
    AttributeId::Layer,
    AttributeId::Kind,
    AttributeId::Text,
    AttributeId::Tokens,
    AttributeId::Episode,
    AttributeId::Page,
    AttributeId::Step,
    AttributeId::Time,
    AttributeId::Age,
    AttributeId::Commit,
    AttributeId::Version,
    AttributeId::Status,
    AttributeId::Source,
    AttributeId::Speaker,
    AttributeId::Tool,
    AttributeId::LogId,
    AttributeId::Trust,
    AttributeId::Support,
    AttributeId::Utility,
    AttributeId::Reports,
    AttributeId::Credit,
    AttributeId::Rollouts,
    AttributeId::ReturnScore,
    AttributeId::Origin,
    AttributeId::Active,
    AttributeId::Redacted,
    AttributeId::Ungrounded,
    AttributeId::Conflict,
    AttributeId::Labels,
];

/// An item whose attributes and content are read on first use and at most once.
pub(crate) struct ItemView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) reader_position: &'a ReaderPosition,
    pub(crate) id: ItemId,
    attributes: OnceCell<Attributes>,
    content: OnceCell<Content>,
    /// The key, if known without reading the content.
    key: Option<String>,
}

impl<'a> ItemView<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, reader_position: &'a ReaderPosition, id: ItemId) -> Result<Self> {
        snapshot.charge_rows(1)?;
        Ok(ItemView { snapshot, reader_position, id, attributes: OnceCell::new(), content: OnceCell::new(), key: None })
    }

    /// Sets the key the item was found by.
    pub(crate) fn found_by(mut self, key: Option<String>) -> Self {
        self.key = key;
        self
    }

    pub(crate) fn attributes(&self) -> Result<&Attributes> {
        if self.attributes.get().is_none() {
            let _ = self.attributes.set(self.snapshot.state.attributes(self.id)?);
        }
        self.attributes.get().ok_or(crate::Error::Cancelled("attributes"))
    }

    pub(crate) fn kind(&self) -> Result<Kind> {
        match self.attributes.get() {
            Some(attributes) => Ok(attributes.kind),
            None => self.snapshot.state.attributes.kind(self.id),
        }
    }

    pub(crate) fn content(&self) -> Result<&Content> {
        if self.content.get().is_none() {
            let _ = self.content.set(self.snapshot.content(self.id)?);
        }
        self.content.get().ok_or(crate::Error::Cancelled("content"))
    }

    /// The reason why its text is quarantined.
    pub(crate) fn quarantine(&self) -> Result<Option<String>> {
        let source = self.attributes()?.source;
        Ok(self.snapshot.core.options.detector.instructs(self.content()?.text(), source))
    }

    /// The attribute with this name; `None` if absent.
    pub(crate) fn get(&self, name: &Name) -> Result<Option<Cell>> {
        match (name.field(), name.attribute()) {
            (Some(field), _) => self.field(field),
            (None, Some(id)) => self.attribute(id),
            (None, None) => Ok(None),
        }
    }

    fn key(&self) -> Result<String> {
        match (self.snapshot.moved_key(self.id)?, &self.key) {
            (Some(moved), _) => Ok(moved),
            (None, Some(key)) => Ok(key.clone()),
            (None, None) => Ok(self.content()?.record.key.clone().unwrap_or_else(|| self.id.to_string())),
        }
    }

    /// The value at the path of a field; `*` is all fields.
    fn field(&self, path: &[String]) -> Result<Option<Cell>> {
        Ok(field_cell(self.content()?, path))
    }

    pub(crate) fn attribute(&self, id: AttributeId) -> Result<Option<Cell>> {
        match id {
            AttributeId::Item => return Ok(Some(Cell::Integer(i64::from(self.id.0)))),
            AttributeId::Key => return Ok(Some(Cell::Text(self.key()?))),
            AttributeId::Text => return Ok(Some(Cell::text(self.content()?.text()))),
            AttributeId::Episode => return self.episodes(),
            // Reads only the columns involved instead of all attributes.
            _ if self.attributes.get().is_none() => {
                if let Some(cell) = self.read_few_columns(id)? {
                    return Ok(cell);
                }
            }
            _ => {}
        }
        let a = self.attributes()?;
        let state = &self.snapshot.state;
        let symbol = |number: Option<u32>| -> Result<Option<Cell>> {
            Ok(number.map(|number| state.symbol_name(number)).transpose()?.map(Cell::Text))
        };
        Ok(match id {
            AttributeId::Layer => Some(Cell::text(a.layer().as_str())),
            AttributeId::Kind => Some(Cell::text(a.kind.as_str())),
            AttributeId::Tokens => Some(Cell::count(u64::from(a.tokens))),
            AttributeId::Page => a.page.map(|page| state.page(page)).transpose()?.map(|page| Cell::Text(page.key)),
            AttributeId::Step => a.step.map(Cell::count),
            AttributeId::Time => a.time.map(Cell::Time),
            AttributeId::Age => self.reader_position.age(a.time).map(Cell::Duration),
            AttributeId::Commit => Some(Cell::count(a.commit)),
            AttributeId::Version => symbol(a.version)?,
            AttributeId::Status => a.status.map(|status| Cell::text(status.as_str())),
            AttributeId::Source => a.source.map(|source| Cell::text(source.as_str())),
            AttributeId::Speaker => symbol(a.speaker)?,
            AttributeId::Tool => symbol(a.tool)?,
            AttributeId::LogId => match a.log_id {
                None if a.layer() == Layer::Trace => self.episodes()?,
                number => symbol(number)?,
            },
            AttributeId::Trust => {
                (a.layer() == Layer::Trace || a.trust_sources != 0).then(|| Cell::Number(f64::from(a.trust())))
            }
            AttributeId::Support => Some(Cell::text(a.support.as_str())),
            AttributeId::Utility => Some(Cell::Number(f64::from(a.utility))),
            AttributeId::Reports => Some(Cell::count(a.utility_count.into())),
            AttributeId::Credit => Some(Cell::Number(f64::from(a.credit))),
            AttributeId::Rollouts => Some(Cell::count(a.credit_count.into())),
            AttributeId::ReturnScore => a.return_score.map(|score| Cell::count(u64::from(score))),
            AttributeId::Origin => (a.layer() == Layer::Recall).then(|| Cell::text(a.origin.as_str())),
            AttributeId::Active => Some(Cell::Bool(a.active)),
            AttributeId::Redacted => Some(Cell::Bool(a.redacted)),
            AttributeId::Ungrounded => Some(Cell::Bool(a.ungrounded)),
            AttributeId::Quarantined => Some(Cell::Bool(self.quarantine()?.is_some())),
            AttributeId::Stale => {
                Some(Cell::Bool(self.reader_position.is_stale(state, a, &Window::default_of(state)?)?))
            }
            AttributeId::Citations => self.citations()?,
            AttributeId::Labels => labels_cell(self.content()?),
            AttributeId::Conflict => self.conflict()?,
            _ => None,
        })
    }

    /// An attribute read from its own columns only; the outer `None` for one that needs more.
    fn read_few_columns(&self, id: AttributeId) -> Result<Option<Option<Cell>>> {
        let state = &self.snapshot.state;
        let number = |column| state.attributes.number(self.id, column);
        let byte = |column| Ok::<_, crate::Error>(number(column)?.map(|byte| byte as u8));
        let named = |name: Option<&'static str>| name.map(Cell::text);
        let flagged = |column| Ok::<_, crate::Error>(number(column)?.map(|flag| Cell::Bool(flag != 0.0)));
        let count = |column| Ok::<_, crate::Error>(number(column)?.map(|count| Cell::Integer(count as i64)));
        Ok(Some(match id {
            AttributeId::Kind => named(Some(self.kind()?.as_str())),
            AttributeId::Layer => named(Some(self.kind()?.layer().as_str())),
            AttributeId::Step => state.moment(self.id)?.0.map(Cell::count),
            AttributeId::Time => state.moment(self.id)?.1.map(Cell::Time),
            AttributeId::Age => self.reader_position.age(state.moment(self.id)?.1).map(Cell::Duration),
            AttributeId::Status => named(byte(Column::Status)?.and_then(Status::from_byte).map(Status::as_str)),
            AttributeId::Source => named(byte(Column::Source)?.and_then(Source::from_byte).map(Source::as_str)),
            AttributeId::Support => named(byte(Column::Support)?.and_then(Support::from_byte).map(Support::as_str)),
            AttributeId::Active => flagged(Column::Active)?,
            AttributeId::Redacted => flagged(Column::Redacted)?,
            AttributeId::Ungrounded => flagged(Column::Ungrounded)?,
            AttributeId::Tokens => count(Column::Tokens)?,
            AttributeId::Commit => count(Column::Commit)?,
            _ => return Ok(None),
        }))
    }

    /// The citations, verified by hashing each span again: `t1 text 6..16 ok`, `page p7 ok`.
    fn citations(&self) -> Result<Option<Cell>> {
        let shown = |citation: &Citation| match citation.field.as_str() {
            "" => Cell::Text(format!("{} {}", citation.target, citation.verdict)),
            field => {
                let Citation { target, start, end, verdict, .. } = citation;
                Cell::Text(format!("{target} {field} {start}..{end} {verdict}"))
            }
        };
        let all: Vec<Cell> = self.snapshot.citations(self.id)?.iter().map(shown).collect();
        Ok((!all.is_empty()).then_some(Cell::List(all)))
    }

    /// The item that contradicts a claim of this one and is preferred to it.
    fn conflict(&self) -> Result<Option<Cell>> {
        let leader = Conflicts::new(&self.snapshot.state, self.reader_position).leader_over(self.id)?;
        Ok(leader.map(|item| Cell::Integer(i64::from(item.0))))
    }

    /// Every episode of the item, by number.
    pub(crate) fn episode_numbers(&self) -> Result<Vec<u32>> {
        let state = &self.snapshot.state;
        let (first, _) = state.attributes.log(self.id)?;
        state.episodes_of(self.id, self.kind()?.layer(), first)
    }

    fn episodes(&self) -> Result<Option<Cell>> {
        let state = &self.snapshot.state;
        let mut ids = Vec::new();
        for number in self.episode_numbers()? {
            ids.push(Cell::Text(state.episode_id(number)?.as_ref().to_owned()));
        }
        Ok(match ids.len() {
            0 => None,
            1 => ids.pop(),
            _ => Some(Cell::List(ids)),
        })
    }

    /// The values of the item's claims whose name matches a pattern.
    pub(crate) fn claims(&self, pattern: &str) -> Result<Vec<Cell>> {
        let claims = self.snapshot.state.claims_of(self.id)?.into_iter();
        let named = claims.filter(|claim| crate::read::glob::glob(pattern, &claim.name));
        Ok(named.map(|claim| Cell::Text(claim.value)).collect())
    }
}

/// The value at the path of a field of an item; `*` is all fields but the text.
pub(crate) fn field_cell(content: &Content, path: &[String]) -> Option<Cell> {
    if let [name] = path {
        // Bytes are shown by their length; `field_bytes` gives them.
        if let Some(bytes) = content.field(name).and_then(|field| match &field.value {
            FieldValue::Bytes(bytes) => Some(bytes),
            _ => None,
        }) {
            return Some(Cell::Text(counted(bytes.len() as u64, "bytes")));
        }
        if name == "*" {
            return Some(Cell::Json(field::all(&content.record.fields)));
        }
    }
    Cell::of_json(&field::at_path(&content.record.fields, &field::parts(path))?)
}

/// The heading of a column: its name, and `fields` for all fields.
pub(crate) fn heading(name: &Name) -> String {
    if name.is_all_fields() { AttributeId::Fields.as_str().to_owned() } else { name.dotted() }
}

/// The labels of an item.
pub(crate) fn labels_cell(content: &Content) -> Option<Cell> {
    let labels = field::labels(&content.record.fields);
    (!labels.is_empty()).then(|| Cell::List(labels.into_iter().map(Cell::Text).collect()))
}

/// The cells of an item for the named columns.
pub(crate) fn cells(view: &ItemView<'_>, columns: &[Name]) -> Result<Vec<Option<Cell>>> {
    columns.iter().map(|name| view.get(name)).collect()
}
