//! Links between items, later pointers, marks and claims.

use super::{Mark, Transaction};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::model::pointer::{Pointer, Span, Target, hex};
use crate::records::record::{
    Change, ClaimRecord, LinkRecord, MarkRecord, PointerRecord, PointerTarget, PointersRecord, Record, UnciteRecord,
    UncitedRecord,
};
use crate::{Error, Result};

impl Transaction<'_> {
    /// Links two items. `supersedes` deactivates its target; `cites` adds a pointer to the whole text.
    pub fn link(&mut self, from: ItemId, edge: Edge, to: ItemId) -> Result<()> {
        if edge == Edge::Cites {
            return self.cite(from, &Pointer::to_item(to));
        }
        self.atomically(|transaction| transaction.link_inner(from, edge, to))
    }

    pub(super) fn link_inner(&mut self, from: ItemId, edge: Edge, to: ItemId) -> Result<()> {
        let (near, far) = (self.state.attributes(from)?, self.state.attributes(to)?);
        if from == to {
            return Err(Error::Invalid(format!("{from} cannot be linked to itself")));
        }
        if edge.is_lineage() && (to >= from || near.layer() == Layer::Trace || far.layer() == Layer::Theme) {
            return Err(Error::Invalid(format!(
                "{from} cannot link by {edge} to {to}: \
                     the edge goes from a recall or theme to an earlier trace or recall"
            )));
        }
        if edge == Edge::Parent {
            self.check_parent(from, far.layer(), far.kind)?;
        }
        let wrong_end = match edge {
            Edge::Mentions => near.layer() != Layer::Recall || far.kind != Kind::Concept,
            Edge::Solves => near.kind != Kind::Procedure || far.kind != Kind::Intent,
            _ => false,
        };
        if wrong_end {
            return Err(Error::Invalid(format!("a {} cannot be linked by {edge} to a {}", near.kind, far.kind)));
        }
        let link = LinkRecord { from: from.0, edge: edge.to_byte(), to: to.0 };
        self.push(Record::Link(link))?;
        if edge == Edge::Supersedes && far.active {
            self.deactivate(to, Some(from), Some("superseded".to_owned()))?;
        }
        Ok(())
    }

    pub(super) fn check_parent(&self, child: ItemId, layer: Layer, kind: Kind) -> Result<()> {
        if layer == Layer::Theme && self.state.attributes(child)?.layer() == Layer::Recall {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{child} cannot be the child of a {kind}: a parent is a theme and its child a recall"
        )))
    }

    /// Removes a link. For `cites` it removes the item's pointers to spans of the target.
    ///
    /// # Errors
    /// [`Error::Missing`] without such a link; [`Error::Invalid`] if a pointer to a whole page implies it.
    pub fn unlink(&mut self, from: ItemId, edge: Edge, to: ItemId) -> Result<()> {
        let key = crate::records::tables::edge(from.0, edge.to_byte(), to.0);
        if !self.state.has(crate::records::tables::EDGE_OUT, &key)? {
            let keys = self.names()?;
            let name = format!("'{}' {edge} '{}'", keys.key_of(from)?, keys.key_of(to)?);
            return Err(Error::Missing { what: "link", name });
        }
        if edge == Edge::Cites {
            for pointer in self.state.pointers(from)? {
                let PointerTarget::Page(number) = pointer.target else { continue };
                let page = self.state.page(number)?;
                if page.traces.contains(&to.0) {
                    let whole = page.key;
                    return Err(Error::Invalid(format!(
                        "{from} cites {to} as part of page '{whole}'; uncite the page instead"
                    )));
                }
            }
        }
        self.push(Record::Unlink(LinkRecord { from: from.0, edge: edge.to_byte(), to: to.0 }))
    }

    /// Adds a pointer to an existing item.
    pub fn cite(&mut self, item: ItemId, pointer: &Pointer) -> Result<()> {
        let resolved = self.resolve(pointer)?;
        let newest = match resolved.target {
            PointerTarget::Item(target) => Some(target),
            PointerTarget::Page(page) => self.state.page(page)?.traces.into_iter().max(),
        };
        if newest.is_some_and(|newest| newest >= item.0) || self.state.attributes(item)?.layer() == Layer::Trace {
            return Err(Error::Invalid(format!(
                "{item} cannot cite {}: a recall or theme cites earlier items only",
                pointer.target
            )));
        }
        self.push(Record::Pointers(PointersRecord { item: item.0, pointers: vec![resolved] }))
    }

    /// Removes pointers of an item, named as they were made: those to a page, or to a span of an item. Without a span
    /// it removes all pointers to the field, without a field all to the item. A `cites` edge ends with the last pointer
    /// behind it.
    ///
    /// # Errors
    /// [`Error::Missing`] without such a pointer.
    pub fn uncite(&mut self, item: ItemId, pointer: &Pointer) -> Result<()> {
        let target = match &pointer.target {
            Target::Page(key) => {
                let missing = || Error::Missing { what: "page", name: format!("'{key}'") };
                PointerTarget::Page(self.state.page_number(key)?.ok_or_else(missing)?)
            }
            target => PointerTarget::Item(self.find(target)?.0),
        };
        let field = match (&pointer.field, &pointer.span) {
            (None, Span::Whole) => None,
            (field, _) => Some(field.as_deref().unwrap_or("text")),
        };
        let chars = match &pointer.span {
            Span::Chars(..) => Some(self.resolve(pointer)?),
            _ => None,
        };
        let is_named = |stored: &PointerRecord| {
            let span = match &pointer.span {
                _ if stored.target != target => false,
                Span::Whole => true,
                Span::Bytes(start, end) => (stored.start, stored.end) == (*start, *end),
                // A quote is identified by its hash, not by its offset.
                Span::Quoting(quote) => stored.hash == *blake3::hash(quote.as_bytes()).as_bytes(),
                Span::Chars(..) => {
                    chars.as_ref().is_some_and(|span| (span.start, span.end) == (stored.start, stored.end))
                }
            };
            let in_field = matches!(target, PointerTarget::Page(_)) || field.is_none_or(|field| stored.field == field);
            let as_hashed =
                pointer.hash.as_ref().is_none_or(|given| hex(&stored.hash).starts_with(&given.to_ascii_lowercase()));
            span && in_field && as_hashed
        };
        let stored = self.state.pointers(item)?;
        let gone: Vec<UncitedRecord> = stored.iter().filter(|stored| is_named(stored)).map(UncitedRecord::of).collect();
        if gone.is_empty() {
            let name = format!("'{}' cites {}", self.names()?.key_of(item)?, pointer.target);
            return Err(Error::Missing { what: "link", name });
        }
        self.push(Record::Uncite(UnciteRecord { item: item.0, pointers: gone }))
    }

    /// Changes the status, utility or credit of an item, or retires it.
    pub fn mark(&mut self, item: ItemId, mark: Mark, because: Option<String>) -> Result<()> {
        self.state.attributes(item)?;
        let change = match mark {
            Mark::Status(status) => Change::Status(status.to_byte()),
            Mark::Utility(utility, count) if utility.is_finite() => Change::Utility(utility, count),
            Mark::Utility(..) => return Err(Error::Invalid("utility must be a finite number".to_owned())),
            Mark::Credit(credit, count) if credit.is_finite() => Change::Credit(credit, count),
            Mark::Credit(..) => return Err(Error::Invalid("credit must be a finite number".to_owned())),
            Mark::Inactive => return self.deactivate(item, None, because),
        };
        self.push(Record::Mark(MarkRecord { item: item.0, change, by: None, because }))
    }

    /// Retires an item. It stays readable, but no recall returns it.
    pub fn deactivate(&mut self, item: ItemId, by: Option<ItemId>, because: Option<String>) -> Result<()> {
        self.state.attributes(item)?;
        let mark = MarkRecord { item: item.0, change: Change::Active(false), by: by.map(|by| by.0), because };
        self.push(Record::Mark(mark))
    }

    /// Adds a claim to an item.
    pub fn claim(&mut self, item: ItemId, name: &str, value: &str, global: bool, from: &[Pointer]) -> Result<()> {
        if name.is_empty() || name.contains('\0') {
            return Err(Error::Invalid("the name of a claim must not be empty or contain NUL".to_owned()));
        }
        self.state.attributes(item)?;
        let from = from.iter().map(|pointer| self.resolve(pointer)).collect::<Result<Vec<_>>>()?;
        self.push(Record::Claim(ClaimRecord {
            number: self.state.meta.claims,
            item: item.0,
            name: name.to_owned(),
            value: value.to_owned(),
            global,
            from,
        }))
    }
}
