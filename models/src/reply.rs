//! Replies of models as text: what wraps them is taken off, and what remains is read strictly.
//!
//! 1. [`bare`] takes off the thinking before an answer (`<think>…</think>`, also where only the end of it is there, as
//!    templates that open the tag themselves leave it), and a fence of three backticks around the whole answer.
//! 2. [`object`] reads exactly one JSON object and nothing beside it. A name that stands twice refuses it, since nobody
//!    can tell which value was meant.

use crate::failure::Failure;
use serde_json::{Map, Value};

/// The tags between which models think.
const THINKING: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// The answer of a reply, without the thinking before it and without a fence around it.
///
/// # Errors
/// [`Failure::Reply`] where nothing is left, as when the thinking does not end.
///
/// ```
/// use holotype_models::reply::bare;
///
/// assert_eq!(bare("<think>S or R?</think>\n```json\n{\"action\": \"S\"}\n```")?, "{\"action\": \"S\"}");
/// assert!(bare("<think>S or R? I should").is_err());
/// # Ok::<(), holotype_models::Failure>(())
/// ```
pub fn bare(reply: &str) -> Result<&str, Failure> {
    let refused = |why: &str| Failure::reply(why, reply);
    let mut text = reply.trim();
    while let Some((open, close)) = THINKING.iter().find(|(open, _)| text.starts_with(open)) {
        let after = text.get(open.len()..).unwrap_or_default();
        let (_, answer) = after.split_once(close).ok_or_else(|| refused("thinks without an end"))?;
        text = answer.trim();
    }
    if !text.starts_with(['{', '[', '`']) {
        for (open, close) in THINKING {
            let answer = text.split_once(close).filter(|(before, _)| !before.contains(open)).map(|(_, answer)| answer);
            text = answer.map_or(text, str::trim);
        }
    }
    let text = unfenced(text);
    if text.is_empty() { Err(refused("is empty")) } else { Ok(text) }
}

/// The inside of a fence that is the whole text; otherwise the text.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((info, inside)) = inside.and_then(|inside| inside.split_once('\n')) else { return text };
    let is_whole = info.trim().chars().all(|c| c.is_ascii_alphanumeric()) && !inside.contains("\n```");
    if is_whole && (inside.ends_with('\n') || inside.is_empty()) { inside.trim() } else { text }
}

/// The JSON object that a bare reply is.
///
/// # Errors
/// [`Failure::Reply`] for anything else, text around the object and names that stand twice included.
pub fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| Failure::reply(format!("is no JSON object: {error}"), text))?;
    let Value::Object(object) = value else { return Err(Failure::reply("is no JSON object", text)) };
    match repeated_name(text) {
        Some(name) => Err(Failure::reply(format!("has the name {name:?} twice"), text)),
        None => Ok(object),
    }
}

/// A name that stands twice in one object of a JSON text. The text is valid JSON.
fn repeated_name(text: &str) -> Option<String> {
    // The names of each object that is open, or `None` for a list.
    let mut open: Vec<Option<Vec<String>>> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let (sign, after) = rest.get(at..)?.split_at_checked(1)?;
        rest = after;
        match sign {
            "{" => open.push(Some(Vec::new())),
            "[" => open.push(None),
            "\"" => {
                let end = string_end(rest)?;
                let (name, after) = rest.split_at_checked(end)?;
                rest = after.get(1..)?;
                // A string before a colon is a name; a colon follows no other string.
                let is_name = rest.trim_start().starts_with(':');
                if let Some(Some(names)) = open.last_mut().filter(|_| is_name) {
                    let name: String = serde_json::from_str(&format!("\"{name}\"")).ok()?;
                    if names.contains(&name) {
                        return Some(name);
                    }
                    names.push(name);
                }
            }
            _ => drop(open.pop()),
        }
    }
    None
}

/// The byte of the quotation mark that ends a JSON string.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// The members of a reply, each taken once; what nobody took refuses the reply.
pub(crate) struct Members<'r> {
    text: &'r str,
    object: Map<String, Value>,
}

impl<'r> Members<'r> {
    /// The members of the object that a bare reply is.
    pub(crate) fn of(text: &'r str) -> Result<Members<'r>, Failure> {
        Ok(Members { text, object: object(text)? })
    }

    /// Refuses the reply.
    pub(crate) fn refused(&self, why: impl Into<String>) -> Failure {
        Failure::reply(why, self.text)
    }

    /// A text; an empty one counts as none.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.object.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.refused(format!("has a `{name}` that is no text"))),
        }
    }

    /// Whatever stands under a name.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.object.shift_remove(name)
    }

    /// A text that must be there.
    pub(crate) fn stated(&mut self, name: &str) -> Result<String, Failure> {
        self.text(name)?.ok_or_else(|| self.refused(format!("has no text `{name}`")))
    }

    /// A truth value that must be there.
    pub(crate) fn truth(&mut self, name: &str) -> Result<bool, Failure> {
        let truth = self.object.shift_remove(name).as_ref().and_then(Value::as_bool);
        truth.ok_or_else(|| self.refused(format!("has no `{name}` that is true or false")))
    }

    /// A number between two others.
    pub(crate) fn number(&mut self, name: &str, low: f64, high: f64) -> Result<Option<f64>, Failure> {
        let Some(value) = self.object.shift_remove(name).filter(|value| !value.is_null()) else { return Ok(None) };
        let number = value.as_f64().filter(|number| (low..=high).contains(number));
        number.map(Some).ok_or_else(|| self.refused(format!("has a `{name}` that is no number from {low} to {high}")))
    }

    /// An index below a count.
    pub(crate) fn index(&mut self, name: &str, count: usize) -> Result<Option<usize>, Failure> {
        let Some(value) = self.object.shift_remove(name).filter(|value| !value.is_null()) else { return Ok(None) };
        let index = value.as_u64().and_then(|index| usize::try_from(index).ok()).filter(|index| *index < count);
        let what = || format!("names `{name}` {value}, which is none of the {count} that it was given");
        index.map(Some).ok_or_else(|| self.refused(what()))
    }

    /// A list that must be there.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Value>, Failure> {
        match self.object.shift_remove(name) {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(self.refused(format!("has no list `{name}`"))),
        }
    }

    /// An object among the values of this one.
    pub(crate) fn inner(&self, value: Value, name: &str) -> Result<Members<'r>, Failure> {
        match value {
            Value::Object(object) => Ok(Members { text: self.text, object }),
            _ => Err(self.refused(format!("has something in `{name}` that is no object"))),
        }
    }

    /// Refuses the reply if a member is left.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.object.keys().next() {
            Some(name) => Err(self.refused(format!("has the unknown name {name:?}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wrappings_are_taken_off() {
        for reply in [
            "{\"a\": 1}",
            "  {\"a\": 1}\n",
            "<think>{\"a\": 2}</think>{\"a\": 1}",
            "<think></think>\n\n<think>again</think>{\"a\": 1}",
            "<thinking>x</thinking> {\"a\": 1}",
            "so it is\n</think>\n{\"a\": 1}",
            "```json\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}\n```",
            "<think>a ``` b</think>\n```JSON\n{\"a\": 1}\n```\n",
        ] {
            assert_eq!(bare(reply).unwrap(), "{\"a\": 1}", "{reply}");
        }
        // Tags and fences inside of an answer are its own.
        for reply in
            ["{\"a\": \"x</think>y\"}", "{\"a\": \"```\"}", "a ``` b", "```a\nb", "```\na\n```\nb\n```\nc\n```"]
        {
            assert_eq!(bare(reply).unwrap(), reply);
        }
        for empty in ["", " \n", "<think>", "<think>never", "<think>a</think>", "```json\n```", "a</think>"] {
            assert!(bare(empty).is_err(), "{empty}");
        }
    }

    #[test]
    fn an_object_stands_alone_and_says_nothing_twice() {
        assert!(object(r#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}], "c": "a\": {\"a"}"#).is_ok());
        for (reply, why) in [
            ("[]", "no JSON object"),
            ("{\"a\": 1", "no JSON object"),
            ("{\"a\": 1} {}", "no JSON object"),
            ("Sure! {\"a\": 1}", "no JSON object"),
            (r#"{"a": 1, "a": 2}"#, "twice"),
            (r#"{"a": 1, "\u0061": 2}"#, "twice"),
            (r#"{"b": [{"a": 1, "x": {}, "a": 2}]}"#, "twice"),
        ] {
            let error = object(reply).unwrap_err().to_string();
            assert!(error.contains(why), "{reply}: {error}");
        }
    }

    #[test]
    fn members_are_of_their_type_or_refused() {
        let text = r#"{"t": " x ", "e": "", "n": null, "b": true, "r": 0.5, "i": 2, "l": [1]}"#;
        let mut members = Members::of(text).unwrap();
        assert_eq!((members.text("t").unwrap(), members.text("e").unwrap()), (Some("x".to_owned()), None));
        assert_eq!((members.text("n").unwrap(), members.text("absent").unwrap()), (None, None));
        assert!(members.truth("b").unwrap() && members.truth("absent").is_err());
        assert_eq!(members.number("r", 0.0, 1.0).unwrap(), Some(0.5));
        assert_eq!(members.index("i", 3).unwrap(), Some(2));
        assert_eq!(members.list("l").unwrap().len(), 1);
        assert!(members.end().is_ok());
        let refused = |text: &str, why: &str| {
            let mut members = Members::of(text).unwrap();
            let error = members.index("i", 2).map(drop).and_then(|()| members.number("r", 0.0, 1.0).map(drop));
            let error = error.and_then(|()| members.end()).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        };
        refused(r#"{"i": 2}"#, "none of the 2");
        refused(r#"{"i": -1}"#, "none of the 2");
        refused(r#"{"i": "0"}"#, "none of the 2");
        refused(r#"{"i": 0, "r": 1.5}"#, "from 0 to 1");
        refused(r#"{"i": 0, "more": 1}"#, "unknown name");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(reply in any::<String>()) {
            if let Ok(text) = bare(&reply) {
                prop_assert!(!text.is_empty());
                let _ = object(text);
            }
        }

        #[test]
        fn texts_near_the_format_are_read_or_refused(parts in prop::collection::vec(prop::sample::select(vec![
            "<think>", "</think>", "<thinking>", "</thinking>", "```", "```json\n", "\n", "{", "}", "[", "]", "\"",
            "\\", "a", ":", ",", "1", "\"a\": 1", "é",
        ]), 0..16)) {
            if let Ok(text) = bare(&parts.concat()) {
                let _ = object(text);
            }
        }
    }
}
