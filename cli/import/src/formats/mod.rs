//! One reader a format: from the shapes that other programs publish to traces and facts.

mod chatgpt;
mod claude;
mod claude_code;
mod codex;
mod csv;
#[cfg(feature = "langgraph")]
mod langgraph;
mod letta;
mod markdown;
mod mem0;
mod messages;
mod mif;
#[cfg(feature = "parquet")]
mod parquet;
mod server_memory;
mod slack;
mod table;
mod whatsapp;

use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use serde_json::Value;

/// Reads files of a format.
pub(crate) fn read(format: Format, files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    match format {
        Format::ClaudeCode => claude_code::read(files, intake),
        Format::Codex => codex::read(files, intake),
        Format::Chatgpt => chatgpt::read(files, intake),
        Format::Claude => claude::read(files, intake),
        Format::Openai | Format::Anthropic => messages::read(format, files, intake),
        Format::ServerMemory => server_memory::read(files, intake),
        Format::Mem0 => mem0::read(files, intake),
        Format::Mif => mif::read(files, intake),
        #[cfg(feature = "langgraph")]
        Format::Langgraph => langgraph::read(files, intake),
        Format::Letta => letta::read(files, intake),
        Format::Markdown => markdown::read(files, intake),
        Format::Csv => csv::read(files, intake),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::read(files, intake),
        Format::Whatsapp => whatsapp::read(files, intake),
        Format::Slack => slack::read(files, intake),
        #[cfg(not(all(feature = "langgraph", feature = "parquet")))]
        Format::Langgraph | Format::Parquet => Err(ImportError::Feature { format }),
    }
}

/// The names of the files of a format: the only file, or those of a folder or ZIP by their names.
fn names(format: Format, files: &Files) -> Result<Vec<&str>, ImportError> {
    let all = files.names().iter().map(String::as_str);
    let names: Vec<&str> = all.filter(|name| !files.is_collection() || format.takes(name)).collect();
    if names.is_empty() {
        let message = format!("no file of {} is named as those of {format} are", files.shown(""));
        return Err(ImportError::Option(message));
    }
    Ok(names)
}

/// The text of a member; empty if it is none.
fn text_at<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The first member with a text that is not empty.
fn first_text<'v>(value: &'v Value, names: &[&str]) -> &'v str {
    names.iter().map(|name| text_at(value, name)).find(|text| !text.is_empty()).unwrap_or_default()
}

/// The elements of a member; none if it is no array.
fn elements<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text, or a value as JSON.
fn text_or_json(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The words of a message's content: a text, or blocks of which those without words are named. Calls, their outcomes
/// and thoughts are none.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let words: Vec<String> = blocks.iter().filter_map(block).filter(|text| !text.is_empty()).collect();
            words.join("\n")
        }
        Value::Object(_) => block(content).unwrap_or_default(),
        _ => String::new(),
    }
}

fn block(block: &Value) -> Option<String> {
    let text = || first_text(block, &["text", "content"]).to_owned();
    Some(match block {
        Value::String(text) => text.clone(),
        _ => match text_at(block, "type") {
            "text" | "input_text" | "output_text" | "" => text(),
            "refusal" => text_at(block, "refusal").to_owned(),
            "image" | "image_url" | "input_image" => "[image]".to_owned(),
            "audio" | "input_audio" => match first_text(block, &["transcript", "text"]) {
                "" => "[audio]".to_owned(),
                transcript => transcript.to_owned(),
            },
            "document" | "file" | "input_file" => {
                let title = first_text(block, &["title", "file_name", "filename"]);
                let title = if title.is_empty() { text_at(&block["file"], "filename") } else { title };
                format!("[document {title}]").replace(" ]", "]")
            }
            _ => return None,
        },
    })
}
