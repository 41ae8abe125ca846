//! Settings: named values that live in the log with everything else, so that a rebuilt or copied database behaves the
//! same.
//!
//! | name | values | default |
//! |---|---|---|
//! | `profile` | `default`, `helm`, `archive`, `agent` | `default` |
//! | `claims` | `extract`, `none`: whether claims are extracted from what is written | `extract` |
//! | `claims.ignore` | names that make no claims, separated by commas | none |
//! | `consolidate.limit` | recalls that one `consolidate` makes for an episode (HELM Table 11) | `5` |
//! | `clock` | `reader` (newest item), `wall` | `reader` |
//! | `page.tokens` | tokens a memory page holds (TierMem B.2) | `1000` |
//! | `recency.half-life` | a duration | `1d` |
//! | `stale.steps` | steps after which an item is stale (HELM A.6) | `200` |
//! | `stale.age` | age after which an item is stale (HELM A.6) | `7d` |
//! | `frame.near` | cosine that a newer value may lack to the best one and still stand first | `0.17` |
//! | `frame.slots` | the same where two values differ in several places | `0.13` |
//! | `audit` | `none`, `reads`: whether every recall leaves a read in the log | `none` |
//! | `router` | `built-in`, or a fitted linear router as JSON (TierMem D) | `built-in` |
//! | `analyser` | `english`, `none`: how words are stemmed; before the first item | `english` |
//!
//! Beside them stands `prompt.ROLE` for each role that a model fills: the version of its prompt and the BLAKE3 of it,
//! such as `1 91b7…`. A client of a model writes it; the engine keeps it and lists it among the events, so that
//! everything written and read can be traced to the prompts in force at its commit. `embedder` holds the fingerprint of
//! the model that makes the vectors; the engine writes it with the first vector that it embeds.

use crate::memory::router::LinearRouter;
use crate::records::field::{Declared, FieldType, LABELS};
use crate::records::tables;
use crate::state::State;
use crate::state::embedder;
use crate::{Error, Result};
use holotype_query::Duration;
use holotype_query::attributes::{DECLARED, FIELD_TYPES};
use holotype_storage::codec;

/// The value of `router` that names the built-in one.
const BUILT_IN: &str = "built-in";

/// Every setting with its default.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("profile", "default"),
    ("claims", "extract"),
    ("claims.ignore", ""),
    ("consolidate.limit", "5"),
    ("clock", "reader"),
    ("page.tokens", "1000"),
    ("recency.half-life", "1d"),
    ("stale.steps", "200"),
    ("stale.age", "7d"),
    ("frame.near", "0.17"),
    ("frame.slots", "0.13"),
    ("audit", "none"),
    ("analyser", "english"),
    ("router", BUILT_IN),
];

/// The beginning of the names of settings that state the prompt of a role.
pub(crate) const PROMPT: &str = "prompt.";

/// The canonical form of a value, or an error that names the valid ones.
pub(crate) fn canonical(name: &str, value: &str) -> Result<String> {
    let wrong = |expected: &str| Error::Invalid(format!("setting {name} cannot be {value:?}: expected {expected}"));
    let one_of = |names: &[&str]| {
        if names.contains(&value) { Ok(value.to_owned()) } else { Err(wrong(&names.join(" or "))) }
    };
    let count = || match value.parse::<u64>() {
        Ok(count) if count > 0 => Ok(count.to_string()),
        _ => Err(wrong("a whole number above 0")),
    };
    let duration = || match value.parse::<Duration>() {
        Ok(duration) if duration.micros() > 0 => Ok(value.to_owned()),
        _ => Err(wrong("a duration such as 12h or 7d")),
    };
    match name {
        "claims" => one_of(&["extract", "none"]),
        "claims.ignore" => Ok(value.to_owned()),
        "profile" => one_of(holotype_query::attributes::PROFILES),
        "clock" => one_of(&["reader", "wall"]),
        "router" if value == BUILT_IN => Ok(value.to_owned()),
        "router" => Ok(LinearRouter::from_json(value)?.to_json().to_string()),
        "analyser" => one_of(&["english", "none"]),
        "audit" => one_of(&["none", "reads"]),
        "page.tokens" | "stale.steps" | "consolidate.limit" => count(),
        "recency.half-life" | "stale.age" => duration(),
        "frame.near" | "frame.slots" => match value.parse::<f64>() {
            Ok(margin) if (0.0..=2.0).contains(&margin) => Ok(value.to_owned()),
            _ => Err(wrong("a number from 0 to 2")),
        },
        _ if name.starts_with(PROMPT) => prompt(name, value),
        _ if declared_path(name).is_some() => one_of(FIELD_TYPES),
        embedder::FINGERPRINT => embedder::canonical(value),
        _ => {
            let known: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
            Err(Error::Invalid(format!("unknown setting {name:?}; the settings are {}", known.join(", "))))
        }
    }
}

/// The name of the setting that declares a field.
pub(crate) fn declaration(field: &str) -> String {
    format!("{DECLARED}.{field}")
}

/// The path of the field that a setting declares.
fn declared_path(name: &str) -> Option<Vec<String>> {
    let path = name.strip_prefix(DECLARED)?.strip_prefix('.')?;
    (!path.is_empty()).then(|| path.split('.').map(str::to_owned).collect())
}

/// The declared fields with the form of their columns, by path. Labels have a column in every database.
pub(crate) fn declared_fields(state: &State) -> Result<Vec<Declared>> {
    // Reads the stated settings, which are kept.
    state.setting(DECLARED)?;
    let stated = state.lookup_cache.settings.get();
    let mut declared = vec![(vec![LABELS.to_owned()], FieldType::Text)];
    for (name, value) in stated.iter().flat_map(|stated| stated.iter()) {
        let form = match value.as_str() {
            "number" => FieldType::Number,
            "text" | "bool" => FieldType::Text,
            _ => continue,
        };
        declared.extend(declared_path(name).filter(|path| *path != [LABELS]).map(|path| (path, form)));
    }
    Ok(declared)
}

/// The fields that were declared: the name of the setting and the type, by name.
pub(crate) fn declarations(state: &State) -> Result<Vec<(String, String)>> {
    let rows = state.scan(tables::SETTING, format!("{DECLARED}.").as_bytes())?;
    rows.into_iter()
        .map(|(name, value)| Ok((String::from_utf8_lossy(&name).into_owned(), codec::decode(&value)?)))
        .collect()
}

/// The router of the database: the stated one or the built-in one.
pub(crate) fn router(state: &State) -> Result<LinearRouter> {
    match value(state, "router")?.as_str() {
        BUILT_IN => Ok(LinearRouter::default()),
        json => LinearRouter::from_json(json),
    }
}

/// The version and the hash of a prompt: `1 91b7…`, with 64 hexadecimal digits.
fn prompt(name: &str, value: &str) -> Result<String> {
    let role = name.strip_prefix(PROMPT).unwrap_or_default();
    if role.is_empty() || !role.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return Err(Error::Invalid(format!(
            "setting {name:?}: expected prompt.ROLE, in lower-case letters and hyphens"
        )));
    }
    let is_version = |text: &str| text.parse::<u32>().is_ok_and(|version| version > 0 && version.to_string() == text);
    let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match value.split_once(' ') {
        Some((version, hash)) if is_version(version) && is_hash(hash) => Ok(value.to_owned()),
        _ => Err(Error::Invalid(format!(
            "setting {name} cannot be {value:?}: expected a version above 0, a blank, and a BLAKE3 hash in 64 \
             hexadecimal digits"
        ))),
    }
}

/// The prompts that are stated: the name of the setting and its value, by name.
pub(crate) fn prompts(state: &State) -> Result<Vec<(String, String)>> {
    let rows = state.scan(tables::SETTING, PROMPT.as_bytes())?;
    rows.into_iter()
        .map(|(name, value)| Ok((String::from_utf8_lossy(&name).into_owned(), codec::decode(&value)?)))
        .collect()
}

/// The value of a setting: the stated one or the default.
pub(crate) fn value(state: &State, name: &str) -> Result<String> {
    if let Some(stated) = state.setting(name)? {
        return Ok(stated);
    }
    let default = SETTINGS.iter().find(|(known, _)| *known == name).map_or("", |(_, default)| *default);
    Ok(default.to_owned())
}

pub(crate) fn page_tokens(state: &State) -> Result<u64> {
    if let Some(tokens) = state.lookup_cache.page_tokens.get() {
        return Ok(*tokens);
    }
    let tokens = number(state, "page.tokens")?;
    Ok(*state.lookup_cache.page_tokens.get_or_init(|| tokens))
}

/// Attributes that make no claims.
pub(crate) fn ignored(state: &State) -> Result<Vec<String>> {
    let names = value(state, "claims.ignore")?;
    Ok(names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Recalls that one `consolidate` makes for an episode.
pub(crate) fn consolidate_limit(state: &State) -> Result<u64> {
    number(state, "consolidate.limit")
}

pub(crate) fn stale_steps(state: &State) -> Result<u64> {
    number(state, "stale.steps")
}

pub(crate) fn stale_age(state: &State) -> Result<i64> {
    duration(state, "stale.age")
}

pub(crate) fn half_life(state: &State) -> Result<i64> {
    duration(state, "recency.half-life")
}

/// The cosines that a newer value of a frame may lack: with one difference, and with several.
pub(crate) fn frame_margins(state: &State) -> Result<(f32, f32)> {
    Ok((parse(state, "frame.near")?, parse(state, "frame.slots")?))
}

fn number(state: &State, name: &str) -> Result<u64> {
    parse(state, name)
}

fn duration(state: &State, name: &str) -> Result<i64> {
    let duration: Duration = parse(state, name)?;
    Ok(i64::try_from(duration.micros()).unwrap_or(i64::MAX))
}

fn parse<T: std::str::FromStr>(state: &State, name: &str) -> Result<T> {
    let value = value(state, name)?;
    value.parse().map_err(|_| Error::Corrupt { what: format!("setting {name} holds {value:?}") })
}
