//! Verified write-back (TierMem B.6): one finding becomes a new recall, part of a known one, or nothing.
//!
//! ```text
//! P = the pointers that resolve; none: refused
//! SKIP if the filter refuses the finding
//! M = the 3 recalls nearest to it that are active and visible; by words the 3 nearest of those without a vector, too
//! ADD     remember it from P, origin `linked_fact`
//! UPDATE  a new recall supersedes one of M and takes its key; pointers, parents, `mentions` and `solves` of both
//! SKIP    nothing is written
//! ```
//!
//! A quote is found as written, else without regard to case, white space and the forms of marks, and without the time
//! and the speaker that a line of a page begins with; in a page it is found in one of its traces. A pointer to a whole
//! page, or with a quote that stands nowhere in it (TierMem B.5), goes to the one trace that has at least half of the
//! finding's content words and more than any other. A whole page without such a trace is cited whole; a quote is
//! refused then.
//!
//! Invariants:
//! 1. Nothing is written without a pointer that resolves.
//! 2. `add only` writes no update: what one would replace stays beside what is added (TierMem Table 8).
//! 3. A role that fails means SKIP.

use crate::memory::write_back::{
    ByWords, Decision, FindingFilter, Grounded, Known, MemoryManager, QuoteError, find_quote, without_prefix,
};
use crate::model::item::{ItemId, Kind, Origin};
use crate::model::pointer::{Pointer, Span, Target};
use crate::recall::known;
use crate::records::record::PointerTarget;
use crate::write::draft::NewRecall;
use crate::write::transaction::Transaction;
use crate::{Error, Result};

/// Known recalls that a finding is compared with (TierMem B.6, k).
const NEAREST: usize = 3;

/// A finding to be written back.
#[derive(Debug, Clone)]
pub struct Learn {
    text: String,
    pub(crate) vector: Option<Vec<f32>>,
    from: Vec<Pointer>,
    /// Name, value, and whether it is global.
    claims: Vec<(String, String, bool)>,
    add_only: bool,
    update_of: Option<Target>,
}

impl Learn {
    /// A finding in its own words.
    pub fn new(text: impl Into<String>) -> Learn {
        Learn {
            text: text.into(),
            vector: None,
            from: Vec::new(),
            claims: Vec::new(),
            add_only: false,
            update_of: None,
        }
    }

    /// Adds what it rests on.
    pub fn from(mut self, pointer: Pointer) -> Learn {
        self.from.push(pointer);
        self
    }

    /// Sets its vector in the database's space.
    pub fn vector(mut self, vector: Vec<f32>) -> Learn {
        self.vector = Some(vector);
        self
    }

    /// Adds a claim that it makes.
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<String>) -> Learn {
        self.claims.push((name.into(), value.into(), false));
        self
    }

    /// Adds a claim that competes in the whole database.
    pub fn global_claim(mut self, name: impl Into<String>, value: impl Into<String>) -> Learn {
        self.claims.push((name.into(), value.into(), true));
        self
    }

    /// Updates nothing: adds or skips.
    pub fn add_only(mut self) -> Learn {
        self.add_only = true;
        self
    }

    /// Updates this recall, without asking the manager.
    pub fn update_of(mut self, recall: Target) -> Learn {
        self.update_of = Some(recall);
        self
    }
}

/// The deciders of a write-back.
#[derive(Clone, Copy)]
pub struct LearnRoles<'r> {
    /// Says ADD, UPDATE or SKIP.
    pub manager: &'r dyn MemoryManager,
    /// Refuses what is not worth keeping.
    pub filter: &'r dyn FindingFilter,
}

/// The outcome for a finding, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnOp {
    /// It is a new recall.
    Add,
    /// It replaced a known recall.
    Update,
    /// Nothing was written.
    Skip,
}

impl LearnOp {
    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            LearnOp::Add => "add",
            LearnOp::Update => "update",
            LearnOp::Skip => "skip",
        }
    }
}

/// The outcome of a write-back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// The outcome in one word.
    pub op: LearnOp,
    /// The new recall, or the one that said it already.
    pub item: Option<ItemId>,
    /// The recall that it supersedes.
    pub replaced: Option<ItemId>,
    /// Pointers of the new recall.
    pub pointers: u64,
    /// Pointers that did not resolve, and why nothing was written.
    pub notes: Vec<String>,
}

impl Transaction<'_> {
    /// Writes a finding back with the built-in roles, in the language of the database.
    ///
    /// # Errors
    /// As [`Transaction::learn`].
    pub fn learn_by_words(&mut self, learn: &Learn) -> Result<Learned> {
        let manager = ByWords::new(known::analyzer(&self.names()?)?);
        self.learn(learn, LearnRoles { manager: &manager, filter: &Grounded })
    }

    /// Writes a finding back (TierMem B.6). With the setting `audit = reads`, the outcome is logged too, SKIP included.
    ///
    /// # Errors
    /// [`Error::UnresolvedPointer`] if none of its pointers resolves; [`Error::Missing`] for a recall to update that
    /// does not exist, [`Error::Invalid`] for one that is a trace or retired; otherwise as
    /// [`Transaction::remember`].
    pub fn learn(&mut self, learn: &Learn, roles: LearnRoles<'_>) -> Result<Learned> {
        self.atomically(|transaction| {
            let learned = transaction.learn_inner(learn, roles)?;
            transaction.keep_learned(&learned)?;
            Ok(learned)
        })
    }

    fn learn_inner(&mut self, learn: &Learn, roles: LearnRoles<'_>) -> Result<Learned> {
        let mut notes = Vec::new();
        let from = self.linked(learn, &mut notes)?;
        let skip = |item, mut notes: Vec<String>, why: String| {
            notes.push(why);
            Ok(Learned { op: LearnOp::Skip, item, replaced: None, pointers: 0, notes })
        };
        let evidence = self.cited_texts(&from)?;
        match roles.filter.refuse(&learn.text, &evidence) {
            Ok(None) => {}
            Ok(Some(why)) => return skip(None, notes, format!("skipped: {why}")),
            Err(why) => return skip(None, notes, format!("skipped: the filter failed: {why}")),
        }
        if let Some(target) = &learn.update_of {
            let old = self.find(target)?;
            return self.merge_into(old, learn, learn.text.clone(), from, notes);
        }
        let known = self.known(learn)?;
        let views: Vec<Known<'_>> = known.iter().map(|(_, key, text)| Known { key, text }).collect();
        let at = |index: usize| known.get(index).map(|(item, ..)| *item);
        match roles.manager.decide(&learn.text, &views) {
            Ok(Decision::Update { of, text }) if !learn.add_only => match at(of) {
                Some(old) => self.merge_into(old, learn, text, from, notes),
                None => skip(None, notes, format!("skipped: the manager named recall {of} of {}", known.len())),
            },
            Ok(Decision::Add | Decision::Update { .. }) => self.add(learn, from, notes),
            Ok(Decision::Skip { by }) => {
                let why = if by.is_some() { "skipped: it is known" } else { "skipped by the manager" };
                skip(by.and_then(at), notes, why.to_owned())
            }
            Err(why) => skip(None, notes, format!("skipped: the manager failed: {why}")),
        }
    }

    fn add(&mut self, learn: &Learn, from: Vec<Pointer>, notes: Vec<String>) -> Result<Learned> {
        let mut recall = NewRecall::new(Kind::Fact, learn.text.clone()).origin(Origin::LinkedFact);
        recall.vector = self.finding_vector(learn, &learn.text)?;
        recall.from = from;
        let item = self.remember(recall)?;
        self.state_claims(item, learn)?;
        let pointers = self.state()?.pointers(item)?.len() as u64;
        Ok(Learned { op: LearnOp::Add, item: Some(item), replaced: None, pointers, notes })
    }

    /// Supersedes a recall by one that says both.
    fn merge_into(
        &mut self,
        old: ItemId,
        learn: &Learn,
        text: String,
        from: Vec<Pointer>,
        notes: Vec<String>,
    ) -> Result<Learned> {
        let attributes = self.state()?.attributes(old)?;
        let key = self.names()?.key_of(old)?;
        if !attributes.active {
            return Err(Error::Invalid(format!("'{key}' is retired and cannot be updated; learn it anew")));
        }
        let mut recall = NewRecall::new(attributes.kind, text.clone()).origin(Origin::Refined);
        recall.vector = self.finding_vector(learn, &text)?;
        recall.from = from;
        let item = self.update(&key, recall)?;
        self.unite_links(old, item)?;
        self.state_claims(item, learn)?;
        let pointers = self.state()?.pointers(item)?.len() as u64;
        Ok(Learned { op: LearnOp::Update, item: Some(item), replaced: Some(old), pointers, notes })
    }

    /// The vector of a text to be remembered: that of the finding, if it is its text and has one, else the embedder's.
    fn finding_vector(&mut self, learn: &Learn, text: &str) -> Result<Option<Vec<f32>>> {
        match learn.vector.as_ref().filter(|_| text == learn.text) {
            Some(vector) => Ok(Some(vector.clone())),
            None => self.text_vector(text),
        }
    }

    fn state_claims(&mut self, item: ItemId, learn: &Learn) -> Result<()> {
        learn.claims.iter().try_for_each(|(name, value, global)| self.claim(item, name, value, *global, &[]))
    }

    /// The recalls nearest to a finding: by vector where it has one, else by words.
    fn known(&mut self, learn: &Learn) -> Result<Vec<(ItemId, String, String)>> {
        let snapshot = self.snapshot()?;
        let found = known::nearest_recalls(&snapshot, &learn.text, learn.vector.as_deref(), NEAREST)?;
        let mut known = Vec::with_capacity(found.len());
        for id in found {
            known.push((id, snapshot.key_of(id)?, snapshot.content(id)?.text().to_owned()));
        }
        Ok(known)
    }

    // ---- linking ----

    /// The pointers that resolve, each to the bytes it means.
    fn linked(&mut self, learn: &Learn, notes: &mut Vec<String>) -> Result<Vec<Pointer>> {
        let mut linked = Vec::with_capacity(learn.from.len());
        let mut first = None;
        for pointer in &learn.from {
            match self.link_finding(&learn.text, pointer, notes) {
                Ok(pointer) => linked.push(pointer),
                Err(error @ (Error::UnresolvedPointer { .. } | Error::HashMismatch { .. })) => {
                    notes.push(format!("left out: {error}"));
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match first {
            Some(error) if linked.is_empty() => Err(error),
            None if linked.is_empty() => {
                Err(Error::Invalid("learn needs at least one pointer to its evidence".to_owned()))
            }
            _ => Ok(linked),
        }
    }

    fn link_finding(&mut self, finding: &str, pointer: &Pointer, notes: &mut Vec<String>) -> Result<Pointer> {
        match (&pointer.target, &pointer.span) {
            (Target::Page(key), Span::Whole) => {
                let page = self.resolve(pointer)?;
                let best = self.best_trace(finding, page.target)?;
                Ok(best.map_or_else(|| Pointer::to_page(key.clone()), Pointer::to_item))
            }
            (_, Span::Quoting(quote)) => match self.resolve(pointer) {
                Err(Error::UnresolvedPointer { .. }) => {
                    self.link_folded(quote, pointer).or_else(|error| self.link_by_words(finding, pointer, error, notes))
                }
                resolved => self.as_stated(resolved?),
            },
            _ => self.resolve(pointer).map(|_| pointer.clone()),
        }
    }

    /// The trace of a page that says a finding whose quote it does not have; else the error of the quote.
    fn link_by_words(
        &mut self,
        finding: &str,
        pointer: &Pointer,
        error: Error,
        notes: &mut Vec<String>,
    ) -> Result<Pointer> {
        let is_absent = matches!(&error, Error::UnresolvedPointer { reason, .. } if !reason.contains("ambiguous"));
        let Target::Page(_) = &pointer.target else { return Err(error) };
        if !is_absent || pointer.hash.is_some() {
            return Err(error);
        }
        let whole = Pointer { span: Span::Whole, ..pointer.clone() };
        let page = self.resolve(&whole)?;
        match self.best_trace(finding, page.target)? {
            Some(trace) => {
                notes.push(format!("linked by its words: {error}"));
                Ok(Pointer::to_item(trace))
            }
            None => Err(error),
        }
    }

    /// The bytes of a quote that is not there as written.
    fn link_folded(&mut self, quote: &str, pointer: &Pointer) -> Result<Pointer> {
        let unresolved = |reason: String| Error::UnresolvedPointer { target: pointer.target.to_string(), reason };
        let places: Vec<ItemId> = match &pointer.target {
            Target::Page(_) => {
                let whole = Pointer { span: Span::Whole, hash: None, ..pointer.clone() };
                self.page_traces(self.resolve(&whole)?.target)?
            }
            target => vec![self.find(target).map_err(|_| unresolved("the item does not exist".to_owned()))?],
        };
        let field = pointer.field.as_deref().unwrap_or("text");
        let mut found: Option<Pointer> = None;
        let mut why = None;
        for item in places {
            let content = self.content(item)?;
            let Some(text) = content.field(field).and_then(|field| std::str::from_utf8(field.value.bytes()).ok())
            else {
                continue;
            };
            let speaker = content.record.speaker.as_deref().or(content.record.tool.as_deref());
            let found_there = find_quote(text, quote);
            match found_there.or_else(|error| match error {
                QuoteError::Absent => find_quote(text, without_prefix(quote, speaker)),
                error => Err(error),
            }) {
                Err(error @ QuoteError::Ambiguous) => {
                    return Err(unresolved(format!("it {error}; give the byte range")));
                }
                Ok(_) if found.is_some() => {
                    return Err(unresolved("several of its traces contain the quote: ambiguous; name one".to_owned()));
                }
                Ok(span) => {
                    let at = Pointer::to_item(item).field(field).bytes(span.start as u64, span.end as u64);
                    found = Some(Pointer { hash: pointer.hash.clone(), ..at });
                }
                Err(error) => drop(why.get_or_insert(error)),
            }
        }
        let reason = || why.map_or_else(|| format!("it has no field {field:?}"), |why| format!("it {why} {quote:?}"));
        let found = found.ok_or_else(|| unresolved(reason()))?;
        self.resolve(&found)?;
        Ok(found)
    }

    /// The texts that pointers lead into, whole.
    fn cited_texts(&mut self, from: &[Pointer]) -> Result<Vec<String>> {
        let mut texts = Vec::with_capacity(from.len());
        for pointer in from {
            let resolved = self.resolve(pointer)?;
            for item in self.page_traces(resolved.target)? {
                let content = self.content(item)?;
                texts.push(match resolved.target {
                    PointerTarget::Page(_) => content.text().to_owned(),
                    PointerTarget::Item(_) => {
                        let bytes = content.field(&resolved.field).map_or(&[][..], |field| field.value.bytes());
                        String::from_utf8_lossy(bytes).into_owned()
                    }
                });
            }
        }
        Ok(texts)
    }

    /// The trace of a page with at least half of the finding's content words, and more than any other.
    fn best_trace(&mut self, finding: &str, page: PointerTarget) -> Result<Option<ItemId>> {
        let by_words = ByWords::new(known::analyzer(&self.names()?)?);
        let wanted = by_words.content(finding);
        let mut best: Option<(usize, ItemId, bool)> = None;
        for trace in self.page_traces(page)? {
            let words = by_words.content(self.content(trace)?.text());
            let shared = wanted.intersection(&words).count();
            best = match best {
                Some((most, item, _)) if shared == most => Some((most, item, false)),
                Some((most, ..)) if shared < most => best,
                _ => Some((shared, trace, true)),
            };
        }
        Ok(best.filter(|(shared, _, is_only)| *is_only && *shared > 0 && shared * 2 >= wanted.len()).map(|best| best.1))
    }
}
