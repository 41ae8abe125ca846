//! The page `docs/mcp.md` keeps its promises: its configurations start the server, its tables are the server's.

use super::client::Session;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/mcp.md");

/// The fenced blocks of a language.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    PAGE.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
}

/// The names in backquotes of a cell.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_configuration_starts_the_server() {
    let mut commands = Vec::new();
    for block in blocks("json") {
        let config: Value = serde_json::from_str(&block).unwrap();
        commands.push(config["mcpServers"]["holotype"].clone());
    }
    for block in blocks("toml") {
        assert!(block.starts_with("[mcp_servers.holotype]\n"), "{block}");
        let value = |name: &str| -> Value {
            let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name} = "))).unwrap();
            serde_json::from_str(line).unwrap()
        };
        commands.push(json!({"command": value("command"), "args": value("args")}));
    }
    assert_eq!(commands.len(), 2);
    for command in commands {
        assert_eq!(command, json!({"command": "holotype", "args": ["mcp"]}));
    }
    assert_eq!(PAGE.matches("mcp add holotype -- holotype mcp").count(), 2);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".holotype")).unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.initialize("2025-11-25", json!({}));
    session.record(json!({"text": "hello", "source": "user"}));
    session.end();
    assert!(dir.path().join(".holotype/memory.holo").is_dir());
}

#[test]
fn the_table_of_tools_is_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let list = session.request("tools/list", json!({}))["result"]["tools"].clone();
    for tool in list.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("the page has no row for {name}"));
        let documented = names(row.split('|').nth(2).unwrap());
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        let own: BTreeSet<String> = properties.keys().cloned().collect();
        assert_eq!(documented, own, "{name}");
    }
    let prompts = session.request("prompts/list", json!({}))["result"]["prompts"].clone();
    assert!(PAGE.contains(&format!("`{}`", prompts[0]["name"].as_str().unwrap())));
}

#[test]
fn limits_are_those_of_the_page() {
    let thousands = |number: usize| format!("{},{:03}", number / 1_000, number % 1_000);
    for (limit, unit) in [
        (holotype_mcp::LIST_BYTES, "bytes"),
        (holotype_mcp::INSTRUCTIONS_BYTES, "bytes"),
        (holotype_mcp::ANSWER_LIMIT, "when not said"),
    ] {
        let said = format!("{} {unit}", thousands(limit));
        assert!(PAGE.contains(&said), "{said}");
    }
    assert!(PAGE.contains(holotype_mcp::DEFAULT_ADDRESS));
}
