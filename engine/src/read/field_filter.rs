//! Tests of declared fields and of labels, answered from their columns.
//!
//! A column says the same as reading each item: the test that an item's value would have to pass runs once for
//! each different value. Where the test is a comparison with a number or a text, the column knows which can pass.

use crate::Result;
use crate::core::field_columns::{Needs, Source, Wanted};
use crate::model::item::ItemId;
use crate::read::cell::{self, Cell};
use crate::read::filter::{Filter, contains, matches};
use crate::read::glob::comparable;
use crate::read::snapshot::Snapshot;
use crate::records::field::{self, Declared, LABELS};
use crate::state::attributes::Column;
use crate::state::settings;
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Predicate, Test};
use holotype_query::{AttributeId, Name, Op, Value};
use serde_json::Value as Json;

/// Numbers from here on are not compared in a column of numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Filter<'_> {
    /// The declared fields of the state.
    fn declared(&self) -> Result<&[Declared]> {
        if self.declared.get().is_none() {
            let _ = self.declared.set(settings::declared_fields(&self.snapshot.state)?);
        }
        Ok(self.declared.get().map_or(&[], Vec::as_slice))
    }

    /// The path of the field that a test looks at, if it has a column.
    pub(crate) fn declared_path(&self, test: &Test) -> Result<Option<Vec<String>>> {
        let (Test::Compare { name, .. }
        | Test::In { name, .. }
        | Test::Between { name, .. }
        | Test::Contains { name, .. }
        | Test::Matches { name, .. }
        | Test::Has(name)) = test
        else {
            return Ok(None);
        };
        let Some(path) = path_of(name) else { return Ok(None) };
        Ok(self.declared()?.iter().any(|(declared, _)| *declared == path).then_some(path))
    }

    /// The items that pass a test of a declared field; `None` for any other test.
    pub(crate) fn field_test(&self, test: &Test) -> Result<Option<Bits>> {
        let Some(path) = self.declared_path(test)? else { return Ok(None) };
        let select = |wanted: Wanted<'_>, holds: &dyn Fn(&Cell) -> bool| self.select_field(&path, wanted, holds);
        let equal = |value: &Value| select(equal_to(value), &|cell| cell::holds(cell, Op::Eq, value));
        Ok(Some(match test {
            Test::Compare { op, value, .. } => select(compared(*op, value), &|cell| cell::holds(cell, *op, value))?,
            Test::In { not, list, .. } => {
                let mut any = Bits::new();
                for value in list {
                    any = any.or(&equal(value)?);
                }
                if *not { select(Wanted::Any, &|_| true)?.and_not(&any) } else { any }
            }
            Test::Between { not, low, high, .. } => {
                let within = |cell: &Cell| cell::holds(cell, Op::Ge, low) && cell::holds(cell, Op::Le, high);
                let wanted = match (number(low), number(high)) {
                    (Some(low), Some(high)) => Wanted::Numbers(low, high),
                    _ => Wanted::Any,
                };
                let found = select(wanted, &within)?;
                if *not { select(Wanted::Any, &|_| true)?.and_not(&found) } else { found }
            }
            Test::Contains { not, text, .. } => {
                let text = comparable(text);
                select(Wanted::Any, &|cell| contains(cell, &text) != *not)?
            }
            Test::Matches { not, glob, .. } => select(Wanted::Any, &|cell| matches(cell, glob) != *not)?,
            _ => select(Wanted::Any, &|_| true)?,
        }))
    }

    fn select_field(&self, path: &[String], wanted: Wanted<'_>, holds: &dyn Fn(&Cell) -> bool) -> Result<Bits> {
        let (snapshot, state) = (self.snapshot, &self.snapshot.state);
        snapshot.keep(state.bound() as usize / 8)?;
        // Uncommitted items are read one by one: another may get the same number.
        let committed = snapshot.first_own().unwrap_or(state.bound());
        let needs = Needs {
            bound: committed,
            commit: state.meta.commit,
            forgets: state.meta.forgets,
            declared: self.declared()?,
        };
        let test = |value: &Json| Cell::of_json(value).is_some_and(|cell| holds(&cell));
        let mut found = snapshot.core.fields.select(path, &needs, wanted, &test, &Items(snapshot))?;
        let mut own = Vec::new();
        for id in committed..state.bound() {
            let value = field::at_path(&snapshot.content(ItemId(id))?.record.fields, path);
            if value.is_some_and(|value| test(&value)) {
                own.push(id);
            }
        }
        if !own.is_empty() {
            found = found.or(&own.into_iter().collect());
        }
        Ok(found)
    }
}

/// The path of the field that a name asks, in parts.
fn path_of(name: &Name) -> Option<Vec<String>> {
    if name.attribute() == Some(AttributeId::Labels) {
        return Some(vec![LABELS.to_owned()]);
    }
    name.field().map(|path| field::parts(path).into_owned())
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(number.as_f64()).filter(|number| number.abs() < EXACT),
        _ => None,
    }
}

fn equal_to(value: &Value) -> Wanted<'_> {
    match (value, number(value)) {
        (Value::Text(text), _) if text.trim().parse::<f64>().is_err() => Wanted::Text(text),
        (_, Some(number)) => Wanted::Numbers(number, number),
        _ => Wanted::Any,
    }
}

fn compared(op: Op, value: &Value) -> Wanted<'_> {
    let Some(number) = number(value) else {
        return if op == Op::Eq { equal_to(value) } else { Wanted::Any };
    };
    match op {
        Op::Eq => equal_to(value),
        Op::Ne => Wanted::Any,
        Op::Lt => Wanted::Numbers(f64::NEG_INFINITY, number.next_down()),
        Op::Le => Wanted::Numbers(f64::NEG_INFINITY, number),
        Op::Gt => Wanted::Numbers(number.next_up(), f64::INFINITY),
        Op::Ge => Wanted::Numbers(number, f64::INFINITY),
    }
}

/// The items of a snapshot as the source of columns.
struct Items<'a>(&'a Snapshot);

impl Source for Items<'_> {
    fn read(&self, item: u32, paths: &[&[String]], take: &mut dyn FnMut(usize, Json)) -> Result<()> {
        let content = self.0.content(ItemId(item))?;
        for (place, path) in paths.iter().enumerate() {
            if let Some(value) = field::at_path(&content.record.fields, path) {
                take(place, value);
            }
        }
        Ok(())
    }

    fn forgotten(&self) -> Result<Bits> {
        let state = &self.0.state;
        state.attributes.select(Column::Redacted, state.bound(), &|redacted| redacted == 1.0)
    }
}

/// Tells how a part of a condition that reads each item could be answered from a column.
pub(crate) fn hint(part: &Predicate) -> String {
    let Predicate::Test(test) = part else { return String::new() };
    let (Test::Compare { name, .. }
    | Test::In { name, .. }
    | Test::Between { name, .. }
    | Test::Contains { name, .. }
    | Test::Matches { name, .. }
    | Test::Has(name)) = &**test
    else {
        return String::new();
    };
    match name.field().filter(|_| !name.is_all_fields()) {
        Some(path) => format!("; `declare field {} text` or `number` makes a column of it", path.join(".")),
        None => String::new(),
    }
}
