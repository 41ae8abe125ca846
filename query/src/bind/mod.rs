//! Parameters: their values, and putting them into a statement.
//!
//! A parameter is a value, never source: binding fills the [`Arg`]s of a tree and
//! changes nothing else of it, whatever the value is.
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
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::Statement;
use crate::error::{Collector, Error, Errors, nearest};
use crate::span::{Span, Spanned};
use crate::time;
use crate::value::{Arg, ItemRef, Number, Passage, Time, Value, ValueList, Vector};

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

/// The statement with every parameter replaced by its value.
///
/// # Errors
///
/// If a parameter of the statement is not given, or its value does not fit its place.
/// Parameters the statement does not use are no error.
pub fn bind(statement: &Statement, params: &Params) -> Result<Statement, Errors> {
    let mut binder = Binder::new(params, None);
    let bound = binder.statement(statement);
    binder.errors.finish(bound)
}

/// Fills the arguments of statements.
pub(crate) struct Binder<'p> {
    params: &'p Params,
    dimension: Option<usize>,
    /// The names of the parameters met that are given, each as often as it was met.
    used: Vec<&'p str>,
    /// The names of the parameters met that are not given.
    pub(crate) missing: BTreeSet<String>,
    pub(crate) errors: Collector,
}

impl<'p> Binder<'p> {
    /// A binder that, given a dimension, also refuses vectors of another.
    pub(crate) fn new(params: &'p Params, dimension: Option<usize>) -> Binder<'p> {
        Binder { params, dimension, used: Vec::new(), missing: BTreeSet::new(), errors: Collector::default() }
    }

    /// The names of the parameters that were given and not met, ascending.
    pub(crate) fn unused(&mut self) -> Vec<&'p str> {
        self.used.sort_unstable();
        self.params.keys().map(String::as_str).filter(|name| self.used.binary_search(name).is_err()).collect()
    }

    /// A copy of `statement` with its parameters filled in, as far as that goes without
    /// errors.
    pub(crate) fn statement(&mut self, statement: &Statement) -> Statement {
        let mut bound = statement.clone();
        walk::statement(&mut bound, self);
        bound
    }

    /// Replaces a parameter by what `read` makes of its value.
    fn fill<T>(
        &mut self,
        arg: &mut Arg<T>,
        span: Span,
        wanted: &'static str,
        read: impl FnOnce(&ParamValue, &str) -> Result<T, Misfit>,
    ) {
        let Arg::Param(name) = arg else {
            return;
        };
        let Some((known, value)) = self.params.get_key_value(name) else {
            self.missing.insert(name.clone());
            let given = self.params.keys().map(String::as_str);
            let error = Error::new("missing-parameter", span, format!("${name} is not given"))
                .expected(wanted)
                .nearest(nearest(name, given));
            self.errors.push(error);
            return;
        };
        self.used.push(known);
        match read(value, name) {
            Ok(value) => *arg = Arg::Value(value),
            Err(misfit) => {
                let error = match misfit {
                    Misfit::Sort => {
                        let message = format!("${name} is {}", value.sort());
                        Error::new("parameter-type", span, message).expected(wanted)
                    }
                    Misfit::Value(code, what) => Error::new(code, span, format!("${name}: {what}")),
                };
                self.errors.push(error);
            }
        }
    }

    fn text(&mut self, arg: &mut Spanned<Arg<String>>) {
        self.fill(&mut arg.node, arg.span, "a text", |value, _| match value {
            ParamValue::Text(text) | ParamValue::TextVector { text, .. } => Ok(text.clone()),
            _ => Err(Misfit::Sort),
        });
    }

    fn passage(&mut self, arg: &mut Spanned<Arg<Passage>>) {
        let dimension = self.dimension;
        self.fill(&mut arg.node, arg.span, "a text, perhaps with its vector", |value, name| match value {
            ParamValue::Text(text) => Ok(Passage { text: text.clone(), vector: None }),
            ParamValue::TextVector { text, vector } => {
                Ok(Passage { text: text.clone(), vector: Some(read_vector(name, vector, dimension)?) })
            }
            _ => Err(Misfit::Sort),
        });
    }

    /// The text of a query, which may not be empty.
    fn question(&mut self, arg: &mut Spanned<Arg<Passage>>) {
        let was_param = matches!(arg.node, Arg::Param(_));
        self.passage(arg);
        if was_param && arg.value().is_some_and(|it| it.text.trim().is_empty()) {
            let error = Error::new("empty-query", arg.span, "the query is empty")
                .hint("the parameter's text has no words in it");
            self.errors.push(error);
        }
    }

    fn id(&mut self, arg: &mut Arg<String>, span: Span) {
        self.fill(arg, span, "a text or a whole number", |value, _| match value {
            ParamValue::Text(text) => Ok(text.clone()),
            ParamValue::Int(n) => Ok(n.to_string()),
            _ => Err(Misfit::Sort),
        });
    }

    fn item(&mut self, arg: &mut Arg<ItemRef>, span: Span) {
        self.fill(arg, span, "an item's key or number", |value, _| match value {
            ParamValue::Text(key) => Ok(ItemRef::Key(key.clone())),
            ParamValue::Int(id) => u64::try_from(*id).map(ItemRef::Id).map_err(|_| Misfit::negative()),
            _ => Err(Misfit::Sort),
        });
    }

    fn count(&mut self, arg: &mut Spanned<Arg<u64>>) {
        self.fill(&mut arg.node, arg.span, "a whole number", |value, _| match value {
            ParamValue::Int(n) => u64::try_from(*n).map_err(|_| Misfit::negative()),
            _ => Err(Misfit::Sort),
        });
    }

    fn number(&mut self, arg: &mut Spanned<Arg<f64>>) {
        self.fill(&mut arg.node, arg.span, "a number", |value, _| match value {
            ParamValue::Int(n) => Ok(*n as f64),
            ParamValue::Float(n) if n.is_finite() => Ok(*n),
            ParamValue::Float(_) => Err(Misfit::not_finite()),
            _ => Err(Misfit::Sort),
        });
    }

    fn time(&mut self, arg: &mut Spanned<Arg<Time>>) {
        self.fill(&mut arg.node, arg.span, "a time", |value, _| {
            let micros = match value {
                ParamValue::Text(text) => time::parse_rfc3339(text),
                ParamValue::Int(micros) => time::in_range(*micros),
                _ => return Err(Misfit::Sort),
            };
            micros.map(|micros| Time { micros }).map_err(|error| Misfit::Value("bad-time", error.to_string()))
        });
    }

    fn value(&mut self, arg: &mut Spanned<Arg<Value>>) {
        self.fill(&mut arg.node, arg.span, "a text, a number, true or false", |value, _| read_value(value));
    }

    fn list(&mut self, arg: &mut Spanned<Arg<ValueList>>) {
        let span = arg.span;
        self.fill(&mut arg.node, span, "a list of texts and numbers", |value, _| match value {
            ParamValue::List(values) if values.is_empty() => {
                Err(Misfit::Value("parameter-type", "the list is empty".to_owned()))
            }
            ParamValue::List(values) => {
                values.iter().map(|value| Ok(Spanned::new(Arg::Value(read_value(value)?), span))).collect()
            }
            _ => Err(Misfit::Sort),
        });
        if let Arg::Value(values) = &mut arg.node {
            for value in values {
                self.value(value);
            }
        }
    }

    fn vector(&mut self, arg: &mut Spanned<Arg<Vector>>) {
        let dimension = self.dimension;
        self.fill(&mut arg.node, arg.span, "a vector", |value, name| match value {
            ParamValue::Vector(vector) | ParamValue::TextVector { vector, .. } => read_vector(name, vector, dimension),
            _ => Err(Misfit::Sort),
        });
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
