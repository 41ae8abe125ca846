//! Merging entries into a text of settings, JSON with comments or TOML: everything else keeps its bytes.

use super::settings::{Put, Setting};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table};

/// The byte order mark that some editors write.
const BOM: char = '\u{feff}';

/// The text with the entries of a setting; the same text if it has them.
///
/// # Errors
/// A sentence, if the text cannot be read or has something else where an entry belongs.
pub(super) fn into(text: &str, setting: &Setting) -> Result<String, String> {
    match setting.path.ends_with(".toml") {
        true => into_toml(text, &setting.puts),
        false => into_json(text, &setting.puts),
    }
}

fn into_json(text: &str, puts: &[Put]) -> Result<String, String> {
    let (mark, text) = text.strip_prefix(BOM).map_or(("", text), |rest| ("\u{feff}", rest));
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| format!("it is no JSON: {error}; correct it first"))?;
    let is_new = root.value().is_none();
    let object = root.object_value_or_create().ok_or("it holds no JSON object; correct it first")?;
    for put in puts {
        put_json(&object, put)?;
    }
    let end = if is_new && !root.to_string().ends_with('\n') { "\n" } else { "" };
    Ok(format!("{mark}{root}{end}"))
}

fn put_json(object: &CstObject, put: &Put) -> Result<(), String> {
    let (path, value) = match put {
        Put::Default { path, value } | Put::Member { path, value } | Put::Element { path, value, .. } => (path, value),
    };
    let Some((last, above)) = path.split_last() else { return Ok(()) };
    let mut object = object.clone();
    for name in above {
        object = object.object_value_or_create(name).ok_or_else(|| unexpected(name, "an object"))?;
    }
    match put {
        Put::Default { .. } => {
            if object.get(last).is_none() {
                object.append(last, input(value));
            }
        }
        Put::Member { .. } => match object.get(last) {
            None => {
                object.append(last, input(value));
            }
            Some(member) => {
                let stored = member.value().and_then(|stored| parsed(&stored.to_string()));
                if stored.as_ref() != Some(value) {
                    member.set_value(input(value));
                }
            }
        },
        Put::Element { known_by, .. } => {
            let array = object.array_value_or_create(last).ok_or_else(|| unexpected(last, "an array"))?;
            let own = array.elements().into_iter().find(|element| element.to_string().contains(known_by.as_str()));
            match own {
                // One that names the program differently is the same entry, as the user has it.
                Some(_) => {}
                None => {
                    array.ensure_multiline();
                    array.append(input(value));
                }
            }
        }
    }
    Ok(())
}

fn unexpected(name: &str, expected: &str) -> String {
    format!("`{name}` is expected to be {expected}, and is something else; correct it first")
}

/// The value of a text of JSON, which may have comments.
fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

fn into_toml(text: &str, puts: &[Put]) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error| format!("it is no TOML: {error}; correct it first"))?;
    let before = document.to_string();
    for put in puts {
        let Put::Member { path, value } = put else { continue };
        let Some((last, above)) = path.split_last() else { continue };
        let mut table = document.as_table_mut();
        for name in above {
            let new = || {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            };
            let item = table.entry(name).or_insert_with(new);
            table = item.as_table_mut().ok_or_else(|| unexpected(name, "a table"))?;
        }
        let item = table.entry(last).or_insert_with(|| Item::Table(Table::new()));
        let own = item.as_table_mut().ok_or_else(|| unexpected(last, "a table"))?;
        for (name, value) in value.as_object().into_iter().flatten() {
            put_toml(own, name, value);
        }
    }
    let after = document.to_string();
    // A text that the library would write differently keeps its bytes if it lacks nothing.
    Ok(if after == before { text.to_owned() } else { after })
}

fn put_toml(table: &mut Table, name: &str, value: &Value) {
    let texts = |values: &[Value]| values.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect();
    match value {
        Value::String(text) if table.get(name).and_then(Item::as_str) != Some(text) => {
            table[name] = toml_edit::value(text.as_str());
        }
        Value::Array(values) => {
            let wanted: Vec<String> = texts(values);
            let stored = table.get(name).and_then(Item::as_array);
            let stored: Option<Vec<&str>> = stored.map(|stored| stored.iter().filter_map(|it| it.as_str()).collect());
            if stored.is_none_or(|stored| stored != wanted) {
                table[name] = toml_edit::value(wanted.into_iter().collect::<Array>());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn element(event: &'static str) -> Put {
        Put::Element {
            path: vec!["hooks", event],
            value: json!({"command": "holotype hook --for cursor"}),
            known_by: "hook --for cursor".to_owned(),
        }
    }

    #[test]
    fn foreign_entries_comments_and_order_stay() {
        let text = "{\r\n  // mine\r\n  \"model\": \"x\", /* and this */\r\n  \"hooks\": {\r\n    \
                    \"stop\": [{\"command\": \"other\"}]\r\n  }\r\n}\r\n";
        let puts = [element("stop"), element("preCompact"), Put::Default { path: vec!["version"], value: json!(1) }];
        let merged = into_json(text, &puts).unwrap();
        for kept in ["// mine", "\"model\": \"x\", /* and this */", "{\"command\": \"other\"}"] {
            assert!(merged.contains(kept), "{merged}");
        }
        assert_eq!(merged.matches("hook --for cursor").count(), 2, "{merged}");
        assert_eq!(into_json(&merged, &puts).unwrap(), merged, "a second run changes nothing");
    }

    #[test]
    fn what_stands_in_the_way_is_an_error() {
        for text in ["[1]", "{\"hooks\": 1}", "{\"hooks\": {\"stop\": {}}}", "{\"hooks\": "] {
            assert!(into_json(text, &[element("stop")]).is_err(), "{text}");
        }
        assert!(into_toml("mcp_servers = 1", &[server()]).is_err());
        assert!(into_toml("[", &[server()]).is_err());
    }

    fn server() -> Put {
        Put::Member { path: vec!["mcp_servers", "holotype"], value: json!({"command": "holotype", "args": ["mcp"]}) }
    }

    #[test]
    fn a_table_of_toml_is_added_once() {
        let text = "# mine\nmodel = 'x' # why\n\n[mcp_servers.other]\ncommand = \"o\"\n";
        let merged = into_toml(text, &[server()]).unwrap();
        assert_eq!(merged, format!("{text}\n[mcp_servers.holotype]\ncommand = \"holotype\"\nargs = [\"mcp\"]\n"));
        assert_eq!(into_toml(&merged, &[server()]).unwrap(), merged);
    }
}
