//! Targets and pointers: an item by number or key, a span of a field, a quote in one trace of a page.

use super::Transaction;
use crate::model::item::{ItemId, Layer};
use crate::model::pointer::{Pointer, Span, Target};
use crate::read::resolve;
use crate::records::record::{PointerRecord, PointerTarget};
use crate::{Error, Result};

impl Transaction<'_> {
    /// The item that a key or `#number` names.
    pub fn find(&self, target: &Target) -> Result<ItemId> {
        match target {
            Target::Item(id) if id.0 < self.state.bound() => Ok(*id),
            Target::Item(id) => Err(Error::Missing { what: "item", name: id.to_string() }),
            Target::Key(key) => self.find_key(key),
            Target::Page(key) => Err(Error::Invalid(format!("'{key}' is a page; expected an item"))),
        }
    }

    pub(super) fn find_key(&self, key: &str) -> Result<ItemId> {
        self.state.item_by_key(key)?.ok_or_else(|| Error::Missing { what: "item", name: format!("'{key}'") })
    }

    /// Resolves a pointer against the stored bytes.
    pub(crate) fn resolve(&self, pointer: &Pointer) -> Result<PointerRecord> {
        let unresolved =
            |reason: &str| Error::UnresolvedPointer { target: pointer.target.to_string(), reason: reason.to_owned() };
        if let Target::Page(key) = &pointer.target {
            let number = self.state.page_number(key)?.ok_or_else(|| unresolved("the page does not exist"))?;
            match pointer.span {
                Span::Whole => {}
                Span::Quoting(ref quote) => {
                    return self.resolve_in_page(pointer, PointerTarget::Page(number), quote);
                }
                _ => return Err(unresolved("a page is cited whole or by a quote; cite bytes of one of its traces")),
            }
            let hash = self.state.page(number)?.hash;
            resolve::check_hash(pointer, &hash)?;
            return Ok(PointerRecord {
                target: PointerTarget::Page(number),
                field: String::new(),
                start: 0,
                end: 0,
                hash,
            });
        }
        let target = self.find(&pointer.target).map_err(|_| unresolved("the item does not exist"))?;
        if self.state.attributes(target)?.layer() == Layer::Theme {
            return Err(unresolved("the target is a theme; point to a trace or a recall"));
        }
        if self.accepts_generated_keys && self.state.attributes(target)?.redacted {
            return resolve::resolve_forgotten(pointer, target);
        }
        resolve::resolve(pointer, target, &self.content(target)?)
    }

    /// The only trace of a page that has a quote, and the place of the quote.
    fn resolve_in_page(&self, pointer: &Pointer, page: PointerTarget, quote: &str) -> Result<PointerRecord> {
        let unresolved = |reason: String| Error::UnresolvedPointer { target: pointer.target.to_string(), reason };
        let field = pointer.field.as_deref().unwrap_or("text");
        let mut found = None;
        for trace in self.page_traces(page)? {
            let content = self.content(trace)?;
            let text = content.field(field).and_then(|field| std::str::from_utf8(field.value.bytes()).ok());
            if text.is_some_and(|text| text.contains(quote)) && found.replace((trace, content)).is_some() {
                return Err(unresolved("several of its traces contain the quote: ambiguous; name one".to_owned()));
            }
        }
        let (trace, content) = found.ok_or_else(|| unresolved(format!("it does not contain {quote:?}")))?;
        resolve::resolve(pointer, trace, &content)
    }

    /// The traces behind a pointer's target: those of a page, or the item.
    pub(crate) fn page_traces(&self, target: PointerTarget) -> Result<Vec<ItemId>> {
        Ok(match target {
            PointerTarget::Page(number) => self.state.page(number)?.traces.into_iter().map(ItemId).collect(),
            PointerTarget::Item(id) => vec![ItemId(id)],
        })
    }
}
