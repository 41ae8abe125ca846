//! Items and episodes as resources: `holotype://item/KEY`, `holotype://episode/ID`.
//!
//! A key stands in an address with every byte but ASCII letters, digits and `- . _ ~` written as `%XX`.

use crate::memory::Memory;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::tools::get;
use holotype::Limits;
use holotype::answer::Output;
use holotype::plural::counted;
use holotype::query::Params;
use rmcp::model::{ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

const ITEM: &str = "holotype://item/";
const EPISODE: &str = "holotype://episode/";
/// Episodes on one page of the list.
const PAGE: u64 = 100;

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{ITEM}{{key}}"), "item")
            .with_title("An item of memory")
            .with_description("One item with its evidence, by its key")
            .with_mime_type("text/plain"),
        ResourceTemplate::new(format!("{EPISODE}{{id}}"), "episode")
            .with_title("An episode of memory")
            .with_description("What happened in one session, in order")
            .with_mime_type("text/plain"),
    ]
}

/// One page of episodes.
pub(crate) fn list(memory: &Memory, limits: &Limits, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let skip = match cursor.map(str::parse::<u64>) {
        None => 0,
        Some(Ok(skip)) => skip,
        Some(Err(_)) => return Err(ErrorData::invalid_params("the cursor is not one that this list gave", None)),
    };
    let rows = episodes(memory, limits, skip).map_err(internal)?;
    let more = rows.len() as u64 == PAGE;
    let resource = |row: &Value| {
        let id = row.get("episode")?.as_str()?;
        let traces = row.get("traces").and_then(Value::as_u64).unwrap_or(0);
        let resource = Resource::new(format!("{EPISODE}{}", encoded(id)), id);
        Some(resource.with_description(counted(traces, "events")).with_mime_type("text/plain"))
    };
    let mut list = ListResourcesResult::with_all_items(rows.iter().filter_map(resource).collect());
    list.next_cursor = more.then(|| (skip + PAGE).to_string());
    Ok(list)
}

fn episodes(memory: &Memory, limits: &Limits, skip: u64) -> Result<Vec<Value>, Problem> {
    let snapshot = memory.snapshot(limits)?;
    let outputs = snapshot.query(&format!("find episodes limit {PAGE} skip {skip}"), &Params::new())?;
    Ok(match outputs.first() {
        Some(Output::Table(table)) => table.rows_to_json(),
        _ => Vec::new(),
    })
}

/// The resource at an address, as the tool `get` tells it.
pub(crate) fn read(memory: &Memory, limits: &Limits, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = |text: String| ErrorData::resource_not_found(text, Some(serde_json::json!({ "uri": uri })));
    let named = |prefix: &str| uri.strip_prefix(prefix).map(|name| decoded(name).filter(|name| !name.is_empty()));
    let reply: Result<Reply, Problem> = match (named(ITEM), named(EPISODE)) {
        (Some(Some(key)), _) => get::one(memory, limits, &key, 0),
        (_, Some(Some(id))) => get::episode_of(memory, limits, &id, 0),
        _ => {
            let forms = format!("there are only {ITEM}KEY and {EPISODE}ID, with other characters as %XX");
            return Err(missing(format!("{} is no resource; {forms}", crate::quoting::quoted(uri, 200))));
        }
    };
    let drawn = reply.map_err(|problem| missing(problem.text()))?.draw(memory.answer_limit);
    Ok(ReadResourceResult::new(vec![ResourceContents::text(drawn.text, uri)]))
}

fn internal(problem: Problem) -> ErrorData {
    ErrorData::internal_error(problem.text(), None)
}

fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The name that an address says; `None` if it is not UTF-8 or a `%` has no two digits behind it.
fn decoded(address: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_an_address() {
        for name in ["t1", "a/b c%", "日本 ~2.4", "#12", "\u{1}"] {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name));
        }
        assert_eq!(decoded("a/b"), Some("a/b".to_owned()));
        for wrong in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
