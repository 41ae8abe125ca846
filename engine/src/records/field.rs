//! Values of fields as JSON, and the members below them.
//!
//! A field is a text, any other JSON value or bytes. A path such as `meta.topic` names a field `meta.topic` if there is
//! one, and else the member `topic` of the field `meta`; in a list, the members of all its values.

use crate::records::record::{Field, FieldValue};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The field that holds the labels of an item.
pub(crate) const LABELS: &str = "labels";

/// The form of the column of a declared field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// A dictionary of values: texts, truth values and lists.
    Text,
    /// Numbers.
    Number,
}

/// A declared field: its path and the form of its column.
pub(crate) type Declared = (Vec<String>, FieldType);

/// The path with a part for each name between dots: `'a.b'` is `a.b`.
pub(crate) fn parts(path: &[String]) -> Cow<'_, [String]> {
    if path.iter().any(|part| part.contains('.')) {
        return path.iter().flat_map(|part| part.split('.')).map(str::to_owned).collect();
    }
    Cow::Borrowed(path)
}

impl FieldValue {
    /// The field's value for a JSON value; `None` for null, which is absent.
    pub(crate) fn from_json(value: Value) -> Option<FieldValue> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(FieldValue::Text(text)),
            other => Some(FieldValue::Json(other.to_string())),
        }
    }

    /// The value as JSON. Bytes are an object with base64 text, as in JSON Lines.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            FieldValue::Text(text) => Value::String(text.clone()),
            // The stored value was JSON when it was written.
            FieldValue::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
            FieldValue::Bytes(bytes) => {
                use base64::Engine;
                json!({"base64": base64::engine::general_purpose::STANDARD.encode(bytes)})
            }
            FieldValue::Chunks { .. } => Value::Null,
        }
    }
}

/// The value at a path of fields; `None` if it is absent or null.
pub(crate) fn at_path(fields: &[Field], path: &[String]) -> Option<Value> {
    for taken in (1..=path.len()).rev() {
        let (name, rest) = path.split_at(taken);
        let name: Cow<'_, str> = match name {
            [name] => Cow::Borrowed(name),
            parts => Cow::Owned(parts.join(".")),
        };
        let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
        let found = match (&field.value, rest) {
            (value, []) => Some(value.to_json()),
            (FieldValue::Json(_), rest) => member(&field.value.to_json(), rest),
            _ => None,
        };
        if let Some(found) = found.filter(|found| !found.is_null()) {
            return Some(found);
        }
    }
    None
}

/// The member of a value at a path.
fn member(value: &Value, path: &[String]) -> Option<Value> {
    let [name, rest @ ..] = path else { return Some(value.clone()) };
    match value {
        Value::Object(members) => member(members.get(name)?, rest),
        Value::Array(values) => {
            let found: Vec<Value> = values.iter().filter_map(|value| member(value, path)).collect();
            (!found.is_empty()).then_some(Value::Array(found))
        }
        _ => None,
    }
}

/// All fields but the text, by name.
pub(crate) fn all(fields: &[Field]) -> serde_json::Map<String, Value> {
    let shown = fields.iter().filter(|field| field.name != "text");
    shown.map(|field| (field.name.clone(), field.value.to_json())).collect()
}

/// The labels among fields: the texts of the field `labels`.
pub(crate) fn labels(fields: &[Field]) -> Vec<String> {
    let Some(field) = fields.iter().find(|field| field.name == LABELS) else { return Vec::new() };
    match field.value.to_json() {
        Value::Array(values) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(label) => vec![label],
        _ => Vec::new(),
    }
}

/// The field that holds these labels, each once.
pub(crate) fn of_labels(labels: impl IntoIterator<Item = String>) -> Option<Field> {
    let mut kept: Vec<String> = Vec::new();
    for label in labels {
        if !kept.contains(&label) {
            kept.push(label);
        }
    }
    let value = FieldValue::Json(Value::from(kept.clone()).to_string());
    (!kept.is_empty()).then(|| Field { name: LABELS.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, json: &str) -> Field {
        Field { name: name.to_owned(), value: FieldValue::Json(json.to_owned()) }
    }

    #[test]
    fn a_path_names_a_field_or_a_member_of_one() {
        let fields =
            [field("meta", r#"{"topic":"x","deep":{"n":1},"tags":[{"a":1},{"b":2},{"a":3}]}"#), field("a.b", "5")];
        let at = |path: &str| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            at_path(&fields, &path).map(|value| value.to_string())
        };
        assert_eq!(at("meta.topic").as_deref(), Some("\"x\""));
        assert_eq!(at("meta.deep.n").as_deref(), Some("1"));
        assert_eq!(at("meta.tags.a").as_deref(), Some("[1,3]"));
        assert_eq!(at("a.b").as_deref(), Some("5"));
        assert_eq!((at("meta.none"), at("meta.topic.x"), at("none")), (None, None, None));
    }
}
