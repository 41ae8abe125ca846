//! `claude`: `conversations.json` of an export of claude.ai, a conversation a value.
//!
//! The text of an attachment is an observation beside its message; a call that a message holds is a call. `parent`
//! names the message before where the export has it, so that branches stay apart.

use super::{elements, first_text, names, text_at, text_or_json, words};
use crate::entry::{Call, Outcome, Trace, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use holotype::Kind;
use serde_json::Value;

const PREFIX: &str = "claude";
/// The parent of a first message.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Claude, files)? {
        intake.values(files, name, &["conversations"], &mut |intake, value, _| conversation(intake, &value))?;
    }
    Ok(())
}

fn conversation(intake: &mut Intake<'_>, value: &Value) -> Result<(), ImportError> {
    let id = text_at(value, "uuid");
    if id.is_empty() || !value["chat_messages"].is_array() {
        intake.count_read();
        intake.bad("got a value without `uuid` and `chat_messages`, expected a conversation of claude.ai");
        return Ok(());
    }
    let episode = format!("{PREFIX}/{id}");
    let title = first_text(value, &["name", "summary"]);
    intake.episode(&episode, Some(title), None)?;
    for (at, message) in elements(value, "chat_messages").iter().enumerate() {
        intake.count_read();
        let uuid = text_at(message, "uuid");
        let name = if uuid.is_empty() { format!("message-{at}") } else { uuid.to_owned() };
        let time = intake.time(&message["created_at"])?;
        Message { id, episode: &episode, name: &name, time, message }.read(intake)?;
    }
    Ok(())
}

struct Message<'m> {
    id: &'m str,
    episode: &'m str,
    name: &'m str,
    time: Option<i64>,
    message: &'m Value,
}

impl Message<'_> {
    fn read(&self, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let message = self.message;
        let content = words(&message["content"]);
        let text = if content.trim().is_empty() { text_at(message, "text").to_owned() } else { content };
        let files = elements(message, "files").iter().chain(elements(message, "attachments"));
        let files: Vec<&str> = files.map(|file| text_at(file, "file_name")).filter(|name| !name.is_empty()).collect();
        let role = match text_at(message, "sender") {
            "human" => "user",
            role => role,
        };
        let key = key(&[PREFIX, self.id, self.name]);
        let parent = text_at(message, "parent_message_uuid");
        let parent = match parent {
            "" | ROOT => String::new(),
            parent => crate::entry::key(&[PREFIX, self.id, parent]),
        };
        if text.trim().is_empty() && files.is_empty() {
            intake.ignore();
        } else {
            let turn = Trace::turn(self.episode, key.clone(), role, text).time(self.time).raw(message.to_string());
            intake.trace(turn.field("parent", parent).field("files", files.join(", ")))?;
        }
        for (at, attachment) in elements(message, "attachments").iter().enumerate() {
            let text = text_at(attachment, "extracted_content");
            if !text.trim().is_empty() {
                let key = format!("{key}/attachment-{at}");
                let document = Trace::new(Kind::Observation, self.episode, key, text).time(self.time);
                intake.trace(document.field("file_name", text_at(attachment, "file_name")))?;
            }
        }
        self.calls(intake, &key)
    }

    /// The calls among the blocks, each followed by its outcome.
    fn calls(&self, intake: &mut Intake<'_>, parent: &str) -> Result<(), ImportError> {
        let blocks = elements(self.message, "content");
        for (at, block) in blocks.iter().enumerate().filter(|(_, block)| text_at(block, "type") == "tool_use") {
            let id = text_at(block, "id");
            let id = if id.is_empty() { format!("{}-{at}", self.name) } else { id.to_owned() };
            let name = text_at(block, "name");
            let is_result = |other: &&Value| {
                text_at(other, "type") == "tool_result"
                    && match text_at(other, "tool_use_id") {
                        "" => text_at(other, "name") == name,
                        of => of == id,
                    }
            };
            let result = blocks[at + 1..].iter().find(is_result);
            let call = Call {
                episode: self.episode.to_owned(),
                key: key(&[PREFIX, self.id, &id]),
                id,
                tool: name.to_owned(),
                arguments: text_or_json(&block["input"]),
                time: self.time,
                raw: Some(block.to_string()),
                fields: vec![("parent".to_owned(), parent.to_owned())],
            };
            let trace = match result {
                Some(result) => {
                    let outcome = Outcome::of_success(result["is_error"] != true);
                    call.ended(outcome, &words(&result["content"]), Some(&result.to_string()))
                }
                None => call.ended(Outcome::Unknown, "", None),
            };
            intake.trace(trace)?;
        }
        Ok(())
    }
}
