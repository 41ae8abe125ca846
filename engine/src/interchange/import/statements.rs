//! Lines about the database, an episode or existing items.

use super::fault::{At, Failure, Fault};
use super::items::{pointer, word};
use super::past::{Statement, Subject, cites};
use super::same::same_pointer;
use super::{Import, Outcome, quoted};
use crate::interchange::{
    self,
    line::{Claim, Deactivate, Episode, Link, Mark, Pointer, Redact, Setting, Space},
};
use crate::model::item::Inherited;
use crate::model::pointer::{self, Target};
use crate::model::space;
use crate::records::record::{PointerTarget, UncitedRecord};
use crate::records::tables;
use crate::state::{State, settings};
use crate::write::forget::Forget;
use crate::write::transaction::{self, EpisodeChange};
use crate::{Edge, Encoding, ItemId, Metric, Result, Status};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

impl Import<'_> {
    pub(super) fn space(&mut self, line: &Space) -> Result<Outcome, Failure> {
        let metric = line.metric.as_deref().and_then(Metric::from_name).unwrap_or(Metric::Cosine);
        let encoding = line.encoding.as_deref().and_then(Encoding::from_name).unwrap_or(Encoding::F32);
        let given = space::Space { model: line.model.clone(), dim: line.dim as usize, metric, encoding };
        let transaction = self.transaction()?;
        let before = transaction.len();
        let differing = match transaction.state()?.meta.space.as_deref().map(space::Space::try_from).transpose()? {
            Some(stored) if stored.model != given.model => "model",
            Some(stored) if stored.metric != given.metric => "metric",
            Some(stored) if stored.encoding != given.encoding => "encoding",
            _ => "dim",
        };
        transaction.define_space(&given).at(&["space", differing])?;
        Ok(Outcome::added_if(transaction.len() > before))
    }

    pub(super) fn setting(&mut self, line: &Setting) -> Result<Outcome, Failure> {
        let value = settings::canonical(&line.name, &line.value).at(&["setting", "value"])?;
        let stands = self.transaction()?.state()?.setting(&line.name)?;
        let subject = Subject::Setting(line.name.clone());
        let Some(value) = self.unless_known(subject, Some(value), stands, Statement::Value)? else {
            return Ok(Outcome::Known);
        };
        self.transaction()?.set(&line.name, &value).at(&["setting", "value"])?;
        Ok(Outcome::Added)
    }

    pub(super) fn episode(&mut self, line: &Episode) -> Result<Outcome, Failure> {
        let state = self.transaction()?.state()?;
        let mut change = EpisodeChange { task: line.task.clone(), version: line.version.clone(), open: line.open };
        if let Some(number) = state.episode_number(&line.id)? {
            let row = state.episode(number)?;
            let id = || line.id.clone();
            change.task = self.unless_known(Subject::Task(id()), change.task, row.task.clone(), Statement::Value)?;
            change.version =
                self.unless_known(Subject::Version(id()), change.version, row.version.clone(), Statement::Value)?;
            change.open = self.unless_known(Subject::Open(id()), change.open, Some(row.open), Statement::Open)?;
            if (&change.task, &change.version, change.open) == (&None, &None, None) {
                return Ok(Outcome::Known);
            }
        }
        self.transaction()?.episode(&line.id, change).at(&["episode", "id"])?;
        Ok(Outcome::Added)
    }

    /// Forgets an item that was forgotten in the database that the line comes from.
    pub(super) fn redact(&mut self, line: &Redact) -> Result<Outcome, Failure> {
        let id = self.transaction()?.find(&Target::Key(line.key.clone())).at(&["redact", "key"])?;
        if self.transaction()?.attributes(id)?.redacted {
            return Ok(Outcome::Known);
        }
        if let Some(field) = &line.field {
            let content = self.transaction()?.content(id)?;
            if let Some(other) = content.field_names().find(|name| name != field) {
                let message = format!(
                    "only whole items are forgotten, and {} has a field {other:?} beside {field:?}",
                    quoted(&line.key)
                );
                return Err(Fault::new(&["redact", "field"], "invalid", message).into());
            }
        }
        // Content of this transaction can be erased only after its commit.
        if self.transaction()?.wrote_content(id) {
            self.commit()?;
        }
        let because = line.because.clone().unwrap_or_default();
        self.transaction()?.forget(&[id], &Forget::because(because)).at(&["redact", "key"])?;
        self.wordless.remove(&id);
        Ok(Outcome::Added)
    }

    /// Notes an item without a text.
    pub(super) fn note_wordless(&mut self, id: ItemId, wordless: bool) -> Result<()> {
        if wordless {
            let key = self.transaction()?.names()?.key_of(id)?;
            self.wordless.insert(id, key);
        }
        Ok(())
    }

    /// The value of a line, unless it is the present one or was a former one.
    fn unless_known<T: Clone + PartialEq>(
        &mut self,
        subject: Subject,
        given: Option<T>,
        stands: Option<T>,
        statement: impl Fn(T) -> Statement,
    ) -> Result<Option<T>> {
        let Some(value) = given else { return Ok(None) };
        let statement = statement(value.clone());
        if stands.as_ref() == Some(&value) {
            self.past.repeats(subject, statement);
            return Ok(None);
        }
        if self.past.holds(self.database, &subject, &statement)? {
            return Ok(None);
        }
        self.past.leave(&subject);
        Ok(Some(value))
    }

    // ---- links ----

    pub(super) fn link(&mut self, line: &Link) -> Result<Outcome, Failure> {
        let edge = word(&line.edge)?;
        if edge == Edge::Cites {
            return self.cite(line);
        }
        let key = plain_end(line, "link")?;
        for (from, to) in self.ends(&line.from, key)? {
            let stated = self.edge(from, edge, to)?.is_some_and(|row| row.stated);
            if stated {
                self.past.repeats(Subject::Edge(from, edge.to_byte(), to), Statement::Linked(true));
                return Ok(Outcome::Known);
            }
            if self.was_linked(from, edge, to)? {
                return Ok(Outcome::Known);
            }
        }
        let (from, to) = (self.holder(&line.from, &["link", "from"])?, self.holder(key, &["link", "to"])?);
        let linked = self.transaction()?.link(from, edge, to).at(&["link", "edge"]);
        linked.map_err(|failure| called(failure, line, from, to))?;
        self.past.leave(&Subject::Edge(from, edge.to_byte(), to));
        if edge == Edge::Supersedes {
            self.past.leave(&Subject::Active(to));
        }
        Ok(Outcome::Added)
    }

    fn cite(&mut self, line: &Link) -> Result<Outcome, Failure> {
        for from in self.called(&line.from)? {
            let items = match &line.to {
                Pointer::Page { .. } => None,
                Pointer::Field { key, .. } => Some(self.called(key)?),
            };
            let transaction = self.transaction()?;
            for stored in transaction.state()?.pointers(from)? {
                // The text of an item is read to compare a pointer to it.
                if let (Some(items), PointerTarget::Item(target)) = (&items, stored.target)
                    && !items.contains(&ItemId(target))
                {
                    continue;
                }
                if same_pointer(transaction, &line.to, &stored)? {
                    self.past.repeats(cites(from, stored.target), Statement::cited(&stored));
                    return Ok(Outcome::Known);
                }
            }
            if self.was_cited(from, &line.to)? {
                return Ok(Outcome::Known);
            }
        }
        let from = self.holder(&line.from, &["link", "from"])?;
        self.check_pointer(&["link", "to"], &line.to)?;
        let given = pointer(&line.to);
        let resolved = self.transaction()?.resolve(&given).at(&["link", "to"])?;
        let done = self.transaction()?.cite(from, &given).at(&["link", "to"]);
        let to = self.called(line.to.target())?.first().copied().unwrap_or(from);
        done.map_err(|failure| called(failure, line, from, to))?;
        self.past.leave(&cites(from, resolved.target));
        Ok(Outcome::Added)
    }

    /// True if an item had this pointer before the import began and an unlink removed it.
    fn was_cited(&mut self, from: ItemId, to: &Pointer) -> Result<bool> {
        for target in self.targets(to)? {
            let given = pointer::Pointer { target, ..pointer(to) };
            let Ok(resolved) = self.transaction()?.resolve(&given) else { continue };
            if self.past.holds(self.database, &cites(from, resolved.target), &Statement::cited(&resolved))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The possible targets of a pointer: every item that its key may mean, or the page.
    fn targets(&mut self, to: &Pointer) -> Result<Vec<Target>> {
        Ok(match to {
            Pointer::Page { page, .. } => vec![Target::Page(page.clone())],
            Pointer::Field { key, .. } => self.called(key)?.into_iter().map(Target::Item).collect(),
        })
    }

    /// Removes a pointer to a span or a page.
    fn uncite(&mut self, line: &Link) -> Result<Outcome, Failure> {
        for from in self.called(&line.from)? {
            for target in self.targets(&line.to)? {
                let given = pointer::Pointer { target, hash: None, ..pointer(&line.to) };
                let Ok(resolved) = self.transaction()?.resolve(&given) else { continue };
                let statement = Statement::uncited(&UncitedRecord::of(&resolved));
                if self.past.holds(self.database, &cites(from, resolved.target), &statement)? {
                    return Ok(Outcome::Known);
                }
            }
        }
        let from = self.holder(&line.from, &["unlink", "from"])?;
        self.check_pointer(&["unlink", "to"], &line.to)?;
        let given = pointer(&line.to);
        let resolved = self.transaction()?.resolve(&given).at(&["unlink", "to"])?;
        self.transaction()?.uncite(from, &given).at(&["unlink", "to"])?;
        self.past.leave(&cites(from, resolved.target));
        Ok(Outcome::Added)
    }

    pub(super) fn unlink(&mut self, line: &Link) -> Result<Outcome, Failure> {
        let edge: Edge = word(&line.edge)?;
        let key = match plain_end(line, "unlink") {
            Err(_) if edge == Edge::Cites => return self.uncite(line),
            key => key?,
        };
        for (from, to) in self.ends(&line.from, key)? {
            let subject = Subject::Edge(from, edge.to_byte(), to);
            if self.past.holds(self.database, &subject, &Statement::Linked(false))? {
                return Ok(Outcome::Known);
            }
        }
        let (from, to) = (self.holder(&line.from, &["unlink", "from"])?, self.holder(key, &["unlink", "to"])?);
        let unlinked = self.transaction()?.unlink(from, edge, to).at(&["unlink", "to"]);
        unlinked.map_err(|failure| called(failure, line, from, to))?;
        self.past.leave(&Subject::Edge(from, edge.to_byte(), to));
        Ok(Outcome::Added)
    }

    /// Every pair of items that two keys may mean.
    fn ends(&mut self, from: &str, to: &str) -> Result<Vec<(ItemId, ItemId)>> {
        let (from, to) = (self.called(from)?, self.called(to)?);
        Ok(from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))).collect())
    }

    fn edge(&mut self, from: ItemId, edge: Edge, to: ItemId) -> Result<Option<tables::EdgeRow>> {
        self.transaction()?.state()?.get(tables::EDGE_OUT, &tables::edge(from.0, edge.to_byte(), to.0))
    }

    /// True if the log linked two items before the import began.
    pub(super) fn was_linked(&mut self, from: ItemId, edge: Edge, to: ItemId) -> Result<bool> {
        let subject = Subject::Edge(from, edge.to_byte(), to);
        self.past.holds(self.database, &subject, &Statement::Linked(true))
    }

    // ---- claims ----

    pub(super) fn claim(&mut self, line: &Claim) -> Result<Outcome, Failure> {
        if line.won.is_some() {
            let message = "the winner of a claim is found by the engine and not imported yet by this version";
            return Err(Fault::new(&["claim", "won"], "not-yet", message).into());
        }
        let global = line.scope.as_deref() == Some(holotype_query::ClaimScope::Global.as_str());
        for item in self.called(&line.key)? {
            if self.has_claim(item, line, global)? {
                return Ok(Outcome::Known);
            }
        }
        let item = self.holder(&line.key, &["claim", "key"])?;
        self.check_pointers(&["claim", "from"], &line.from)?;
        let from: Vec<_> = line.from.iter().map(pointer).collect();
        self.transaction()?.claim(item, &line.name, &line.value, global, &from).at(&["claim", "name"])?;
        Ok(Outcome::Added)
    }

    fn has_claim(&mut self, item: ItemId, line: &Claim, global: bool) -> Result<bool> {
        let mut known = std::mem::take(&mut self.claims);
        let transaction = self.transaction()?;
        let numbers = known.numbers(transaction.state()?, item, &line.name)?;
        self.claims = known;
        let transaction = self.transaction()?;
        for number in numbers {
            let Some(stored) = transaction.state()?.claim(number)? else { continue };
            let alike = stored.item == item.0
                && stored.name == line.name
                && stored.value == line.value
                && stored.global == global
                && stored.from.len() == line.from.len();
            if !alike {
                continue;
            }
            let mut same = true;
            for (given, stored) in line.from.iter().zip(&stored.from) {
                same = same && same_pointer(transaction, given, stored)?;
            }
            if same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    // ---- marks ----

    pub(super) fn mark(&mut self, line: &Mark) -> Result<Outcome, Failure> {
        let items = self.called(&line.key)?;
        let mut added = false;
        if let Some(status) = &line.status {
            let status: Status = word(status)?;
            let statement = Statement::Status { status: status.to_byte(), because: line.because.clone() };
            let mark = transaction::Mark::Status(status);
            added |= self.mark_unless_known(&items, line, Subject::Status, statement, mark)?;
        }
        if let Some(mean) = line.utility {
            let count = line.reports.unwrap_or(1);
            let statement = Statement::Worth { mean, count, because: line.because.clone() };
            let mark = transaction::Mark::Utility(mean, count);
            added |= self.mark_unless_known(&items, line, Subject::Utility, statement, mark)?;
        }
        if let Some(mean) = line.credit {
            let count = line.rollouts.unwrap_or(1);
            let statement = Statement::Worth { mean, count, because: line.because.clone() };
            let mark = transaction::Mark::Credit(mean, count);
            added |= self.mark_unless_known(&items, line, Subject::Credit, statement, mark)?;
        }
        Ok(Outcome::added_if(added))
    }

    fn mark_unless_known(
        &mut self,
        items: &[ItemId],
        line: &Mark,
        subject: fn(ItemId) -> Subject,
        statement: Statement,
        mark: transaction::Mark,
    ) -> Result<bool, Failure> {
        for item in items {
            if line.because.is_none() && self.stands(*item, mark)? {
                self.past.repeats(subject(*item), statement);
                return Ok(false);
            }
            if self.past.holds(self.database, &subject(*item), &statement)? {
                return Ok(false);
            }
        }
        let item = self.holder(&line.key, &["mark", "key"])?;
        self.transaction()?.mark(item, mark, line.because.clone()).at(&["mark"])?;
        self.past.leave(&subject(item));
        Ok(true)
    }

    /// True if a mark would change nothing.
    fn stands(&mut self, item: ItemId, mark: transaction::Mark) -> Result<bool> {
        let attributes = self.transaction()?.state()?.attributes(item)?;
        Ok(match mark {
            transaction::Mark::Status(status) => {
                attributes.status == Some(status) && attributes.inherited & Inherited::STATUS == 0
            }
            transaction::Mark::Utility(utility, count) => {
                interchange::utility(&attributes) == Some(utility) && attributes.utility_count == count
            }
            transaction::Mark::Credit(credit, count) => (attributes.credit, attributes.credit_count) == (credit, count),
            transaction::Mark::Inactive => !attributes.active,
        })
    }

    pub(super) fn deactivate(&mut self, line: &Deactivate) -> Result<Outcome, Failure> {
        let by = match &line.by {
            Some(key) => Some(self.holder(key, &["deactivate", "by"])?),
            None => None,
        };
        let named = match &line.by {
            Some(key) => self.called(key)?,
            None => Vec::new(),
        };
        let statement = Statement::Retired { by: named, because: line.because.clone() };
        for item in self.called(&line.key)? {
            let bare = line.by.is_none() && line.because.is_none();
            if bare && self.stands(item, transaction::Mark::Inactive)? {
                self.past.repeats(Subject::Active(item), statement);
                return Ok(Outcome::Known);
            }
            if self.past.holds(self.database, &Subject::Active(item), &statement)? {
                return Ok(Outcome::Known);
            }
        }
        let item = self.holder(&line.key, &["deactivate", "key"])?;
        self.transaction()?.deactivate(item, by, line.because.clone()).at(&["deactivate"])?;
        self.past.leave(&Subject::Active(item));
        Ok(Outcome::Added)
    }
}

/// The failure with the keys of both ends of a link.
fn called(failure: Failure, line: &Link, from: ItemId, to: ItemId) -> Failure {
    failure.naming(from, &line.from).naming(to, line.to.target())
}

/// The claims of items that an import asked for, by name: to compare a line with each claim of its item would take
/// quadratic time.
#[derive(Default)]
pub(super) struct ClaimsOfItems {
    /// Claims with smaller numbers are in the map, where it has their items.
    end: u32,
    numbers: HashMap<ItemId, HashMap<String, Vec<u32>>>,
}

impl ClaimsOfItems {
    /// The numbers of the claims of an item for a name.
    fn numbers(&mut self, state: &State, item: ItemId, name: &str) -> Result<Vec<u32>> {
        let first = if self.numbers.is_empty() { state.meta.claims } else { self.end };
        for number in first..state.meta.claims {
            let Some(claim) = state.claim(number)? else { continue };
            if let Some(names) = self.numbers.get_mut(&ItemId(claim.item)) {
                names.entry(claim.name).or_default().push(number);
            }
        }
        self.end = state.meta.claims;
        let names = match self.numbers.entry(item) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut names: HashMap<String, Vec<u32>> = HashMap::new();
                for claim in state.stated_claims_of(item)? {
                    names.entry(claim.name).or_default().push(claim.number);
                }
                place.insert(names)
            }
        };
        Ok(names.get(name).cloned().unwrap_or_default())
    }
}

/// The key of a link's target, which may be more than a key only for `cites`.
fn plain_end<'l>(line: &'l Link, kind: &str) -> Result<&'l str, Failure> {
    match &line.to {
        Pointer::Field { key, field, span: None, hash: None } if field == Pointer::FIELD => Ok(key),
        to => {
            let message = format!(
                "a `{}` edge goes to an item, named by its key alone; only `cites` goes to a part of {}",
                line.edge,
                quoted(to.target())
            );
            Err(Fault::new(&[kind, "to"], "invalid", message).into())
        }
    }
}
