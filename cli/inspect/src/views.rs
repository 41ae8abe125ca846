//! The views of the page as JSON, each made from one snapshot by statements of the query language.

use crate::lists::Lists;
use crate::rows::rows;
use crate::{Error, Result};
use holotype::Snapshot;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Items of one request of the list.
const MAX_ITEMS: u64 = 500;
/// Facets of the list, which are attributes with few values.
const FACETS: [&str; 7] = ["layer", "kind", "status", "support", "episode", "source", "active"];
/// Values of a facet, at most.
const MAX_VALUES: usize = 50;
/// Groups of items that have the same value of every facet.
const MAX_GROUPS: u32 = 1_000_000;
/// Events of the overview.
const LAST_EVENTS: usize = 12;

/// The pairs of a query string.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `name=value&…`, percent-decoded.
    pub(crate) fn new(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Query(pairs.collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| Error::Invalid(format!("{name}: expected a whole number, found {text:?}")))
        };
        self.text(name).map(parse).transpose()
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        let hex = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The snapshot as of the commit of a request, if it names one.
fn at(snapshot: &Snapshot, query: &Query) -> Result<Snapshot> {
    match query.number("as_of")? {
        Some(commit) => Ok(snapshot.as_of(commit)?),
        None => Ok(snapshot.clone()),
    }
}

fn table(snapshot: &Snapshot, statement: &str) -> Result<Vec<Value>> {
    rows(snapshot, statement, Params::new())
}

/// Counts, growth, space, head and the last events.
pub(crate) fn overview(snapshot: &Snapshot, query: &Query) -> Result<Value> {
    let newest = snapshot.commit();
    let snapshot = &at(snapshot, query)?;
    Ok(json!({
        "commit": snapshot.commit(),
        "newest": newest,
        "head": table(snapshot, "show head")?.pop(),
        "counts": table(snapshot, "count items by layer, kind, status, support, active")?,
        "growth": table(snapshot, "count items by time every 1d limit 400")?,
        "stats": table(snapshot, "show stats")?,
        "events": last_events(snapshot)?,
    }))
}

/// The last events. Commits are looked at from the end, because sorting all events reads the whole history.
fn last_events(snapshot: &Snapshot) -> Result<Vec<Value>> {
    let newest = snapshot.commit();
    let mut commits = 1;
    loop {
        let after = newest.saturating_sub(commits);
        let statement = format!("find events where commit > {after} order by commit desc limit {LAST_EVENTS}");
        let events = table(snapshot, &statement)?;
        if events.len() >= LAST_EVENTS || after == 0 {
            return Ok(events);
        }
        commits *= 4;
    }
}

/// The condition of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    pairs: Vec<(&'static str, String)>,
}

impl Filter {
    fn new(query: &Query) -> Filter {
        let names = FACETS.into_iter().chain(["q"]);
        Filter { pairs: names.filter_map(|name| Some((name, query.text(name)?.to_owned()))).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn has_search(&self) -> bool {
        self.pairs.iter().any(|(name, _)| *name == "q")
    }

    pub(crate) fn params(&self) -> Params {
        let value = |value: &str| match value {
            "true" => ParamValue::Bool(true),
            "false" => ParamValue::Bool(false),
            value => ParamValue::Text(value.to_owned()),
        };
        let search = |name: &str, text: &str| if name == "q" { ParamValue::Text(text.to_owned()) } else { value(text) };
        self.pairs.iter().map(|(name, text)| ((*name).to_owned(), search(name, text))).collect()
    }
}

/// As a `where`, with a space before it.
impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (nth, (name, _)) in self.pairs.iter().enumerate() {
            f.write_str(if nth == 0 { " where " } else { " and " })?;
            match *name {
                "q" => f.write_str("(text contains $q or key contains $q)")?,
                name => write!(f, "{name} = ${name}")?,
            }
        }
        Ok(())
    }
}

/// A part of the list of items.
pub(crate) fn items(snapshot: &Snapshot, query: &Query, lists: &Lists) -> Result<Value> {
    let skip = query.number("skip")?.unwrap_or(0);
    let limit = query.number("limit")?.unwrap_or(100).clamp(1, MAX_ITEMS);
    lists.part(&at(snapshot, query)?, Filter::new(query), query.number("commit")?, skip, limit)
}

/// The values of the facets in a list, and how many items have each.
pub(crate) fn facets(snapshot: &Snapshot, query: &Query) -> Result<Value> {
    let snapshot = &at(snapshot, query)?;
    let filter = Filter::new(query);
    let names = FACETS.join(", ");
    // A search reads every text, so it is run once and its items counted here.
    let found = if filter.has_search() {
        rows(snapshot, &format!("find items{filter} return {names}"), filter.params())?
    } else {
        rows(snapshot, &format!("count items{filter} by {names} limit {MAX_GROUPS}"), filter.params())?
    };
    let mut facets = serde_json::Map::new();
    for facet in FACETS {
        let mut counts: BTreeMap<String, (Value, u64)> = BTreeMap::new();
        for row in found.iter().filter(|row| !row[facet].is_null()) {
            let value = &row[facet];
            let count = row["count"].as_u64().unwrap_or(1);
            counts.entry(value.to_string()).or_insert_with(|| (value.clone(), 0)).1 += count;
        }
        let mut counts: Vec<(Value, u64)> = counts.into_values().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.truncate(MAX_VALUES);
        let counts = counts.into_iter().map(|(value, count)| json!({ facet: value, "count": count })).collect();
        facets.insert(facet.to_owned(), Value::Array(counts));
    }
    Ok(json!({ "commit": snapshot.commit(), "facets": facets }))
}

/// The story of an item.
pub(crate) fn item(snapshot: &Snapshot, key: &str, query: &Query) -> Result<Value> {
    let snapshot = at(snapshot, query)?;
    let mut story = snapshot.why(key)?.to_json().clone();
    // The texts of direct sources, in which the page shows the cited spans.
    let mut targets = serde_json::Map::new();
    for cited in story["citations"].as_array().into_iter().flatten() {
        let Some(target) = cited["target"].as_str().filter(|target| !targets.contains_key(*target)) else { continue };
        if let Ok(id) = snapshot.item_named(target) {
            targets.insert(target.to_owned(), snapshot.item_to_json(id)?);
        }
    }
    story["targets"] = Value::Object(targets);
    Ok(story)
}

/// The changes between two commits.
pub(crate) fn diff(snapshot: &Snapshot, query: &Query) -> Result<Value> {
    let to = query.number("to")?.unwrap_or(snapshot.commit());
    let from = query.number("from")?.unwrap_or(to.saturating_sub(1));
    Ok(snapshot.diff(from, to)?.to_json().clone())
}

/// Events after a commit, oldest first.
pub(crate) fn events(snapshot: &Snapshot, query: &Query) -> Result<Value> {
    let since = query.number("since")?.unwrap_or(snapshot.commit());
    let params = Params::from([("since".to_owned(), ParamValue::Int(i64::try_from(since).unwrap_or(i64::MAX)))]);
    let events = rows(snapshot, "find events where commit > $since limit 500", params)?;
    Ok(json!({ "commit": snapshot.commit(), "events": events }))
}

/// Statistics, settings, episodes and the largest items; on request, a verification.
pub(crate) fn health(snapshot: &Snapshot, query: &Query) -> Result<Value> {
    let verified = match query.text("verify") {
        Some(_) => Some(table(snapshot, "verify")?),
        None => None,
    };
    Ok(json!({
        "commit": snapshot.commit(),
        "stats": table(snapshot, "show stats")?,
        "settings": table(snapshot, "show settings")?,
        "episodes": table(snapshot, "show episodes")?,
        "largest": table(snapshot, "find items order by tokens desc limit 10 return key, kind, tokens, text")?,
        "unsupported": table(snapshot, "find items where unsupported limit 50 return key, kind, status, text")?,
        "verified": verified,
    }))
}

/// The recall that the laboratory asks: a question and clauses. A snapshot writes nothing, whatever they are.
fn asked(value: &Value) -> Result<(String, Params)> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    if text("question").trim().is_empty() {
        return Err(Error::Invalid("ask a question".to_owned()));
    }
    let params = Params::from([("q".to_owned(), ParamValue::Text(text("question").to_owned()))]);
    Ok((format!("recall $q {}", text("clauses")), params))
}

/// An answer and the steps that led to it.
pub(crate) fn recall(snapshot: &Snapshot, value: &Value) -> Result<Value> {
    let (statement, params) = asked(value)?;
    let answer = match snapshot.query(&statement, &params)?.pop() {
        Some(Output::Answer(answer)) => answer.to_json(None),
        _ => return Err(Error::Invalid("expected a recall".to_owned())),
    };
    let steps = rows(snapshot, &format!("explain analyze {statement}"), params)?;
    Ok(json!({ "statement": statement, "answer": answer, "steps": steps }))
}

/// Why an item is in the answer of a recall, or is not.
pub(crate) fn why(snapshot: &Snapshot, value: &Value) -> Result<Value> {
    let (statement, mut params) = asked(value)?;
    let key = value["key"].as_str().unwrap_or_default();
    params.insert("k".to_owned(), ParamValue::Text(key.to_owned()));
    match snapshot.query(&format!("why $k in {statement}"), &params)?.pop() {
        Some(Output::Table(table)) => Ok(json!({ "rows": table.rows_to_json(), "notes": table.notes })),
        _ => Err(Error::Invalid("expected a table".to_owned())),
    }
}
