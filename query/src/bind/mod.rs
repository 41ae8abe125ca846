//! Parameters: their values, and plans of statements with them.
//!
//! A parameter is a value, never source: binding takes the value of each argument of a tree from the statement or from
//! its parameter, and changes nothing else, whatever the value is.
//!
//! | place | takes |
//! |-------|-------|
//! | text | text, or the text of a text with vector |
//! | query, or the text of a write | the same, the vector included |
//! | id of an episode, page, version, receipt | text, whole number |
//! | item | text (its key), whole number from 0 (its id) |
//! | count | whole number from 0 |
//! | number | number |
//! | time | RFC 3339 text, microseconds since the epoch |
//! | value | text, number, bool |
//! | list of values | list of those |
//! | vector | vector, or the vector of a text with vector |

mod convert;
mod node;
mod nodes;

pub(crate) use node::Node;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::ast::Script;
use crate::error::{Collector, Error, Errors, nearest};
use crate::plan;
use crate::span::{Span, Spanned};
use crate::time;
use crate::value::{Arg, Id, ItemRef, Number, Passage, Time, Value, ValueList, Vector};

/// The parameters given with a script, by name, without the dollar sign.
pub type Params = BTreeMap<String, ParamValue>;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// Any number.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A list, for `in $list`.
    List(Vec<ParamValue>),
    /// A vector.
    Vector(Vec<f32>),
    /// A text and its vector.
    TextVector {
        /// The text.
        text: String,
        /// Its vector.
        vector: Vec<f32>,
    },
}

impl ParamValue {
    /// The sort of value, for messages.
    fn sort(&self) -> &'static str {
        match self {
            ParamValue::Text(_) => "a text",
            ParamValue::Int(_) => "a whole number",
            ParamValue::Float(_) => "a number",
            ParamValue::Bool(_) => "true or false",
            ParamValue::List(_) => "a list",
            ParamValue::Vector(_) => "a vector",
            ParamValue::TextVector { .. } => "a text with its vector",
        }
    }
}

/// The plans of the statements of a script, with the values of its parameters.
///
/// # Errors
///
/// If a parameter of the script is not given, or its value does not fit its place. Parameters that the script does not
/// use are no error, and names and types are not looked at: see [`check_bound`](crate::check_bound).
pub fn bind(script: &Script, params: &Params) -> Result<Vec<plan::Statement>, Errors> {
    let mut binder = Binder::new(params, None);
    let plans = script.statements.lower(&mut binder);
    binder.errors.finish_if_some(plans)
}

/// The value of an argument; `None` for a parameter that is not given or does not fit, which [`Binder`] reports.
pub(crate) fn literal<'a>(arg: &'a Arg<Value>, params: Option<&Params>) -> Option<Cow<'a, Value>> {
    match arg {
        Arg::Value(value) => Some(Cow::Borrowed(value)),
        Arg::Param(name) => read_value(params?.get(name)?).ok().map(Cow::Owned),
    }
}

/// The values of a list with their places; those of a parameter are at the parameter.
pub(crate) fn literals<'a>(list: &'a Spanned<Arg<ValueList>>, params: Option<&Params>) -> Vec<(Cow<'a, Value>, Span)> {
    match &list.node {
        Arg::Value(values) => {
            values.iter().filter_map(|value| Some((literal(&value.node, params)?, value.span))).collect()
        }
        Arg::Param(name) => {
            let values = params.and_then(|params| read_list(params.get(name)?).ok()).unwrap_or_default();
            values.into_iter().map(|value| (Cow::Owned(value), list.span)).collect()
        }
    }
}

/// Takes the values of the arguments of statements, and reports the parameters that are missing or do not fit.
pub(crate) struct Binder<'p> {
    params: &'p Params,
    dimension: Option<usize>,
    /// The place of the node that is being bound.
    span: Span,
    /// The names of the parameters met that are given, each as often as it was met.
    used: Vec<&'p str>,
    /// The names of the parameters met that are not given.
    pub(crate) missing: BTreeSet<String>,
    pub(crate) errors: Collector,
}

impl<'p> Binder<'p> {
    /// A binder that, given a dimension, also refuses vectors of another.
    pub(crate) fn new(params: &'p Params, dimension: Option<usize>) -> Binder<'p> {
        Binder {
            params,
            dimension,
            span: Span::default(),
            used: Vec::new(),
            missing: BTreeSet::new(),
            errors: Collector::default(),
        }
    }

    /// The names of the parameters that were given and not met, ascending.
    pub(crate) fn unused(&mut self) -> Vec<&'p str> {
        self.used.sort_unstable();
        self.params.keys().map(String::as_str).filter(|name| self.used.binary_search(name).is_err()).collect()
    }

    /// The value of a parameter in a place that takes a `T`; `None` after an error.
    fn value_of<T: Argument>(&mut self, name: &str) -> Option<T::Plan> {
        let Some((known, value)) = self.params.get_key_value(name) else {
            self.missing.insert(name.to_owned());
            let given = self.params.keys().map(String::as_str);
            let error = Error::new("missing-parameter", self.span, format!("${name} is not given"))
                .expected(T::EXPECTED)
                .nearest(nearest(name, given));
            self.errors.push(error);
            return None;
        };
        self.used.push(known);
        let misfit = match T::read(value, name, self.dimension) {
            Ok(value) => return Some(value),
            Err(misfit) => misfit,
        };
        self.errors.push(match misfit {
            Misfit::Sort => {
                let message = format!("${name} is {}", value.sort());
                Error::new("parameter-type", self.span, message).expected(T::EXPECTED)
            }
            Misfit::Value(code, what) => Error::new(code, self.span, format!("${name}: {what}")),
        });
        None
    }
}

/// A value that a parameter may give.
trait Argument: Node {
    /// The sorts of values that fit, for messages.
    const EXPECTED: &'static str;

    /// The value of the parameter `name`, if it fits; a vector must have the given dimension.
    fn read(value: &ParamValue, name: &str, dimension: Option<usize>) -> Result<Self::Plan, Misfit>;
}

impl Argument for String {
    const EXPECTED: &'static str = "a text";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<String, Misfit> {
        match value {
            ParamValue::Text(text) | ParamValue::TextVector { text, .. } => Ok(text.clone()),
            _ => Err(Misfit::Sort),
        }
    }
}

impl Argument for Passage {
    const EXPECTED: &'static str = "a text, perhaps with its vector";

    fn read(value: &ParamValue, name: &str, dimension: Option<usize>) -> Result<Passage, Misfit> {
        match value {
            ParamValue::Text(text) => Ok(Passage { text: text.clone(), vector: None }),
            ParamValue::TextVector { text, vector } => {
                Ok(Passage { text: text.clone(), vector: Some(read_vector(name, vector, dimension)?) })
            }
            _ => Err(Misfit::Sort),
        }
    }
}

impl Argument for Id {
    const EXPECTED: &'static str = "a text or a whole number";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<String, Misfit> {
        match value {
            ParamValue::Text(text) => Ok(text.clone()),
            ParamValue::Int(n) => Ok(n.to_string()),
            _ => Err(Misfit::Sort),
        }
    }
}

impl Argument for ItemRef {
    const EXPECTED: &'static str = "an item's key or number";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<ItemRef, Misfit> {
        match value {
            ParamValue::Text(key) => Ok(ItemRef::Key(key.clone())),
            ParamValue::Int(id) => u64::try_from(*id).map(ItemRef::Id).map_err(|_| Misfit::negative()),
            _ => Err(Misfit::Sort),
        }
    }
}

impl Argument for u64 {
    const EXPECTED: &'static str = "a whole number";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<u64, Misfit> {
        match value {
            ParamValue::Int(n) => u64::try_from(*n).map_err(|_| Misfit::negative()),
            _ => Err(Misfit::Sort),
        }
    }
}

impl Argument for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<f64, Misfit> {
        match value {
            ParamValue::Int(n) => Ok(*n as f64),
            ParamValue::Float(n) if n.is_finite() => Ok(*n),
            ParamValue::Float(_) => Err(Misfit::not_finite()),
            _ => Err(Misfit::Sort),
        }
    }
}

impl Argument for Time {
    const EXPECTED: &'static str = "a time";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<Time, Misfit> {
        let micros = match value {
            ParamValue::Text(text) => time::parse_rfc3339(text),
            ParamValue::Int(micros) => time::in_range(*micros),
            _ => return Err(Misfit::Sort),
        };
        micros.map(|micros| Time { micros }).map_err(|error| Misfit::Value("bad-time", error.to_string()))
    }
}

impl Argument for Value {
    const EXPECTED: &'static str = "a text, a number, true or false";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<Value, Misfit> {
        read_value(value)
    }
}

impl Argument for ValueList {
    const EXPECTED: &'static str = "a list of texts and numbers";

    fn read(value: &ParamValue, _: &str, _: Option<usize>) -> Result<Vec<Value>, Misfit> {
        read_list(value)
    }
}

impl Argument for Vector {
    const EXPECTED: &'static str = "a vector";

    fn read(value: &ParamValue, name: &str, dimension: Option<usize>) -> Result<Vector, Misfit> {
        match value {
            ParamValue::Vector(vector) | ParamValue::TextVector { vector, .. } => read_vector(name, vector, dimension),
            _ => Err(Misfit::Sort),
        }
    }
}

/// Why a parameter's value does not fit.
enum Misfit {
    /// It is of another sort.
    Sort,
    /// The code of the error, and what is wrong with this value.
    Value(&'static str, String),
}

impl Misfit {
    fn negative() -> Misfit {
        Misfit::Value("parameter-type", "the number is below zero".to_owned())
    }

    fn not_finite() -> Misfit {
        Misfit::Value("parameter-type", "the number is not finite".to_owned())
    }
}

fn read_value(value: &ParamValue) -> Result<Value, Misfit> {
    match value {
        ParamValue::Text(text) | ParamValue::TextVector { text, .. } => Ok(Value::Text(text.clone())),
        ParamValue::Int(n) => Ok(Value::Number(Number::from(*n))),
        ParamValue::Float(n) if n.is_finite() => Ok(Value::Number(Number::Real(*n))),
        ParamValue::Float(_) => Err(Misfit::not_finite()),
        ParamValue::Bool(value) => Ok(Value::Bool(*value)),
        ParamValue::List(_) | ParamValue::Vector(_) => Err(Misfit::Sort),
    }
}

fn read_list(value: &ParamValue) -> Result<Vec<Value>, Misfit> {
    match value {
        ParamValue::List(values) if values.is_empty() => {
            Err(Misfit::Value("parameter-type", "the list is empty".to_owned()))
        }
        ParamValue::List(values) => values.iter().map(read_value).collect(),
        _ => Err(Misfit::Sort),
    }
}

fn read_vector(name: &str, components: &[f32], dimension: Option<usize>) -> Result<Vector, Misfit> {
    let length = components.len();
    if length == 0 {
        return Err(Misfit::Value("vector-length", "the vector is empty".to_owned()));
    }
    if let Some(dimension) = dimension
        && dimension != length
    {
        let what = format!("the vector has {length} components, those stored have {dimension}");
        return Err(Misfit::Value("vector-length", what));
    }
    if let Some(index) = components.iter().position(|component| !component.is_finite()) {
        let what = format!("component {index} of the vector is not a finite number");
        return Err(Misfit::Value("parameter-type", what));
    }
    Ok(Vector { param: name.to_owned(), components: components.to_vec() })
}
