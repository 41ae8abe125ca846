//! `slack`: the export of a workspace: `users.json`, and a folder a channel with a file a day.
//!
//! A message is a turn in the episode of its channel; one of a thread names the first as `parent`. `<@U1>` becomes the
//! name of the user.

use super::{elements, first_text, names, text_at};
use crate::entry::{Trace, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use holotype::{Kind, Source};
use serde_json::Value;
use std::collections::HashMap;

const PREFIX: &str = "slack";
/// Files beside the channels.
const LISTS: [&str; 8] = [
    "users.json",
    "org_users.json",
    "channels.json",
    "groups.json",
    "dms.json",
    "mpims.json",
    "integration_logs.json",
    "canvases.json",
];

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let all = names(Format::Slack, files)?;
    let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    let mut users = HashMap::new();
    for name in all.iter().filter(|name| matches!(base(name).as_str(), "users.json" | "org_users.json")) {
        intake.values(files, name, &[], &mut |_, user, _| {
            let profile = &user["profile"];
            let shown =
                [first_text(profile, &["display_name", "real_name"]), first_text(&user, &["real_name", "name"])];
            let shown = shown.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            users.insert(text_at(&user, "id").to_owned(), shown.to_owned());
            Ok(())
        })?;
    }
    for name in all {
        let base = base(name);
        if files.is_collection() && LISTS.contains(&base.as_str()) {
            continue;
        }
        let channel = match name.rsplit('/').nth(1) {
            Some(folder) => folder.to_owned(),
            None => base.trim_end_matches(".json").to_owned(),
        };
        intake.values(files, name, &["messages"], &mut |intake, value, raw| {
            message(intake, &users, &channel, (&value, raw))
        })?;
    }
    Ok(())
}

fn message(
    intake: &mut Intake<'_>,
    users: &HashMap<String, String>,
    channel: &str,
    (value, raw): (&Value, &str),
) -> Result<(), ImportError> {
    intake.count_read();
    let ts = text_at(value, "ts");
    match text_at(value, "type") {
        "message" if !ts.is_empty() => {}
        "message" | "" => {
            intake.bad("got a value without `type` and `ts`, expected a message of Slack");
            return Ok(());
        }
        name => {
            intake.unknown(name);
            return Ok(());
        }
    }
    let time = intake.time_of_text(ts)?;
    let user = text_at(value, "user");
    let names = [users.get(user).map_or("", String::as_str), text_at(&value["user_profile"], "real_name")];
    let speaker = names.into_iter().chain([text_at(value, "username"), user]).find(|name| !name.is_empty());
    let mut text = named(text_at(value, "text"), users);
    for file in elements(value, "files") {
        let name = first_text(file, &["title", "name"]);
        if !name.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&format!("[file {name}]"));
        }
    }
    if text.trim().is_empty() {
        intake.ignore();
        return Ok(());
    }
    let episode = format!("{PREFIX}/{channel}");
    let own = key(&[PREFIX, channel, ts]);
    let subtype = text_at(value, "subtype");
    let is_event = !matches!(subtype, "" | "thread_broadcast" | "me_message" | "file_share" | "bot_message");
    let mut trace = Trace::turn(episode, own, "", text).time(time).raw(raw);
    trace.speaker = speaker.map(str::to_owned);
    if is_event {
        (trace.kind, trace.source) = (Kind::Observation, Source::System);
    } else if subtype == "bot_message" || value.get("bot_id").is_some() {
        trace.source = Source::Tool;
    }
    let thread = text_at(value, "thread_ts");
    if !thread.is_empty() && thread != ts {
        trace = trace.field("parent", key(&[PREFIX, channel, thread]));
    }
    intake.trace(trace)
}

/// The text with names for the ids of users, and signs for their escapes.
fn named(text: &str, users: &HashMap<String, String>) -> String {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<@") {
        named.push_str(before);
        let Some((id, after)) = after.split_once('>') else {
            named.push_str("<@");
            rest = after;
            continue;
        };
        let (id, label) = id.split_once('|').unwrap_or((id, id));
        named.push('@');
        named.push_str(users.get(id).map_or(label, String::as_str));
        rest = after;
    }
    named.push_str(rest);
    named.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named() {
        let users = HashMap::from([("U1".to_owned(), "ana".to_owned())]);
        assert_eq!(named("<@U1>, <@U2|ben> &amp; <@U3", &users), "@ana, @ben & <@U3");
    }
}
