//! Withholding secrets: a hook sees everything that an agent sees, and a memory keeps for ever what it is given.
//!
//! The classes are lines of `secrets.tsv`. A secret becomes `‹withheld:CLASS:HASH8›`, where the hash tells two secrets
//! apart and the same one again, and nothing else.
//!
//! 1. Nothing is written, neither to the database nor to the spool nor to the hook's log, before it went through here.
//! 2. A pattern is compiled only if one of its hints occurs: most events have none, and a hook is a new process.
//! 3. A text is withheld before it is cut, so that no cut hides a part of a pattern; what lies beyond the cut and the
//!    slack of [`SLACK_LEN`] is dropped unseen.

use regex_lite::{Captures, Regex};
use serde_json::Value;
use std::collections::HashMap;

/// The classes.
const CLASSES: &str = include_str!("secrets.tsv");

/// Bytes behind a cut that are searched too, for secrets that begin before it.
const SLACK_LEN: usize = 16 << 10;

/// A class of secrets.
struct Class {
    name: &'static str,
    hints: &'static str,
    least_entropy: f64,
    pattern: &'static str,
}

fn classes() -> impl Iterator<Item = Class> {
    CLASSES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.splitn(4, '\t');
        Some(Class {
            name: columns.next()?,
            hints: columns.next()?,
            least_entropy: columns.next()?.parse().ok()?,
            pattern: columns.next()?,
        })
    })
}

/// A text without its secrets, cut to at most `limit` bytes; the length and hash of the whole text if it was cut.
pub(super) fn withhold_within(text: &str, limit: usize) -> (String, Option<String>) {
    if text.len() <= limit {
        let mut withheld = withhold(text);
        // A placeholder may be longer than the secret.
        withheld.truncate(withheld.floor_char_boundary(limit));
        return (withheld, None);
    }
    let head = &text[..text.floor_char_boundary(limit.saturating_add(SLACK_LEN))];
    let mut withheld = withhold(head);
    withheld.truncate(withheld.floor_char_boundary(limit));
    let hash = blake3::hash(text.as_bytes()).to_hex();
    (withheld, Some(format!("{} bytes, blake3 {hash}", text.len())))
}

/// A text without its secrets.
pub(super) fn withhold(text: &str) -> String {
    let mut text = text.to_owned();
    let mut lower = text.to_ascii_lowercase();
    for class in classes() {
        if !class.hints.split(' ').any(|hint| lower.contains(hint)) {
            continue;
        }
        // A test compiles every pattern.
        let Ok(pattern) = Regex::new(class.pattern) else { continue };
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| replacement(&class, found)).into_owned();
        if replaced != text {
            lower = replaced.to_ascii_lowercase();
            text = replaced;
        }
    }
    text
}

/// The strings of a JSON value without their secrets, its keys as they are. A string under a telling name, such as
/// `password`, is a secret if it would be one as an assignment of that name.
pub(super) fn withhold_json(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(withhold(text)),
        Value::Array(values) => values.iter().map(withhold_json).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let value = match value {
                    Value::String(text) => Value::String(withhold_member(name, text)),
                    value => withhold_json(value),
                };
                (name.clone(), value)
            })
            .collect(),
        value => value.clone(),
    }
}

fn withhold_member(name: &str, text: &str) -> String {
    let prefix = format!("{name}=");
    let withheld = withhold(&format!("{prefix}{text}"));
    withheld.strip_prefix(&prefix).map_or_else(|| withhold(text), str::to_owned)
}

fn replacement(class: &Class, found: &Captures<'_>) -> String {
    let whole = found.get(0).map_or("", |whole| whole.as_str());
    let secret = found.get(1).or(found.get(0)).map_or("", |secret| secret.as_str());
    if secret.contains('‹') || entropy(secret) < class.least_entropy {
        return whole.to_owned();
    }
    let hash = blake3::hash(secret.as_bytes()).to_hex();
    let placeholder = format!("‹withheld:{}:{}›", class.name, &hash[..8]);
    let (start, end) = match (found.get(0), found.get(1)) {
        (Some(whole), Some(secret)) => (secret.start() - whole.start(), secret.end() - whole.start()),
        _ => (0, whole.len()),
    };
    format!("{}{placeholder}{}", &whole[..start], &whole[end..])
}

/// The entropy of a text by the frequencies of its characters, in bits a character.
fn entropy(text: &str) -> f64 {
    let mut counts: HashMap<char, f64> = HashMap::new();
    for char in text.chars() {
        *counts.entry(char).or_default() += 1.0;
    }
    let total: f64 = counts.values().sum();
    counts.values().map(|count| -count / total * (count / total).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_class_with_a_pattern_that_compiles() {
        let lines = CLASSES.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(classes().count(), lines);
        assert!(lines >= 12, "{lines}");
        for class in classes() {
            Regex::new(class.pattern).unwrap_or_else(|error| panic!("{}: {error}", class.name));
            assert_eq!(class.hints, class.hints.to_lowercase(), "{}", class.name);
        }
    }

    #[test]
    fn a_secret_is_withheld_and_what_surrounds_it_stays() {
        let planted = format!("export AWS_ACCESS_KEY_ID={} # mine", ["AKIA", "IOSFODNN7EXAMPLE"].concat());
        let withheld = withhold(&planted);
        assert!(withheld.starts_with("export AWS_ACCESS_KEY_ID=‹withheld:aws-access-key:"), "{withheld}");
        assert!(withheld.ends_with("› # mine"), "{withheld}");
        assert_eq!(withhold(&withheld), withheld, "a placeholder is no secret");
    }

    #[test]
    fn plain_words_are_no_secrets() {
        for text in [
            "the token count is 12 and the author = someone",
            "let key = map.keys().next();",
            "password: see the vault; the key of the row is 'session/42'",
            "https://example.org/a:b@c",
            "risk-assessment-of-the-whole-project",
        ] {
            assert_eq!(withhold(text), text);
        }
    }

    #[test]
    fn a_cut_text_keeps_its_length_and_hash_and_no_half_of_a_secret() {
        let secret = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let text = format!("{}{secret}{}", "x ".repeat(30), "y".repeat(200));
        let (cut, whole) = withhold_within(&text, 70);
        assert!(!cut.contains("ghp_"), "{cut}");
        assert!(cut.len() <= 70);
        let hash = blake3::hash(text.as_bytes()).to_hex();
        assert_eq!(whole.unwrap(), format!("{} bytes, blake3 {hash}", text.len()));
    }

    #[test]
    fn a_member_with_a_telling_name_is_withheld() {
        let value = serde_json::json!({"password": "hunter2hunter2", "path": "/tmp/x", "list": ["plain"]});
        let withheld = withhold_json(&value);
        assert!(withheld["password"].as_str().unwrap().starts_with("‹withheld:password:"), "{withheld}");
        assert_eq!(withheld["path"], "/tmp/x");
    }
}
