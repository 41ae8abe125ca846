//! The views of the page as JSON, each made from one snapshot by statements of the query language.

use crate::funnel::funnel;
use crate::lists::Lists;
use crate::rows::{rows, table};
use crate::{Error, Result};
use holotype::Snapshot;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Items of one request of the list.
const MAX_ITEMS: u64 = 500;
/// Facets of the list: attributes that many items share a value of.
const FACETS: [&str; 8] = ["layer", "kind", "status", "support", "episode", "labels", "source", "active"];
/// The first time of a list, and the first one after it.
const TIMES: [&str; 2] = ["since", "until"];
/// Values of a facet, at most.
const MAX_VALUES: usize = 50;
/// Values of an attribute that are counted.
const MAX_GROUPS: u32 = 1_000_000;
/// Receipts that are listed.
const MAX_RECEIPTS: usize = 50;
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

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
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
        let names = FACETS.into_iter().chain(TIMES).chain(["q"]);
        Filter { pairs: names.filter_map(|name| Some((name, query.text(name)?.to_owned()))).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn has_search(&self) -> bool {
        self.pairs.iter().any(|(name, _)| *name == "q")
    }

    pub(crate) fn params(&self) -> Params {
        let value = |name: &str, text: &str| match (name, text) {
            ("active", "true") => ParamValue::Bool(true),
            ("active", "false") => ParamValue::Bool(false),
            // A day begins at midnight, UTC.
            ("since" | "until", day) if day.len() == 10 => ParamValue::Text(format!("{day}T00:00:00Z")),
            (_, text) => ParamValue::Text(text.to_owned()),
        };
        self.pairs.iter().map(|(name, text)| ((*name).to_owned(), value(name, text))).collect()
    }
}

/// As a `where`, with a space before it.
impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (nth, (name, _)) in self.pairs.iter().enumerate() {
            f.write_str(if nth == 0 { " where " } else { " and " })?;
            match *name {
                "q" => f.write_str("(text contains $q or key contains $q)")?,
                "since" => f.write_str("time >= $since")?,
                "until" => f.write_str("time < $until")?,
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
    // A search reads every text, so it is run once and its items counted here. Few items have labels, and several.
    let found = match filter.has_search() {
        true => rows(snapshot, &format!("find items{filter} return {}", FACETS.join(", ")), filter.params())?,
        false => Vec::new(),
    };
    let labelled = match filter.is_empty() {
        true => "find items where has labels return labels".to_owned(),
        false => format!("find items{filter} and has labels return labels"),
    };
    let mut facets = serde_json::Map::new();
    for facet in FACETS {
        let counted = match (filter.has_search(), facet) {
            (true, _) => found.clone(),
            (false, "labels") => rows(snapshot, &labelled, filter.params())?,
            (false, _) => {
                rows(snapshot, &format!("count items{filter} by {facet} limit {MAX_GROUPS}"), filter.params())?
            }
        };
        facets.insert(facet.to_owned(), Value::Array(values(facet, &counted)));
    }
    Ok(json!({ "commit": snapshot.commit(), "facets": facets }))
}

/// The most frequent values of a facet. An item of several values counts for each.
fn values(facet: &str, found: &[Value]) -> Vec<Value> {
    let mut counts: BTreeMap<String, (Value, u64)> = BTreeMap::new();
    for row in found {
        let count = row["count"].as_u64().unwrap_or(1);
        let of_row = match &row[facet] {
            Value::Null => &[],
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in of_row {
            counts.entry(value.to_string()).or_insert_with(|| (value.clone(), 0)).1 += count;
        }
    }
    let mut counts: Vec<(Value, u64)> = counts.into_values().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.truncate(MAX_VALUES);
    counts.into_iter().map(|(value, count)| json!({ facet: value, "count": count })).collect()
}

/// The story of an item.
pub(crate) fn story(snapshot: &Snapshot, key: &str, query: &Query) -> Result<Value> {
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

/// The recall that the laboratory asks: a question and clauses. A snapshot writes nothing, whatever they are.
pub(crate) fn asked(value: &Value) -> Result<(String, Params)> {
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
    Ok(json!({ "statement": statement, "answer": answer, "funnel": funnel(&steps), "steps": steps }))
}

/// Receipts of answers, newest first.
pub(crate) fn receipts(snapshot: &Snapshot, _query: &Query) -> Result<Value> {
    let statement = format!(
        "find receipts order by commit desc limit {MAX_RECEIPTS} return receipt, commit, time, rows, statement"
    );
    Ok(json!({ "commit": snapshot.commit(), "receipts": table(snapshot, &statement)? }))
}

/// The answer of a receipt, found again as of its commit.
pub(crate) fn replay(snapshot: &Snapshot, value: &Value) -> Result<Value> {
    let receipt = value["receipt"].as_str().unwrap_or_default();
    let params = Params::from([("r".to_owned(), ParamValue::Text(receipt.to_owned()))]);
    match snapshot.query("replay $r", &params)?.pop() {
        Some(Output::Answer(answer)) => {
            let (statement, answer) = (format!("replay {receipt}"), answer.to_json(None));
            Ok(json!({ "statement": statement, "answer": answer, "funnel": [], "steps": [] }))
        }
        _ => Err(Error::Invalid("expected an answer".to_owned())),
    }
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
