//! Claims of a field that is a JSON object or array.
//!
//! An object's subject is its identifying member ([`SUBJECTS`] or `…_id`), else its first member if that is a string or
//! a whole number beside others, else the subject of the object around it. The arguments of a call ([`ARGUMENTS`]) give
//! the subject of its results. Nested members join their names: `{"price":{"amount":5}}` is about `price amount`.
//!
//! The short fields of an item are such an object too ([`record`]), with a narrower choice of subjects: most fields
//! describe the item and name nothing.

use super::{Claims, Field, MAX_PART_LEN, subject};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;

/// Members that identify the object that has them, best first.
const SUBJECTS: [&str; 12] =
    ["entity", "subject", "id", "key", "sku", "code", "identifier", "ref", "reference", "number", "name", "title"];

/// Members that hold what a call was asked.
const ARGUMENTS: [&str; 8] = ["arguments", "args", "params", "parameters", "input", "request", "query", "for"];

/// Members that say how a call went.
const ENVELOPE: [&str; 14] = [
    "ok",
    "success",
    "error",
    "errors",
    "message",
    "type",
    "kind",
    "tool",
    "function",
    "status code",
    "http status",
    "role",
    "version",
    "schema",
];

/// Fields that hold text, an address of it, or a step of a trajectory: no attributes of a subject.
const CONTENT: [&str; 16] = [
    "text",
    "title",
    "content",
    "body",
    "summary",
    "snippet",
    "url",
    "uri",
    "link",
    "href",
    "source",
    "observation",
    "action",
    "state",
    "reward",
    "subgoal",
];

/// Fields that identify the thing an item is about.
const FIELD_SUBJECTS: [&str; 6] = ["entity", "subject", "sku", "code", "identifier", "name"];

/// Members that name the unit of the numbers beside them.
const UNITS: [&str; 4] = ["currency", "unit", "units", "uom"];

/// Members that name the attribute of the `value` beside them.
const ATTRIBUTES: [&str; 5] = ["attribute", "metric", "property", "field", "measure"];

/// The depth to which objects are read.
const MAX_DEPTH: usize = 16;

/// Longest list of scalars that is one value.
const MAX_LIST: usize = 8;

/// Adds the claims of a JSON text; false if the text is no JSON object or array.
pub(super) fn extract(text: &str, claims: &mut Claims<'_>) -> bool {
    if !text.trim_start().starts_with(['{', '[']) {
        return false;
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    Walk { claims }.value(&value, text.trim(), &Context::default(), 0);
    true
}

/// Adds the claims of the short fields of an item, read as the members of one object. Their subject is an identifying
/// field, `…_id`, or the first code: `flight` with the value `TK129`.
pub(super) fn record<'t>(fields: &[Field<'t>], claims: &mut Claims<'t>) {
    let is_short = |text: &str| {
        let text = text.trim();
        (1..=MAX_PART_LEN).contains(&text.len()) && !text.contains('\n') && !text.starts_with(['{', '['])
    };
    let mut members: Vec<(usize, String, &str)> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let name = subject::attribute(field.name);
        let names_nothing = CONTENT.contains(&name.as_str()) || ENVELOPE.contains(&name.as_str());
        if is_short(field.text) && !names_nothing && !ARGUMENTS.contains(&name.as_str()) {
            members.push((index, name, field.text.trim().trim_matches('"')));
        }
    }
    let is_unit = |name: &str| UNITS.contains(&name);
    let named = |wanted: &&str| members.iter().find(|(_, name, _)| name == wanted);
    let by_name = || FIELD_SUBJECTS.iter().find_map(named);
    let by_id = || members.iter().find(|(_, name, _)| name.ends_with(" id") && !subject::is_volatile(name));
    let by_code = || members.iter().find(|(_, name, value)| !is_unit(name) && subject::is_code(value));
    let Some((of, kind, value)) = by_name().or_else(by_id).or_else(by_code) else { return };
    let kind = if FIELD_SUBJECTS.contains(&kind.as_str()) { "" } else { kind.strip_suffix(" id").unwrap_or(kind) };
    let subject = format!("{kind} {value}");
    let unit = members.iter().find(|(_, name, _)| is_unit(name)).map(|(.., unit)| *unit);
    for (index, name, value) in members.iter().filter(|(index, ..)| index != of) {
        let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
        let value = match unit {
            Some(_) if is_unit(name) => continue,
            Some(unit) if is_number => Cow::Owned(format!("{value} {unit}")),
            _ => Cow::Borrowed(*value),
        };
        (claims.field, claims.text) = (*index, fields[*index].text);
        claims.add_at(subject.trim(), name, value, 0..claims.text.len());
    }
}

/// The context of a value.
#[derive(Clone, Default)]
struct Context {
    /// Empty if nothing around the value names one.
    subject: String,
    /// Names of the members around it, joined by blanks.
    path: String,
}

impl Context {
    fn inside(&self, name: &str) -> Context {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{} {name}", self.path) };
        Context { subject: self.subject.clone(), path }
    }
}

/// A walk through the values in the order of the text. Each comes with its slice of the text, so that spans are exact
/// whatever escapes and repeated names there are.
struct Walk<'c, 't> {
    claims: &'c mut Claims<'t>,
}

impl Walk<'_, '_> {
    fn value(&mut self, value: &Value, written: &str, context: &Context, depth: usize) {
        if depth > MAX_DEPTH || self.claims.is_full() {
            return;
        }
        match value {
            Value::Object(object) => self.object(object, written, context, depth),
            Value::Array(values) if values.len() <= MAX_LIST && values.iter().all(is_scalar) => {
                let texts: Vec<Cow<'_, str>> = values.iter().filter_map(scalar).collect();
                if !texts.is_empty() {
                    self.claim(&texts.join(", "), written, context);
                }
            }
            Value::Array(values) => {
                let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(written) else { return };
                let mut context = context.clone();
                if values.len() > 1 {
                    // Elements are different things: each names itself, or has no subject.
                    context.subject.clear();
                }
                for (value, element) in values.iter().zip(elements) {
                    self.value(value, element.get(), &context, depth + 1);
                }
            }
            scalar_value => {
                if let Some(text) = scalar(scalar_value) {
                    self.claim(&text, written, context);
                }
            }
        }
    }

    fn object(&mut self, object: &Map<String, Value>, written: &str, around: &Context, depth: usize) {
        // Of members with one name both maps keep the last.
        let Ok(members) = serde_json::from_str::<HashMap<String, &RawValue>>(written) else { return };
        let identified = subject_of(object, around.subject.is_empty());
        let skipped = identified.as_ref().map(|(name, _)| name.clone());
        let mut context = around.clone();
        if let Some((_, subject)) = identified {
            context = Context { subject, path: String::new() };
        } else if let Some(subject) = arguments_of(object) {
            context.subject = subject;
        }
        let attribute = ATTRIBUTES.iter().find_map(|name| object.get(*name)?.as_str());
        let unit = UNITS.iter().find_map(|name| object.get(*name)?.as_str());
        for (name, value) in object {
            let plain = subject::attribute(name);
            let Some(written) = members.get(name).map(|member| member.get()) else { continue };
            let is_unit = unit.is_some() && UNITS.contains(&plain.as_str());
            let is_attribute = attribute.is_some() && ATTRIBUTES.contains(&plain.as_str());
            if skipped.as_ref() == Some(name) || is_unit || is_attribute || ENVELOPE.contains(&plain.as_str()) {
                continue;
            }
            if ARGUMENTS.contains(&plain.as_str()) || is_outcome(&plain, value) {
                continue;
            }
            let is_amount = unit.is_some() && matches!(plain.as_str(), "amount" | "value") && !context.path.is_empty();
            let inside = match attribute {
                Some(attribute) if plain == "value" => context.inside(attribute),
                _ if is_amount => context.clone(),
                _ if context.subject.is_empty() && value.is_object() && is_name(name) => {
                    Context { subject: name.clone(), path: String::new() }
                }
                _ if is_wrapper(&plain) && !is_scalar(value) => context.clone(),
                _ => context.inside(&plain),
            };
            match (value, unit) {
                (Value::Number(number), Some(unit)) => {
                    self.claim(&format!("{number} {unit}"), written, &inside);
                }
                _ => self.value(value, written, &inside, depth + 1),
            }
        }
    }

    /// Adds a claim. `written` is the slice of the text that holds its value; quotes are not part of the span, escapes
    /// are.
    fn claim(&mut self, value: &str, written: &str, context: &Context) {
        let written = written.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(written);
        if let Some(span) = self.claims.span_of(written) {
            self.claims.add_at(&context.subject, &context.path, Cow::Borrowed(value), span);
        }
    }
}

/// The member that identifies an object, with the subject it names; its first member only if nothing around it does.
fn subject_of(object: &Map<String, Value>, is_outermost: bool) -> Option<(String, String)> {
    let name_of = |wanted: &str| object.iter().find(|(name, _)| subject::attribute(name) == wanted);
    let named = SUBJECTS.iter().filter(|_| object.len() > 1).find_map(|wanted| {
        let (name, value) = name_of(wanted)?;
        Some((name.clone(), label(value)?.into_owned()))
    });
    let mut members = object.iter().filter(|(name, value)| {
        let plain = subject::attribute(name);
        !ENVELOPE.contains(&plain.as_str()) && !subject::is_volatile(&plain) && !is_outcome(&plain, value)
    });
    let with_id = || {
        let (name, value) = object.iter().find(|(name, _)| subject::attribute(name).ends_with(" id"))?;
        let plain = subject::attribute(name);
        let kind = plain.strip_suffix(" id").filter(|_| !subject::is_volatile(&plain))?;
        Some((name.clone(), format!("{kind} {}", label(value)?)))
    };
    let first = || {
        let (name, value) = members.next().filter(|(name, _)| is_outermost && object.len() > 1 && !is_wrapper(name))?;
        let plain = subject::attribute(name);
        let is_amount = value.is_number() && UNITS.iter().any(|unit| object.contains_key(*unit));
        let names_nothing = ARGUMENTS.contains(&plain.as_str()) || ATTRIBUTES.contains(&plain.as_str());
        if names_nothing || is_amount || is_measure(value) {
            return None;
        }
        Some((name.clone(), format!("{plain} {}", label(value)?)))
    };
    named.or_else(with_id).or_else(first)
}

/// The subject that the arguments of a call name: all their values, since one alone may be shared by other calls.
fn arguments_of(object: &Map<String, Value>) -> Option<String> {
    let given = object.iter().find(|(name, _)| ARGUMENTS.contains(&subject::attribute(name).as_str()))?.1;
    match given {
        Value::Object(arguments) => {
            let mut words = Vec::new();
            for (name, value) in arguments {
                let plain = subject::attribute(name);
                if !super::lines::is_option(&plain) {
                    let kind = if SUBJECTS.contains(&plain.as_str()) { "" } else { plain.as_str() };
                    words.push(format!("{kind} {}", scalar(value)?).trim().to_owned());
                }
            }
            Some(words.join(" ")).filter(|words| !words.is_empty())
        }
        value => label(value).map(Cow::into_owned),
    }
}

/// A member's name that is a thing's: it has a digit, or a blank behind a capital.
fn is_name(name: &str) -> bool {
    let is_proper = name.starts_with(char::is_uppercase) && name.chars().any(char::is_lowercase);
    subject::is_code(name) || is_proper || (name.contains(' ') && name.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Members that only hold others.
fn is_wrapper(name: &str) -> bool {
    matches!(
        name,
        "result"
            | "results"
            | "output"
            | "data"
            | "response"
            | "payload"
            | "items"
            | "records"
            | "body"
            | "observation"
            | "fields"
            | "attributes"
            | "properties"
            | "details"
            | "values"
            | "rows"
    )
}

/// `"status":"ok"` says how the call went, `"status":"delayed"` is a claim.
fn is_outcome(name: &str, value: &Value) -> bool {
    let went =
        |text: &str| matches!(text.to_ascii_lowercase().as_str(), "ok" | "success" | "succeeded" | "error" | "failed");
    name == "status"
        && (value.as_str().is_some_and(went) || value.as_u64().is_some_and(|code| (100..600).contains(&code)))
}

/// A string that is a value by its form and names nothing: a number with a unit, a date, a time.
fn is_measure(value: &Value) -> bool {
    value.as_str().is_some_and(|text| super::normalise(text) != super::normalise::fold(text))
}

/// A string or whole number, which may name something.
fn label(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(Cow::Borrowed(text)),
        Value::Number(number) if number.is_u64() => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(is) => Some(Cow::Borrowed(if *is { "true" } else { "false" })),
        _ => None,
    }
}
