//! `server-memory`: the file of the MCP server `memory`, a line an entity or a relation.
//!
//! An observation is a fact about its entity, a relation a fact with its type kept; both mention the concepts they are
//! about. They rest on nothing but themselves, so they are ungrounded unless a trace holds the observation's words.

use super::{elements, names, text_at};
use crate::entry::{Fact, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use serde_json::Value;

const PREFIX: &str = "server-memory";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::ServerMemory, files)? {
        // `mcpServers` may keep the graph as one object, too.
        intake.values(files, name, &["entities", "relations"], &mut |intake, value, raw| line(intake, &value, raw))?;
    }
    Ok(())
}

fn line(intake: &mut Intake<'_>, value: &Value, raw: &str) -> Result<(), ImportError> {
    intake.count_read();
    match text_at(value, "type") {
        "entity" => entity(intake, value, raw),
        "relation" => relation(intake, value, raw),
        "" if value.get("observations").is_some() => entity(intake, value, raw),
        "" if value.get("relationType").is_some() => relation(intake, value, raw),
        "" => {
            intake.bad("got a line without `type`, expected an entity or a relation");
            Ok(())
        }
        name => {
            intake.unknown(name);
            Ok(())
        }
    }
}

fn entity(intake: &mut Intake<'_>, value: &Value, raw: &str) -> Result<(), ImportError> {
    let name = text_at(value, "name");
    if name.is_empty() {
        intake.bad("got an entity without `name`, expected a text");
        return Ok(());
    }
    let about = |text: String, key: String, quote: &str| {
        let mut fact = Fact::new(key, text).episode(PREFIX);
        fact.quote = quote.to_owned();
        fact.mentions = vec![name.to_owned()];
        fact
    };
    let kind = text_at(value, "entityType");
    let mut whole = about(format!("{name}: {kind}"), key(&[PREFIX, "entity", name]), "");
    whole.raw = Some(raw.to_owned());
    intake.fact(whole)?;
    for observation in elements(value, "observations") {
        // Some forks keep objects with a time.
        let (text, time) = match observation {
            Value::String(text) => (text.as_str(), None),
            other => {
                let text = super::first_text(other, &["content", "text"]);
                (text, super::first_text(other, &["timestamp", "createdAt", "created_at"]).into())
            }
        };
        if text.trim().is_empty() {
            intake.ignore();
            continue;
        }
        let time = intake.time_of_text(time.unwrap_or_default())?;
        let key = key(&[PREFIX, name, &hash(text)]);
        intake.fact(about(format!("{name}: {text}"), key, text).time(time))?;
    }
    Ok(())
}

fn relation(intake: &mut Intake<'_>, value: &Value, raw: &str) -> Result<(), ImportError> {
    let (from, to, kind) = (text_at(value, "from"), text_at(value, "to"), text_at(value, "relationType"));
    if from.is_empty() || to.is_empty() || kind.is_empty() {
        intake.bad("got a relation without `from`, `to` or `relationType`, expected all three");
        return Ok(());
    }
    let mut fact = Fact::new(key(&[PREFIX, from, kind, to]), format!("{from} {kind} {to}")).episode(PREFIX);
    fact.mentions = vec![from.to_owned(), to.to_owned()];
    fact.mentions.dedup();
    intake.fact(fact.raw(raw))
}
