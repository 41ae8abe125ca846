//! `chatgpt`: `conversations.json` of an export, a conversation a value, each a tree of messages.
//!
//! The path from `current_node` to the root is the conversation, in one episode. Every other leaf is a branch: what
//! only it has is an episode of its own, whose messages name the one before as `parent`. A message to a tool is a call,
//! and the tool's message its outcome. What the product itself remembered of the user is a fact.

use super::{elements, names, text_at, words};
use crate::entry::{Call, Fact, Outcome, Trace, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use holotype::{Kind, Source};
use serde_json::{Map, Value};
use std::collections::HashSet;

const PREFIX: &str = "chatgpt";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Chatgpt, files)? {
        intake.values(files, name, &["conversations"], &mut |intake, value, _| conversation(intake, &value))?;
    }
    Ok(())
}

fn conversation(intake: &mut Intake<'_>, value: &Value) -> Result<(), ImportError> {
    let Some(mapping) = value.get("mapping").and_then(Value::as_object) else {
        intake.count_read();
        intake.bad("got a value without `mapping`, expected a conversation of ChatGPT");
        return Ok(());
    };
    let id = super::first_text(value, &["conversation_id", "id"]);
    let id = if id.is_empty() { hash(&value.to_string()) } else { id.to_owned() };
    let episode = format!("{PREFIX}/{id}");
    intake.episode(&episode, Some(text_at(value, "title")), None)?;
    let mut seen = HashSet::new();
    let main = path(mapping, current(value, mapping), &mut seen);
    Branch::new(&id, episode.clone()).read(intake, mapping, &main)?;
    let leaves = mapping.iter().filter(|(_, node)| elements(node, "children").is_empty()).map(|(name, _)| name);
    // Nodes of a circle have no leaf; each is a branch, so that nothing is lost.
    for leaf in leaves.chain(mapping.keys()) {
        if !seen.contains(leaf.as_str()) {
            let nodes = path(mapping, leaf, &mut seen);
            Branch::new(&id, format!("{episode}/branch-{leaf}")).read(intake, mapping, &nodes)?;
        }
    }
    Ok(())
}

/// The newest node, or the last leaf if the export names none.
fn current<'v>(value: &'v Value, mapping: &'v Map<String, Value>) -> &'v str {
    let stated = text_at(value, "current_node");
    if mapping.contains_key(stated) {
        return stated;
    }
    let mut leaves = mapping.iter().filter(|(_, node)| elements(node, "children").is_empty());
    leaves.next_back().map_or("", |(name, _)| name.as_str())
}

/// The nodes from the first one that is not seen yet to a leaf.
fn path<'m>(mapping: &'m Map<String, Value>, leaf: &str, seen: &mut HashSet<&'m str>) -> Vec<&'m str> {
    let mut nodes = Vec::new();
    let mut next = mapping.get_key_value(leaf);
    while let Some((name, node)) = next.filter(|(name, _)| seen.insert(name.as_str())) {
        nodes.push(name.as_str());
        next = mapping.get_key_value(text_at(node, "parent"));
    }
    nodes.reverse();
    nodes
}

/// A path of the tree.
struct Branch<'b> {
    id: &'b str,
    episode: String,
    pending: Option<(Call, Outcome)>,
}

/// A message with its node.
struct Message<'m> {
    name: &'m str,
    parent: Option<String>,
    message: &'m Value,
    content: &'m Value,
    time: Option<i64>,
    raw: String,
}

impl<'b> Branch<'b> {
    fn new(id: &'b str, episode: String) -> Branch<'b> {
        Branch { id, episode, pending: None }
    }

    fn read(
        mut self,
        intake: &mut Intake<'_>,
        mapping: &Map<String, Value>,
        nodes: &[&str],
    ) -> Result<(), ImportError> {
        for name in nodes {
            let Some(node) = mapping.get(*name) else { continue };
            let message = &node["message"];
            if !message.is_object() {
                continue;
            }
            intake.count_read();
            let time = intake.time(&message["create_time"])?;
            let parent = text_at(node, "parent");
            let spoken = mapping.get(parent).is_some_and(|parent| parent["message"].is_object());
            let parent = spoken.then(|| self.key(parent));
            let (content, raw) = (&message["content"], message.to_string());
            self.message(intake, Message { name, parent, message, content, time, raw })?;
        }
        self.settle(intake, "", None)
    }

    fn key(&self, name: &str) -> String {
        key(&[PREFIX, self.id, name])
    }

    fn message(&mut self, intake: &mut Intake<'_>, it: Message<'_>) -> Result<(), ImportError> {
        let metadata = &it.message["metadata"];
        let kind = text_at(it.content, "content_type");
        let author = &it.message["author"];
        let role = text_at(author, "role");
        if kind == "model_editable_context" {
            return self.remembered(intake, it);
        }
        let is_hidden = metadata["is_visually_hidden_from_conversation"] == true;
        let is_inner = matches!(kind, "thoughts" | "reasoning_recap" | "user_editable_context" | "app_pairing_content");
        let Some(text) = text_of(kind, it.content) else {
            intake.unknown(&format!("content_type {kind}"));
            return Ok(());
        };
        if is_hidden || is_inner || text.trim().is_empty() {
            intake.ignore();
            return Ok(());
        }
        if role == "tool" {
            let stated = match text_at(&metadata["aggregate_result"], "status") {
                "" => None,
                status => Some(Outcome::of_success(status == "success")),
            };
            if self.pending.is_some() {
                return self.settle(intake, &text, Some((stated, it.raw.as_str())));
            }
            let tool = if text_at(author, "name").is_empty() { "tool" } else { text_at(author, "name") };
            let mut trace = Trace::new(Kind::Observation, self.episode.clone(), self.key(it.name), text);
            trace.tool = Some(tool.to_owned());
            return intake.trace(it.complete(trace.source(Source::Tool)));
        }
        self.settle(intake, "", None)?;
        let recipient = text_at(it.message, "recipient");
        if role == "assistant" && !matches!(recipient, "" | "all") {
            let outcome = match text_at(it.message, "status") {
                "finished_successfully" => Outcome::Success,
                "in_progress" => Outcome::Interrupted,
                _ => Outcome::Unknown,
            };
            let call = Call {
                episode: self.episode.clone(),
                key: self.key(it.name),
                id: it.name.to_owned(),
                tool: recipient.to_owned(),
                arguments: text,
                time: it.time,
                raw: Some(it.raw),
                fields: it.parent.into_iter().map(|parent| ("parent".to_owned(), parent)).collect(),
            };
            self.pending = Some((call, outcome));
            return Ok(());
        }
        let turn = Trace::turn(self.episode.clone(), self.key(it.name), role, text);
        intake.trace(it.complete(turn))
    }

    /// Writes the call that waits, with its outcome if there is one.
    fn settle(
        &mut self,
        intake: &mut Intake<'_>,
        text: &str,
        ended: Option<(Option<Outcome>, &str)>,
    ) -> Result<(), ImportError> {
        let Some((call, outcome)) = self.pending.take() else { return Ok(()) };
        let (outcome, raw) = match ended {
            Some((stated, raw)) => (stated.unwrap_or(outcome), Some(raw)),
            // That a call was written says nothing of its outcome.
            None if outcome == Outcome::Interrupted => (outcome, None),
            None => (Outcome::Unknown, None),
        };
        intake.trace(call.ended(outcome, text, raw))
    }

    /// The product's own memory of the user.
    fn remembered(&self, intake: &mut Intake<'_>, it: Message<'_>) -> Result<(), ImportError> {
        let text = text_at(it.content, "model_set_context");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut fact = Fact::new(key(&[PREFIX, "memory", &hash(line)]), line.trim()).time(it.time);
            // `1. [2026-01-05]. The user plays the viola.`
            fact.quote = line.rsplit("]. ").next().unwrap_or(line).to_owned();
            intake.fact(fact.raw(line).episode(format!("{PREFIX}/memory")))?;
        }
        Ok(())
    }
}

impl Message<'_> {
    fn complete(self, trace: Trace) -> Trace {
        trace.field("parent", self.parent.unwrap_or_default()).time(self.time).raw(self.raw)
    }
}

/// The text of a content; `None` if its type is unknown and has no text.
fn text_of(kind: &str, content: &Value) -> Option<String> {
    Some(match kind {
        "text" | "multimodal_text" => {
            let parts: Vec<String> = elements(content, "parts").iter().filter_map(part).collect();
            parts.join("\n")
        }
        "code" | "execution_output" => text_at(content, "text").to_owned(),
        "tether_quote" => {
            let parts = [text_at(content, "title"), text_at(content, "url"), text_at(content, "text")];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
        }
        "tether_browsing_display" => text_at(content, "result").to_owned(),
        "system_error" => text_at(content, "text").to_owned(),
        "thoughts" | "reasoning_recap" | "user_editable_context" | "app_pairing_content" => String::new(),
        _ => {
            let text = if content.get("parts").is_some() { words(&content["parts"]) } else { words(content) };
            return Some(text).filter(|text| !text.is_empty());
        }
    })
}

fn part(part: &Value) -> Option<String> {
    match part {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Object(_) => match text_at(part, "content_type") {
            "image_asset_pointer" => Some("[image]".to_owned()),
            "audio_transcription" => Some(text_at(part, "text").to_owned()),
            "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer" => None,
            _ => Some(words(part)).filter(|text| !text.is_empty()),
        },
        _ => None,
    }
}
