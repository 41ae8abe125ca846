//! Filters: evaluate a predicate to the set of matching items, before any vector is scored.
//!
//! A test on a scalar attribute scans one column. Tests on text, fields, edges and claims read items one by one, and
//! only those that all cheaper tests of the same conjunction leave.
//!
//! Invariant: `evaluate(p, c) = { i in c : p matches i }`. A test on an absent attribute is false, and `not` is the
//! complement.

use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer, Status, Support};
use crate::read::cell::{self, Cell};
use crate::read::glob::{comparable, glob};
use crate::read::item_view::ItemView;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::records::field::Declared;
use crate::records::tables;
use crate::state::State;
use crate::state::attributes::{Column, ValueTest};
use crate::state::conflicts::Conflicts;
use crate::state::reader_position::{ReaderPosition, Window};
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Bound, Flaw, Pointer, Predicate, Ref, Scope, Test};
use holotype_query::{AttributeId, FlawKind, ItemRef, Name, Noun, Op, Value};
use std::cell::{Cell as Slot, OnceCell, RefCell};
use std::collections::HashMap;

/// Items that a column scan tests in the time of reading one item.
const SCANNED_ITEMS_PER_READ: u64 = 512;
/// Differing versions that are selected one after another before items are tested one by one.
const MAX_VERSIONS_APART: usize = 8;

/// The context of an evaluation.
pub(crate) struct Filter<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) reader_position: &'a ReaderPosition,
    ahead: OnceCell<Bits>,
    pub(crate) declared: OnceCell<Vec<Declared>>,
}

impl<'a> Filter<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, reader_position: &'a ReaderPosition) -> Filter<'a> {
        Filter { snapshot, reader_position, ahead: OnceCell::new(), declared: OnceCell::new() }
    }

    pub(super) fn state(&self) -> &State {
        &self.snapshot.state
    }

    pub(super) fn select(&self, column: Column, test: &dyn Fn(f64) -> bool) -> Result<Bits> {
        self.snapshot.keep(self.state().bound() as usize / 8)?;
        self.snapshot.tick()?;
        self.state().attributes.select(column, self.state().bound(), test)
    }

    pub(super) fn select_values(&self, column: Column, wanted: ValueTest<'_>) -> Result<Bits> {
        self.snapshot.keep(self.state().bound() as usize / 8)?;
        self.snapshot.tick()?;
        self.state().attributes.select_values(column, self.state().bound(), wanted)
    }

    /// The items of `among` that match.
    pub(crate) fn evaluate(&self, predicate: &Predicate, among: &Bits) -> Result<Bits> {
        match predicate {
            Predicate::And(parts) => {
                let mut left = among.clone();
                for (part, _) in self.cheapest_first(parts)? {
                    if left.is_empty() {
                        break;
                    }
                    left = self.evaluate(part, &left)?;
                }
                Ok(left)
            }
            Predicate::Or(parts) => {
                let mut any = Bits::new();
                for part in parts {
                    any = any.or(&self.evaluate(part, &among.and_not(&any))?);
                }
                Ok(any)
            }
            Predicate::Not(part) => Ok(among.and_not(&self.evaluate(part, among)?)),
            Predicate::Test(test) => {
                if let Some(found) = self.field_test(test)? {
                    return Ok(found.and(among));
                }
                if self.prefers_item_reads(among) {
                    return self.test_each(test, among);
                }
                match self.column_test(test)? {
                    Some(found) => Ok(found.and(among)),
                    None => self.test_each(test, among),
                }
            }
        }
    }

    /// The first `most` items of `among` that match; items behind them are not read.
    pub(crate) fn first(&self, predicate: &Predicate, among: &Bits, most: u64) -> Result<Bits> {
        let parts = match predicate {
            Predicate::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let (mut left, mut rest) = (among.clone(), Vec::new());
        for (part, from_columns) in self.cheapest_first(parts)? {
            match from_columns {
                true => left = self.evaluate(part, &left)?,
                false => rest.push(part),
            }
        }
        let mut found = Vec::new();
        for id in left.iter() {
            if found.len() as u64 == most {
                break;
            }
            let view = ItemView::new(self.snapshot, self.reader_position, ItemId(id))?;
            if rest.iter().try_fold(true, |all, part| Ok::<bool, Error>(all && self.holds_for(&view, part)?))? {
                found.push(id);
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The parts of a conjunction, those answered from columns first, so that the fewest items are read one by one.
    /// The flag tells whether columns suffice.
    pub(crate) fn cheapest_first<'p>(&self, parts: &'p [Predicate]) -> Result<Vec<(&'p Predicate, bool)>> {
        let mut ordered = Vec::with_capacity(parts.len());
        for part in parts {
            ordered.push((part, self.is_cheap(part)?));
        }
        ordered.sort_by_key(|(_, cheap)| !cheap);
        Ok(ordered)
    }

    /// Returns true if columns alone answer a predicate.
    fn is_cheap(&self, predicate: &Predicate) -> Result<bool> {
        match predicate {
            Predicate::And(parts) | Predicate::Or(parts) => {
                parts.iter().try_fold(true, |all, part| Ok(all && self.is_cheap(part)?))
            }
            Predicate::Not(part) => self.is_cheap(part),
            Predicate::Test(test) => Ok(has_column(test) || self.declared_path(test)?.is_some()),
        }
    }

    /// Returns true if testing these items one by one is cheaper than scanning a column.
    fn prefers_item_reads(&self, among: &Bits) -> bool {
        among.count() * SCANNED_ITEMS_PER_READ <= u64::from(self.state().bound())
    }

    /// Returns true if one item matches.
    pub(crate) fn holds_for(&self, view: &ItemView<'_>, predicate: &Predicate) -> Result<bool> {
        match predicate {
            Predicate::And(parts) => parts.iter().try_fold(true, |all, part| Ok(all && self.holds_for(view, part)?)),
            Predicate::Or(parts) => parts.iter().try_fold(false, |any, part| Ok(any || self.holds_for(view, part)?)),
            Predicate::Not(part) => Ok(!self.holds_for(view, part)?),
            Predicate::Test(test) => self.test_holds_for(view, test),
        }
    }

    fn test_holds_for(&self, view: &ItemView<'_>, test: &Test) -> Result<bool> {
        match test {
            Test::Redacted => Ok(view.attributes()?.redacted),
            Test::Flaw(flaw) => {
                let attributes = view.attributes()?;
                Ok(match flaw.kind {
                    FlawKind::Failed => attributes.status == Some(Status::Failed),
                    FlawKind::Stale => {
                        self.reader_position.is_stale(self.state(), attributes, &window(self.state(), flaw)?)?
                    }
                    FlawKind::Conflicted => self.is_conflicted(view.id)?,
                    FlawKind::Weakened => attributes.support == Support::Weakened,
                    FlawKind::Unsupported => attributes.support == Support::Unsupported,
                    FlawKind::Ungrounded => attributes.ungrounded,
                    FlawKind::Inactive => !attributes.active,
                    FlawKind::Quarantined => view.quarantine()?.is_some(),
                })
            }
            Test::Edge { edge, target } => {
                let one: Bits = [view.id.0].into_iter().collect();
                Ok(!self.edge_test(Edge::from(*edge), target.as_ref(), &one)?.is_empty())
            }
            test => holds(&|name| view.get(name), &|pattern| view.claims(pattern), test),
        }
    }

    /// Returns true if an item belongs to a noun and a scope.
    pub(crate) fn is_among(&self, view: &ItemView<'_>, noun: Noun, scope: Option<&Scope>) -> Result<bool> {
        let is_of_noun = view.kind()?.is_of(noun);
        match scope {
            _ if !is_of_noun => Ok(false),
            None | Some(Scope::All) => Ok(true),
            Some(Scope::Episodes(ids)) => {
                let wanted = episode_numbers(self.state(), ids)?;
                Ok(view.episode_numbers()?.iter().any(|number| wanted.contains(number)))
            }
            pages @ Some(Scope::Pages(_)) => Ok(self.scope(pages)?.contains(view.id.0)),
        }
    }

    /// The items that match a test on one column; `None` for other tests.
    fn column_test(&self, test: &Test) -> Result<Option<Bits>> {
        match test {
            Test::Compare { name, op, value } => {
                let op = *op;
                if let (true, Op::Eq, Value::Text(id)) = (is_episode(name), op, value) {
                    return self.in_episodes(&[id]).map(Some);
                }
                if let (Some(column), Op::Eq, Value::Text(text)) = (symbols(name), op, value) {
                    let Some(number) = self.state().symbol(text)?.map(i64::from) else { return Ok(Some(Bits::new())) };
                    return self.select_values(column, ValueTest::Range(number, number)).map(Some);
                }
                if let Some((column, low, high)) = self.range(name, op, value) {
                    return self.select_values(column, ValueTest::Range(low, high)).map(Some);
                }
                self.by_name(name, &|cell| cell::holds(cell, op, value))
            }
            Test::In { name, not: false, list } if is_episode(name) => {
                let ids: Option<Vec<&String>> = list.iter().map(text_of).collect();
                ids.map(|ids| self.in_episodes(&ids)).transpose()
            }
            Test::In { name, not, list } => {
                self.by_name(name, &|cell| list.iter().any(|value| cell::holds(cell, Op::Eq, value)) != *not)
            }
            Test::Between { name, not, low, high } => {
                if let (false, Some((column, from, _)), Some((_, _, to))) =
                    (*not, self.range(name, Op::Ge, low), self.range(name, Op::Le, high))
                {
                    return self.select_values(column, ValueTest::Range(from, to)).map(Some);
                }
                self.by_name(name, &|cell| (cell::holds(cell, Op::Ge, low) && cell::holds(cell, Op::Le, high)) != *not)
            }
            Test::Contains { name, not, text } => {
                let wanted = comparable(text);
                self.by_name(name, &|cell| contains(cell, &wanted) != *not)
            }
            Test::Matches { name, not, glob } => self.by_name(name, &|cell| matches(cell, glob) != *not),
            Test::Has(name) => self.by_name(name, &|_| true),
            Test::Flaw(flaw) => self.flaw(flaw).map(Some),
            Test::Redacted => self.select(Column::Redacted, &|redacted| redacted == 1.0).map(Some),
            Test::Edge { .. } | Test::Claims { .. } => Ok(None),
        }
    }

    /// The column and the range of numbers that a comparison is equivalent to, if there is one.
    fn range(&self, name: &Name, op: Op, value: &Value) -> Option<(Column, i64, i64)> {
        let (column, number) = match (name.attribute()?, value) {
            (AttributeId::Step, Value::Number(number)) => (Column::Step, number.as_i64()?),
            (AttributeId::Tokens, Value::Number(number)) => (Column::Tokens, number.as_i64()?),
            (AttributeId::Commit, Value::Number(number)) => (Column::Commit, number.as_i64()?),
            (AttributeId::Time, Value::Text(text)) => (Column::Time, crate::model::time::parse(text).ok()?),
            (AttributeId::Time, Value::Number(micros)) => (Column::Time, micros.as_i64()?),
            _ => return None,
        };
        let (low, high) = match op {
            Op::Eq => (number, number),
            Op::Ne => return None,
            Op::Lt => (i64::MIN, number.checked_sub(1)?),
            Op::Le => (i64::MIN, number),
            Op::Gt => (number.checked_add(1)?, i64::MAX),
            Op::Ge => (number, i64::MAX),
        };
        Some((column, low, high))
    }

    /// The items whose attribute passes the test; `None` if the attribute has no column.
    pub(super) fn by_name(&self, name: &Name, test: &dyn Fn(&Cell) -> bool) -> Result<Option<Bits>> {
        let Some(attribute) = name.attribute() else { return Ok(None) };
        let named = |column, of: fn(u8) -> Option<&'static str>| {
            self.select(column, &|byte| of(byte as u8).is_some_and(|name| test(&Cell::text(name)))).map(Some)
        };
        let whole = |column| self.select(column, &|number| test(&Cell::Integer(number as i64))).map(Some);
        match attribute {
            AttributeId::Kind => named(Column::Kind, |byte| Kind::from_byte(byte).map(Kind::as_str)),
            AttributeId::Layer => named(Column::Kind, |byte| Kind::from_byte(byte).map(|kind| kind.layer().as_str())),
            AttributeId::Status => named(Column::Status, |byte| Status::from_byte(byte).map(Status::as_str)),
            AttributeId::Source => {
                named(Column::Source, |byte| crate::model::item::Source::from_byte(byte).map(|source| source.as_str()))
            }
            AttributeId::Support => named(Column::Support, |byte| Support::from_byte(byte).map(Support::as_str)),
            AttributeId::Step => whole(Column::Step),
            AttributeId::Tokens => whole(Column::Tokens),
            AttributeId::Commit => whole(Column::Commit),
            AttributeId::ReturnScore => whole(Column::ReturnScore),
            AttributeId::Utility => self.select(Column::Utility, &|number| test(&Cell::Number(number))).map(Some),
            AttributeId::Credit => self.select(Column::Credit, &|number| test(&Cell::Number(number))).map(Some),
            AttributeId::Reports => whole(Column::Reports),
            AttributeId::Rollouts => whole(Column::Rollouts),
            AttributeId::Time => self.select(Column::Time, &|micros| test(&Cell::Time(micros as i64))).map(Some),
            AttributeId::Age => {
                let Some(now) = self.reader_position.reader.time else { return Ok(Some(Bits::new())) };
                self.select(Column::Time, &|micros| test(&Cell::Duration(now.saturating_sub(micros as i64).max(0))))
                    .map(Some)
            }
            AttributeId::Active => self.select(Column::Active, &|active| test(&Cell::Bool(active == 1.0))).map(Some),
            AttributeId::Redacted => {
                self.select(Column::Redacted, &|redacted| test(&Cell::Bool(redacted == 1.0))).map(Some)
            }
            AttributeId::Ungrounded => self.select(Column::Ungrounded, &|yes| test(&Cell::Bool(yes == 1.0))).map(Some),
            AttributeId::Version => self.by_symbol(Column::Version, test).map(Some),
            AttributeId::Speaker => self.by_symbol(Column::Speaker, test).map(Some),
            AttributeId::Tool => self.by_symbol(Column::Tool, test).map(Some),
            _ => Ok(None),
        }
    }

    /// Tests each known name once, then the column by symbol number.
    fn by_symbol(&self, column: Column, test: &dyn Fn(&Cell) -> bool) -> Result<Bits> {
        let mut passing = vec![false; self.state().meta.symbols as usize];
        for (key, value) in self.state().scan(tables::SYMBOL, &[])? {
            let name: String = holotype_storage::codec::decode(&value)?;
            let number = tables::number_at(&key, 0).unwrap_or(u32::MAX) as usize;
            if let Some(slot) = passing.get_mut(number) {
                *slot = test(&Cell::Text(name));
            }
        }
        // The passing numbers are often consecutive, which permits a range scan.
        let first = passing.iter().position(|passes| *passes);
        let last = passing.iter().rposition(|passes| *passes);
        match (first, last) {
            (Some(first), Some(last)) if passing[first..=last].iter().all(|passes| *passes) => {
                self.select_values(column, ValueTest::Range(first as i64, last as i64))
            }
            (Some(_), _) => self.select(column, &|number| passing.get(number as usize).copied().unwrap_or(false)),
            _ => Ok(Bits::new()),
        }
    }

    /// The items with a flaw.
    pub(crate) fn flaw(&self, flaw: &Flaw) -> Result<Bits> {
        match flaw.kind {
            FlawKind::Failed => self.select(Column::Status, &|status| status as u8 == Status::Failed.to_byte()),
            FlawKind::Stale => self.stale(&window(self.state(), flaw)?),
            FlawKind::Conflicted => self.conflicted(),
            FlawKind::Weakened => self.select(Column::Support, &|support| support as u8 == Support::Weakened.to_byte()),
            FlawKind::Unsupported => {
                self.select(Column::Support, &|support| support as u8 == Support::Unsupported.to_byte())
            }
            FlawKind::Ungrounded => self.select(Column::Ungrounded, &|yes| yes == 1.0),
            FlawKind::Inactive => self.select(Column::Active, &|active| active == 0.0),
            FlawKind::Quarantined => self.quarantined(),
        }
    }

    /// The items whose text instructs; each is read once while the database is open.
    fn quarantined(&self) -> Result<Bits> {
        let state = self.state();
        let verdict = |id: u32| -> Result<bool> {
            match ItemView::new(self.snapshot, self.reader_position, ItemId(id))?.quarantine() {
                Ok(reason) => Ok(reason.is_some()),
                Err(error) if is_damage(&error) => Ok(false),
                Err(error) => Err(error),
            }
        };
        let visible = state.attributes.base_sets(state.bound()).visible()?;
        self.snapshot.core.quarantined.among(&visible, self.snapshot.is_committed(), verdict)
    }

    /// The items that are later than the reader: by step in the reader's episode, by time in any.
    pub(crate) fn ahead(&self) -> Result<&Bits> {
        if let Some(ahead) = self.ahead.get() {
            return Ok(ahead);
        }
        let mut ahead = Bits::new();
        let state = self.state();
        if let (Some(episode), Some(step)) = (self.reader_position.episode, self.reader_position.reader.step) {
            let next = i64::try_from(step).unwrap_or(i64::MAX).saturating_add(1);
            let later = self.select_values(Column::Step, ValueTest::Range(next, i64::MAX))?;
            ahead = later.and(&self.of_episode(episode)?);
        }
        if let Some(until) = self.reader_position.until.filter(|until| state.meta.latest_time > Some(*until)) {
            let later = ValueTest::Range(until.saturating_add(1), i64::MAX);
            ahead = ahead.or(&self.select_values(Column::Time, later)?);
        }
        if !ahead.is_empty() {
            ahead = ahead.and_not(&state.attributes.layer(Layer::Theme, state.bound())?);
        }
        Ok(self.ahead.get_or_init(|| ahead))
    }

    /// True if a leader contradicts a claim of the item, as the reader sees it.
    fn is_conflicted(&self, id: ItemId) -> Result<bool> {
        Ok(Conflicts::new(self.state(), self.reader_position).leader_over(id)?.is_some())
    }

    /// The items whose claims a leader contradicts, as the reader sees it.
    fn conflicted(&self) -> Result<Bits> {
        let conflicts = Conflicts::new(self.state(), self.reader_position);
        let mut found = Vec::new();
        for id in self.state().items_with_claims()? {
            self.snapshot.tick()?;
            if conflicts.leader_over(id)?.is_some() {
                found.push(id.0);
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The items that are stale by any enabled criterion.
    pub(crate) fn stale(&self, window: &Window) -> Result<Bits> {
        let mut stale = Bits::new();
        if let (Some(bound), Some(now)) = (window.age, self.reader_position.reader.time) {
            stale = self
                .select_values(Column::Time, ValueTest::Range(i64::MIN, now.saturating_sub(bound).saturating_sub(1)))?;
        }
        if let (Some(bound), Some(episode), Some(step)) =
            (window.steps, self.reader_position.episode, self.reader_position.reader.step)
        {
            let here = self.of_episode(episode)?;
            let before = i64::try_from(step.saturating_sub(bound)).unwrap_or(i64::MAX);
            let old = self.select_values(Column::Step, ValueTest::Range(0, before - 1))?;
            stale = stale.or(&here.and(&old));
        }
        if window.version {
            stale = stale.or(&self.foreign()?);
        }
        Ok(stale)
    }

    /// The items whose version disagrees with the reader's. Versions that differ are looked at one after another,
    /// and value by value when there are many.
    pub(crate) fn foreign(&self) -> Result<Bits> {
        use crate::state::reader_position::VersionNumber;
        let mut differing = match self.reader_position.version {
            None => return Ok(Bits::new()),
            Some(VersionNumber::Unknown) => self.select_values(Column::Version, ValueTest::Range(0, i64::MAX))?,
            Some(VersionNumber::Known(mine)) => {
                let (before, mine) = (i64::from(mine) - 1, i64::from(mine));
                let older = self.select_values(Column::Version, ValueTest::Range(0, before))?;
                older.or(&self.select_values(Column::Version, ValueTest::Range(mine + 1, i64::MAX))?)
            }
        };
        let mut foreign = Bits::new();
        for _ in 0..MAX_VERSIONS_APART {
            let Some(item) = differing.iter().next() else { return Ok(foreign) };
            let Some(number) = self.state().attributes(ItemId(item))?.version else { break };
            let same = self.select_values(Column::Version, ValueTest::Range(number.into(), number.into()))?;
            if self.reader_position.is_foreign_version(self.state(), number)? {
                foreign = foreign.or(&same);
            }
            differing = differing.and_not(&same);
        }
        let (known, failed) = (RefCell::new(HashMap::new()), Slot::new(None));
        let is_foreign = |number: f64| {
            let look_up = || self.reader_position.is_foreign_version(self.state(), number as u32);
            *known.borrow_mut().entry(number as u32).or_insert_with(|| {
                look_up().unwrap_or_else(|error| {
                    failed.set(Some(error));
                    true
                })
            })
        };
        let rest = self.select(Column::Version, &is_foreign)?.and(&differing);
        failed.into_inner().map_or_else(|| Ok(foreign.or(&rest)), Err)
    }

    /// Tests every item of `among` on its own.
    fn test_each(&self, test: &Test, among: &Bits) -> Result<Bits> {
        if let Test::Edge { edge, target } = test {
            return self.edge_test(Edge::from(*edge), target.as_ref(), among);
        }
        let mut found = Vec::new();
        for id in among.iter() {
            if self.test_holds_for(&ItemView::new(self.snapshot, self.reader_position, ItemId(id))?, test)? {
                found.push(id);
            }
        }
        Ok(found.into_iter().collect())
    }

    fn edge_test(&self, edge: Edge, target: Option<&Pointer>, among: &Bits) -> Result<Bits> {
        let Some(pointer) = target else {
            let mut found = Vec::new();
            for id in among.iter() {
                let out = !self.state().edges_out(ItemId(id), Some(edge))?.is_empty();
                let symmetric = edge.is_symmetric() && !self.state().edges_in(ItemId(id), Some(edge))?.is_empty();
                if out || symmetric {
                    found.push(id);
                }
            }
            return Ok(found.into_iter().collect());
        };
        let mut found = Vec::new();
        for target in self.edge_targets(edge, &pointer.target)? {
            found.extend(self.state().edges_in(target, Some(edge))?.iter().map(|end| end.far.0));
            if edge.is_symmetric() {
                found.extend(self.state().edges_out(target, Some(edge))?.iter().map(|end| end.far.0));
            }
        }
        let found: Bits = found.into_iter().collect();
        Ok(found.and(among))
    }

    /// The items a target names; a concept or intent may be named by its text.
    fn edge_targets(&self, edge: Edge, target: &Ref) -> Result<Vec<ItemId>> {
        let by_name = matches!(edge, Edge::Mentions | Edge::Solves);
        match target {
            Ref::Item(item) => match item {
                ItemRef::Key(key) if by_name => {
                    let mut found: Vec<ItemId> = self.state().item_by_key(key)?.into_iter().collect();
                    let kind = if edge == Edge::Mentions { Kind::Concept } else { Kind::Intent };
                    // A text may state several names, divided by `|` or on lines of their own.
                    let states = |text: &str| text.split(['|', '\n']).any(|name| name.trim().eq_ignore_ascii_case(key));
                    let all = self.select(Column::Kind, &|byte| byte as u8 == kind.to_byte())?;
                    for id in all.iter().map(ItemId) {
                        if !found.contains(&id) && states(self.snapshot.content(id)?.text()) {
                            found.push(id);
                        }
                    }
                    Ok(found)
                }
                _ => Ok(vec![self.snapshot.resolve_item(item)?]),
            },
            Ref::Page(page) => Ok(self.snapshot.page_traces(page)?),
            Ref::Episode(_) => Err(Error::Invalid(format!("an episode cannot be the target of {edge}"))),
        }
    }
}

/// The numbers of the named episodes.
pub(crate) fn episode_numbers(state: &State, ids: &[String]) -> Result<Vec<u32>> {
    let number = |id: &String| {
        let missing = || Error::Missing { what: "episode", name: format!("'{id}'") };
        state.episode_number(id)?.ok_or_else(missing)
    };
    ids.iter().map(number).collect()
}

/// The window of `stale(…)`; without arguments, all criteria with the database's bounds.
pub(crate) fn window(state: &State, flaw: &Flaw) -> Result<Window> {
    if flaw.window.is_empty() {
        return Window::default_of(state);
    }
    let mut window = Window::default();
    for bound in &flaw.window {
        match bound {
            Bound::Steps(steps) => window.steps = Some(*steps),
            Bound::Age(age) => window.age = Some(i64::try_from(age.micros()).unwrap_or(i64::MAX)),
            Bound::Version => window.version = true,
        }
    }
    Ok(window)
}

/// The column of an attribute that stores symbol numbers.
fn symbols(name: &Name) -> Option<Column> {
    match name.attribute()? {
        AttributeId::Version => Some(Column::Version),
        AttributeId::Speaker => Some(Column::Speaker),
        AttributeId::Tool => Some(Column::Tool),
        _ => None,
    }
}

fn is_episode(name: &Name) -> bool {
    name.attribute() == Some(AttributeId::Episode)
}

fn text_of(value: &Value) -> Option<&String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns true if a column of attributes answers a test.
fn has_column(test: &Test) -> bool {
    match test {
        Test::Compare { name, op: Op::Eq, value: Value::Text(_) } if is_episode(name) => true,
        Test::In { name, not: false, list } if is_episode(name) => list.iter().all(|value| text_of(value).is_some()),
        Test::Compare { name, .. }
        | Test::In { name, .. }
        | Test::Between { name, .. }
        | Test::Contains { name, .. }
        | Test::Matches { name, .. }
        | Test::Has(name) => !matches!(
            name.attribute(),
            None | Some(
                AttributeId::Fields
                    | AttributeId::Labels
                    | AttributeId::Text
                    | AttributeId::Key
                    | AttributeId::Item
                    | AttributeId::Episode
                    | AttributeId::Page
                    | AttributeId::LogId
                    | AttributeId::Trust
                    | AttributeId::Origin
            )
        ),
        Test::Flaw(_) | Test::Redacted => true,
        Test::Edge { .. } | Test::Claims { .. } => false,
    }
}

pub(crate) fn contains(cell: &Cell, wanted: &str) -> bool {
    match cell {
        Cell::List(cells) => cells.iter().any(|cell| contains(cell, wanted)),
        cell => comparable(&cell.to_string()).contains(wanted),
    }
}

pub(crate) fn matches(cell: &Cell, pattern: &str) -> bool {
    match cell {
        Cell::List(cells) => cells.iter().any(|cell| matches(cell, pattern)),
        cell => glob(pattern, &cell.to_string()),
    }
}

/// Evaluates a test on a row that returns cells by name. Tests of flaws and edges apply to items only and are false.
pub(crate) fn holds(
    get: &dyn Fn(&Name) -> Result<Option<Cell>>,
    claims: &dyn Fn(&str) -> Result<Vec<Cell>>,
    test: &Test,
) -> Result<bool> {
    let with = |name: &Name, test: &dyn Fn(&Cell) -> bool| Ok(get(name)?.as_ref().is_some_and(test));
    match test {
        Test::Compare { name, op, value } => with(name, &|cell| cell::holds(cell, *op, value)),
        Test::In { name, not, list } => {
            let any = |cell: &Cell| list.iter().any(|value| cell::holds(cell, Op::Eq, value));
            with(name, &|cell| any(cell) != *not)
        }
        Test::Between { name, not, low, high } => {
            with(name, &|cell| (cell::holds(cell, Op::Ge, low) && cell::holds(cell, Op::Le, high)) != *not)
        }
        Test::Contains { name, not, text } => {
            let wanted = comparable(text);
            with(name, &|cell| contains(cell, &wanted) != *not)
        }
        Test::Matches { name, not, glob } => with(name, &|cell| matches(cell, glob) != *not),
        Test::Has(name) => with(name, &|_| true),
        Test::Claims { name, value } => {
            let found = claims(name)?;
            Ok(match value {
                None => !found.is_empty(),
                Some((op, value)) => found.iter().any(|cell| cell::holds(cell, *op, value)),
            })
        }
        Test::Flaw(_) | Test::Redacted | Test::Edge { .. } => Ok(false),
    }
}

/// Evaluates a predicate on a row that is not an item.
pub(crate) fn holds_for_row(get: &dyn Fn(&Name) -> Result<Option<Cell>>, predicate: &Predicate) -> Result<bool> {
    match predicate {
        Predicate::And(parts) => parts.iter().try_fold(true, |all, part| Ok(all && holds_for_row(get, part)?)),
        Predicate::Or(parts) => parts.iter().try_fold(false, |any, part| Ok(any || holds_for_row(get, part)?)),
        Predicate::Not(part) => Ok(!holds_for_row(get, part)?),
        Predicate::Test(test) => holds(get, &|_| Ok(Vec::new()), test),
    }
}
