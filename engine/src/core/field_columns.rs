//! Columns of declared fields and of labels, so that a filter on them reads no item.
//!
//! A field of an item never changes until its item is forgotten, so that one column serves every snapshot: a snapshot
//! takes the ids below its bound. Columns are filled from the log, the first time that a filter needs them after the
//! database was opened, and then by what was committed since.
//!
//! ```text
//! number   f64 of each item, NaN where there is none   + least and greatest of each block of items
//! text     number of the value in a dictionary         + a roaring set of items for each value, while they are few
//! ```
//!
//! Invariants:
//! 1. For `id < covered`, the column holds exactly the value at the field's path in the record of the item.
//! 2. A value that a column of numbers cannot hold exactly is kept beside it, so that a column never changes what a
//!    test says.
//! 3. What was forgotten is taken out before a column answers for a state that knows of it.

use crate::records::field::{Declared, FieldType};
use crate::{Error, Result};
use holotype_index::bitmap::{Bits, RoaringBitmap};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};

/// The number of items that a least and a greatest value is kept for.
const BLOCK_ITEMS: usize = 4_096;
/// The most different values of which each has a set.
const MAX_SETS: usize = 4_096;
/// Whole numbers from here on differ from their neighbours in an f64 no more.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The number of an item without a value.
const ABSENT: u32 = u32::MAX;

/// The demand of a test, where it is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wanted<'a> {
    /// Nothing is known.
    Any,
    /// Of numbers, those in the range pass, both ends included.
    Numbers(f64, f64),
    /// Of texts, this one alone passes.
    Text(&'a str),
}

/// The columns of an open database.
#[derive(Default)]
pub(crate) struct FieldColumns(RwLock<Columns>);

#[derive(Default)]
struct Columns {
    by_path: BTreeMap<Vec<String>, Column>,
    /// The number of `forget` operations whose items were taken out.
    forgets: u64,
    /// The newest commit whose declarations were seen. Those of an earlier one end no column.
    commit: u64,
}

struct Column {
    form: FieldType,
    covered: u32,
    values: Values,
}

enum Values {
    Numbers(Numbers),
    Texts(Dictionary),
}

/// The state that columns answer for.
pub(crate) struct Needs<'a> {
    /// The columns cover the items below it.
    pub(crate) bound: u32,
    /// The commit of the state.
    pub(crate) commit: u64,
    /// The number of `forget` operations that the state knows of.
    pub(crate) forgets: u64,
    /// The fields that are declared.
    pub(crate) declared: &'a [Declared],
}

impl FieldColumns {
    /// The items that pass a test of one field. `read` gives the values of an item at all the paths that it is given,
    /// and `forgotten` the items that were erased.
    pub(crate) fn select(
        &self,
        path: &[String],
        needs: &Needs<'_>,
        wanted: Wanted<'_>,
        test: &dyn Fn(&Value) -> bool,
        source: &dyn Source,
    ) -> Result<Bits> {
        let columns = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(column) = columns.ready(path, needs) {
            return Ok(column.select(needs.bound, wanted, test));
        }
        drop(columns);
        let mut columns = self.0.write().unwrap_or_else(PoisonError::into_inner);
        columns.prepare(needs, source)?;
        let Some(column) = columns.ready(path, needs) else {
            return Err(Error::Invalid(format!("field {} is not declared", path.join("."))));
        };
        Ok(column.select(needs.bound, wanted, test))
    }
}

/// The source of the values of columns.
pub(crate) trait Source {
    /// The values of an item at each of these paths, handed to `take` with the place of the path.
    fn read(&self, item: u32, paths: &[&[String]], take: &mut dyn FnMut(usize, Value)) -> Result<()>;

    /// The items that were erased.
    fn forgotten(&self) -> Result<Bits>;
}

impl Columns {
    fn ready(&self, path: &[String], needs: &Needs<'_>) -> Option<&Column> {
        let form = needs.declared.iter().find(|(declared, _)| declared == path)?.1;
        let column = self.by_path.get(path)?;
        (self.forgets >= needs.forgets && column.form == form && column.covered >= needs.bound).then_some(column)
    }

    /// Brings the columns of all declared fields up to date, in one pass over the items that one of them lacks.
    fn prepare(&mut self, needs: &Needs<'_>, source: &dyn Source) -> Result<()> {
        if needs.commit >= self.commit {
            self.by_path.retain(|path, _| needs.declared.iter().any(|(declared, _)| declared == path));
            self.commit = needs.commit;
        }
        for (path, form) in needs.declared {
            let column = self.by_path.entry(path.clone()).or_insert_with(|| Column::new(*form));
            if column.form != *form {
                *column = Column::new(*form);
            }
        }
        if self.forgets < needs.forgets {
            let forgotten = source.forgotten()?;
            self.by_path.values_mut().for_each(|column| column.erase(&forgotten));
            self.forgets = needs.forgets;
        }
        let first = self.by_path.values().map(|column| column.covered).min().unwrap_or(needs.bound);
        let paths: Vec<Vec<String>> = self.by_path.keys().cloned().collect();
        let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
        let mut columns: Vec<&mut Column> = self.by_path.values_mut().collect();
        let mut found: Vec<Option<Value>> = vec![None; columns.len()];
        for item in first..needs.bound {
            source.read(item, &paths, &mut |place, value| found[place] = Some(value))?;
            for (column, value) in columns.iter_mut().zip(&mut found) {
                let value = value.take();
                if column.covered == item {
                    column.push(item, value);
                }
            }
        }
        Ok(())
    }
}

impl Column {
    fn new(form: FieldType) -> Column {
        let values = match form {
            FieldType::Text => Values::Texts(Dictionary { sets: Some(Vec::new()), ..Dictionary::default() }),
            FieldType::Number => Values::Numbers(Numbers::default()),
        };
        Column { form, covered: 0, values }
    }

    fn push(&mut self, item: u32, value: Option<Value>) {
        // A list of one value passes the tests that the value passes.
        let value = value.map(|value| match value {
            Value::Array(mut one) if one.len() == 1 && !one[0].is_null() => one.remove(0),
            value => value,
        });
        match &mut self.values {
            Values::Numbers(numbers) => numbers.push(item, value),
            Values::Texts(texts) => texts.push(item, value),
        }
        self.covered = item + 1;
    }

    fn erase(&mut self, items: &Bits) {
        for item in items.iter().filter(|item| *item < self.covered) {
            match &mut self.values {
                Values::Numbers(numbers) => numbers.erase(item),
                Values::Texts(texts) => texts.erase(item),
            }
        }
    }

    fn select(&self, bound: u32, wanted: Wanted<'_>, test: &dyn Fn(&Value) -> bool) -> Bits {
        let found = match &self.values {
            Values::Numbers(numbers) => numbers.select(bound as usize, wanted, test),
            Values::Texts(texts) => texts.select(bound as usize, wanted, test),
        };
        if self.covered > bound { found.below(bound) } else { found }
    }
}

/// A column of numbers.
#[derive(Default)]
struct Numbers {
    numbers: Vec<f64>,
    /// The least and the greatest number of each block.
    zones: Vec<(f64, f64)>,
    /// Values that are no number, or none that an f64 holds exactly.
    others: BTreeMap<u32, Value>,
}

impl Numbers {
    fn push(&mut self, item: u32, value: Option<Value>) {
        let number = value.as_ref().and_then(Value::as_f64).filter(|number| number.abs() < EXACT);
        if let (None, Some(other)) = (number, value) {
            self.others.insert(item, other);
        }
        if self.numbers.len().is_multiple_of(BLOCK_ITEMS) {
            self.zones.push((f64::INFINITY, f64::NEG_INFINITY));
        }
        if let (Some(number), Some((least, greatest))) = (number, self.zones.last_mut()) {
            (*least, *greatest) = (least.min(number), greatest.max(number));
        }
        self.numbers.push(number.unwrap_or(f64::NAN));
    }

    fn erase(&mut self, item: u32) {
        self.others.remove(&item);
        if let Some(number) = self.numbers.get_mut(item as usize) {
            *number = f64::NAN;
        }
    }

    fn select(&self, bound: usize, wanted: Wanted<'_>, test: &dyn Fn(&Value) -> bool) -> Bits {
        let numbers = self.numbers.get(..bound).unwrap_or(&self.numbers);
        let mut blocks = match wanted {
            Wanted::Numbers(low, high) => select_blocks(
                numbers,
                |block| {
                    let (least, greatest) = self.zones[block];
                    if greatest < low || least > high { Zone::None } else { Zone::Some }
                },
                |number| low <= number && number <= high,
            ),
            _ => {
                let holds = |number: f64| !number.is_nan() && test(&as_value(number));
                select_blocks(numbers, |_| Zone::Some, holds)
            }
        };
        for (item, _) in self.others.iter().filter(|(_, value)| test(value)) {
            set(&mut blocks, *item);
        }
        Bits::from_blocks(blocks)
    }
}

/// A number as the value that it was: whole ones as integers.
fn as_value(number: f64) -> Value {
    if number.fract() == 0.0 { Value::from(number as i64) } else { Value::from(number) }
}

/// Says of a block of items whether one of them may pass.
enum Zone {
    None,
    Some,
}

/// The blocks of bits of the values that pass.
fn select_blocks<T: Copy>(values: &[T], zone: impl Fn(usize) -> Zone, test: impl Fn(T) -> bool) -> Vec<u64> {
    let mut blocks = vec![0u64; values.len().div_ceil(64)];
    for (block, values) in values.chunks(BLOCK_ITEMS).enumerate() {
        if matches!(zone(block), Zone::None) {
            continue;
        }
        let bits = &mut blocks[block * (BLOCK_ITEMS / 64)..];
        for (bits, values) in bits.iter_mut().zip(values.chunks(64)) {
            let of = |bits, (at, value): (usize, &T)| bits | u64::from(test(*value)) << at;
            *bits = values.iter().enumerate().fold(0, of);
        }
    }
    blocks
}

fn set(blocks: &mut Vec<u64>, item: u32) {
    let at = (item / 64) as usize;
    if blocks.len() <= at {
        blocks.resize(at + 1, 0);
    }
    blocks[at] |= 1 << (item % 64);
}

/// A column of values with few different ones: texts, truth values, lists.
#[derive(Default)]
struct Dictionary {
    /// The number of each item's value.
    numbers: Vec<u32>,
    /// The values by their numbers; null once no item has it.
    values: Vec<Value>,
    /// The number of items that have a value.
    counts: Vec<u32>,
    by_text: HashMap<String, u32>,
    /// Numbers of values that are no texts.
    others: Vec<u32>,
    by_json: HashMap<String, u32>,
    /// The items of each value; none once there are more than [`MAX_SETS`].
    sets: Option<Vec<RoaringBitmap>>,
}

impl Dictionary {
    fn push(&mut self, item: u32, value: Option<Value>) {
        let Some(value) = value else { return self.numbers.push(ABSENT) };
        let number = self.number_of(value);
        self.numbers.push(number);
        self.counts[number as usize] += 1;
        if let Some(sets) = &mut self.sets {
            sets[number as usize].insert(item);
        }
    }

    fn number_of(&mut self, value: Value) -> u32 {
        let known = match &value {
            Value::String(text) => self.by_text.get(text),
            other => self.by_json.get(&other.to_string()),
        };
        if let Some(known) = known {
            return *known;
        }
        let number = self.values.len() as u32;
        match &value {
            Value::String(text) => drop(self.by_text.insert(text.clone(), number)),
            other => {
                self.by_json.insert(other.to_string(), number);
                self.others.push(number);
            }
        }
        self.values.push(value);
        self.counts.push(0);
        match &mut self.sets {
            Some(sets) if sets.len() < MAX_SETS => sets.push(RoaringBitmap::new()),
            _ => self.sets = None,
        }
        number
    }

    fn erase(&mut self, item: u32) {
        let Some(place) = self.numbers.get_mut(item as usize) else { return };
        let number = std::mem::replace(place, ABSENT);
        let Some(count) = self.counts.get_mut(number as usize) else { return };
        *count -= 1;
        if let Some(sets) = &mut self.sets {
            sets[number as usize].remove(item);
        }
        if *count == 0 {
            match std::mem::take(&mut self.values[number as usize]) {
                Value::String(text) => drop(self.by_text.remove(&text)),
                other => drop(self.by_json.remove(&other.to_string())),
            }
        }
    }

    fn select(&self, bound: usize, wanted: Wanted<'_>, test: &dyn Fn(&Value) -> bool) -> Bits {
        let holds = |number: &u32| self.counts[*number as usize] > 0 && test(&self.values[*number as usize]);
        let passing: Vec<u32> = match wanted {
            Wanted::Text(text) => {
                let known = self.by_text.get(text).copied();
                known.into_iter().chain(self.others.iter().copied().filter(|number| holds(number))).collect()
            }
            _ => (0..self.values.len() as u32).filter(holds).collect(),
        };
        let numbers = self.numbers.get(..bound).unwrap_or(&self.numbers);
        match (&self.sets, passing.as_slice()) {
            (_, []) => Bits::new(),
            (Some(sets), passing) => {
                let mut blocks = vec![0u64; self.numbers.len().div_ceil(64)];
                for number in passing {
                    for item in &sets[*number as usize] {
                        blocks[(item / 64) as usize] |= 1 << (item % 64);
                    }
                }
                Bits::from_blocks(blocks)
            }
            (None, [one]) => Bits::from_blocks(select_blocks(numbers, |_| Zone::Some, |number| number == *one)),
            (None, passing) => {
                let mut passes = vec![false; self.values.len()];
                passing.iter().for_each(|number| passes[*number as usize] = true);
                let test = |number: u32| passes.get(number as usize).is_some_and(|passes| *passes);
                Bits::from_blocks(select_blocks(numbers, |_| Zone::Some, test))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A column answers as reading every value does.
    fn assert_as_read(form: FieldType, values: &[Option<Value>], wanted: Wanted<'_>, test: &dyn Fn(&Value) -> bool) {
        let mut column = Column::new(form);
        for (item, value) in values.iter().enumerate() {
            column.push(item as u32, value.clone());
        }
        let read = values.iter().enumerate().filter(|(_, value)| value.as_ref().is_some_and(test));
        let read: Bits = read.map(|(item, _)| item as u32).collect();
        assert_eq!(column.select(values.len() as u32, wanted, test), read, "{form:?} {wanted:?}");
        let gone: Bits = (0..values.len() as u32).step_by(3).collect();
        column.erase(&gone);
        assert_eq!(column.select(values.len() as u32, wanted, test), read.and_not(&gone), "{form:?} {wanted:?}");
        assert_eq!(column.select(7, wanted, test), read.and_not(&gone).below(7), "{form:?} {wanted:?}");
    }

    #[test]
    fn a_column_answers_as_the_values_do() {
        let number = |n: usize| match n % 11 {
            0 => None,
            1 => Some(json!("17")),
            2 => Some(json!(9_007_199_254_740_993_u64)),
            3 => Some(json!(true)),
            _ => Some(json!(n as f64 / 4.0)),
        };
        let numbers: Vec<_> = (0..10_000).map(number).collect();
        let in_range = |value: &Value| value.as_f64().is_some_and(|n| (100.0..=900.0).contains(&n)) || value == "17";
        let texts: Vec<_> = (0..10_000).map(|n| Some(json!(format!("user:{}", n % 50)))).collect();
        let many: Vec<_> = (0..10_000).map(|n| Some(json!(format!("id:{n}")))).collect();
        for form in [FieldType::Number, FieldType::Text] {
            assert_as_read(form, &numbers, Wanted::Any, &in_range);
            for values in [&texts, &many] {
                assert_as_read(form, values, Wanted::Any, &|value| value.as_str().is_some_and(|it| it.ends_with('7')));
            }
        }
        assert_as_read(FieldType::Number, &numbers, Wanted::Numbers(100.0, 900.0), &in_range);
        assert_as_read(FieldType::Text, &texts, Wanted::Text("user:7"), &|value| value == "user:7");
        assert_as_read(FieldType::Text, &many, Wanted::Text("id:77"), &|value| value == "id:77");
    }
}
