//! Arguments of a tool, checked against the schema that its client was given.
//!
//! A name that the schema lacks, a word that is none of the spelled-out ones and a value of another type are errors
//! that name the nearest valid one. `null` is as good as absent, and a number or truth written as text is taken for
//! itself, since models write both.

use crate::problem::Problem;
use rmcp::model::{JsonObject, Tool};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// The arguments of one call.
#[derive(Debug)]
pub(crate) struct Arguments {
    tool: Tool,
    given: Map<String, Value>,
}

impl Arguments {
    pub(crate) fn new(tool: Tool, given: Option<JsonObject>) -> Result<Arguments, Problem> {
        let given: Map<String, Value> = given.unwrap_or_default().into_iter().filter(|(_, v)| !v.is_null()).collect();
        let arguments = Arguments { tool, given };
        let known: Vec<&str> = arguments.properties().map(|(name, _)| name).collect();
        if let Some(name) = arguments.given.keys().find(|name| !known.contains(&name.as_str())) {
            let cause = format!("{} has no argument `{name}`", arguments.tool.name);
            return Err(Problem::new(cause, nearest_of(name, &known)));
        }
        let required = arguments.tool.input_schema.get("required").and_then(Value::as_array);
        let missing = required.into_iter().flatten().filter_map(Value::as_str);
        if let Some(name) = missing.into_iter().find(|name| !arguments.given.contains_key(*name)) {
            let cause = format!("{} needs the argument `{name}`", arguments.tool.name);
            return Err(Problem::new(cause, format!("call {} again with `{name}`", arguments.tool.name)));
        }
        Ok(arguments)
    }

    fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        let properties = self.tool.input_schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The words that the schema spells out for an argument or its elements.
    fn words_of(&self, name: &str) -> Vec<&str> {
        let schema = self.properties().find(|(property, _)| *property == name).map(|(_, schema)| schema);
        let list = schema.and_then(|schema| schema.get("enum").or_else(|| schema.get("items")?.get("enum")));
        list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn wrong(&self, name: &str, expected: &str, found: &Value) -> Problem {
        let shown = crate::quoting::quoted(&found.to_string(), 60);
        let cause = format!("the argument `{name}` of {} is not {expected}: {shown}", self.tool.name);
        Problem::new(cause, format!("give {expected}"))
    }

    /// A text that is not blank.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        match self.given.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(Value::String(_)) => {
                let cause = format!("the argument `{name}` of {} is empty", self.tool.name);
                Err(Problem::new(cause, format!("give `{name}` a text")))
            }
            Some(other) => Err(self.wrong(name, "a text", other)),
        }
    }

    /// A text that must be there.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, Problem> {
        self.text(name)?.ok_or_else(|| {
            let cause = format!("{} needs the argument `{name}`", self.tool.name);
            Problem::new(cause, format!("call {} again with `{name}`", self.tool.name))
        })
    }

    /// One of the words that the schema spells out.
    pub(crate) fn word(&self, name: &str) -> Result<Option<&str>, Problem> {
        let Some(given) = self.text(name)? else { return Ok(None) };
        self.one_of_words(name, given).map(Some)
    }

    fn one_of_words<'a>(&'a self, name: &str, given: &str) -> Result<&'a str, Problem> {
        let words = self.words_of(name);
        words.iter().copied().find(|word| *word == given).ok_or_else(|| {
            let shown = crate::quoting::quoted(given, 60);
            let cause = format!("`{name}` of {} cannot be {shown}", self.tool.name);
            Problem::new(cause, nearest_of(given, &words))
        })
    }

    /// Several of the words that the schema spells out.
    pub(crate) fn words(&self, name: &str) -> Result<Vec<&str>, Problem> {
        self.texts(name)?.into_iter().map(|given| self.one_of_words(name, given)).collect()
    }

    /// A list of texts; a single text is a list of one.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<&str>, Problem> {
        match self.given.get(name) {
            None => Ok(Vec::new()),
            Some(Value::String(_)) => Ok(self.text(name)?.into_iter().collect()),
            Some(list @ Value::Array(values)) => {
                let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
                if !values.iter().all(is_text) {
                    return Err(self.wrong(name, "a list of texts", list));
                }
                Ok(values.iter().filter_map(Value::as_str).collect())
            }
            Some(other) => Err(self.wrong(name, "a list of texts", other)),
        }
    }

    /// A whole number within a range.
    pub(crate) fn count(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        let Some(value) = self.given.get(name) else { return Ok(None) };
        let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64);
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(name, &format!("a whole number from {} to {}", range.start(), range.end()), value)),
        }
    }

    /// `true` or `false`; absent is `false`.
    pub(crate) fn truth(&self, name: &str) -> Result<bool, Problem> {
        match self.given.get(name) {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(*truth),
            Some(Value::String(text)) if text == "true" || text == "false" => Ok(text == "true"),
            Some(other) => Err(self.wrong(name, "true or false", other)),
        }
    }

    /// An object of named values; a client may write it as text.
    pub(crate) fn object(&self, name: &str) -> Result<Map<String, Value>, Problem> {
        match self.given.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(other @ Value::String(text)) => {
                serde_json::from_str(text).map_err(|_| self.wrong(name, "an object", other))
            }
            Some(other) => Err(self.wrong(name, "an object", other)),
        }
    }
}

/// The next step for a word that nobody knows: the nearest valid one, and all of them where they are few.
pub(crate) fn nearest_of(given: &str, known: &[&str]) -> String {
    let all = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match nearest(given, known.iter().copied()) {
        Some(word) => format!("did you mean `{word}`? Valid are {all}"),
        None => format!("valid are {all}"),
    }
}

/// The known word that is written most like the given one, if any is.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let score = |word: &str| strsim::normalized_damerau_levenshtein(&given, &word.to_lowercase());
    let scored = known.into_iter().map(|word| (score(word), word));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= 0.5).then_some(best.1)
}
