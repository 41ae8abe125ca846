//! The fields of a row: what its item carries beside its text, typed as it was written.

use crate::records::field;
use crate::records::record::{Field, FieldValue};
use crate::state::content::Content;
use serde_json::{Map, Value};
use std::fmt;

/// The fields of an item, by name.
#[derive(Clone, Default)]
pub struct Fields(Place);

/// Most rows share the fields with the content that was read.
#[derive(Clone, Default)]
enum Place {
    #[default]
    None,
    Item(Content),
    Own(Vec<Field>),
}

impl Fields {
    /// Fields with these values. Null is absent.
    pub fn from_json(values: Map<String, Value>) -> Fields {
        let field = |(name, value)| Some(Field { name, value: FieldValue::from_json(value)? });
        Fields(Place::Own(values.into_iter().filter_map(field).collect()))
    }

    /// Adds a field of bytes.
    pub fn with_bytes(self, name: impl Into<String>, bytes: Vec<u8>) -> Fields {
        let mut all: Vec<Field> = self.all().cloned().collect();
        all.push(Field { name: name.into(), value: FieldValue::Bytes(bytes) });
        Fields(Place::Own(all))
    }

    pub(crate) fn of(content: &Content) -> Fields {
        Fields(Place::Item(content.clone()))
    }

    fn stored(&self) -> &[Field] {
        match &self.0 {
            Place::None => &[],
            Place::Item(content) => &content.record.fields,
            Place::Own(fields) => fields,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Field> {
        self.stored().iter().filter(|field| field.name != "text")
    }

    /// The value of a field, or of a member of one by a path such as `meta.topic`. Bytes are an object with their
    /// base64 text, as in JSON Lines; [`Fields::bytes`] gives them as they are.
    pub fn get(&self, path: &str) -> Option<Value> {
        let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
        field::at_path(self.stored(), &parts)
    }

    /// The bytes of a field that is no text.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match &self.all().find(|field| field.name == name)?.value {
            FieldValue::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The names, in the order in which they were written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|field| field.name.as_str())
    }

    /// The labels.
    pub fn labels(&self) -> Vec<String> {
        field::labels(self.stored())
    }

    /// All fields as JSON, by name.
    pub fn to_json(&self) -> Map<String, Value> {
        field::all(self.stored())
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Fields) -> bool {
        self.all().eq(other.all())
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
