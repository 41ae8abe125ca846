//! `mif`: documents of the Memory Interchange Format, version 2: an object with `memories`, each of which has an `id`,
//! a `content` and a `created_at`.
//!
//! Each memory is a fact in the episode of its session, or of its agent. It is ungrounded unless a trace holds its
//! words.

use super::{elements, names, text_at};
use crate::entry::{Fact, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use serde_json::Value;

const PREFIX: &str = "mif";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Mif, files)? {
        intake.values(files, name, &["memories"], &mut |intake, value, raw| memory(intake, &value, raw))?;
    }
    Ok(())
}

fn memory(intake: &mut Intake<'_>, value: &Value, raw: &str) -> Result<(), ImportError> {
    intake.count_read();
    let text = text_at(value, "content");
    if text.is_empty() {
        intake.bad("got a value without `content`, expected a memory of MIF");
        return Ok(());
    }
    let id = match text_at(value, "id") {
        "" => hash(text),
        id => id.to_owned(),
    };
    let time = match intake.time(&value["updated_at"])? {
        Some(time) => Some(time),
        None => intake.time(&value["created_at"])?,
    };
    let mut fact = Fact::new(key(&[PREFIX, &id]), text).time(time).raw(raw);
    for entity in elements(value, "entities") {
        let name = entity.as_str().unwrap_or_else(|| text_at(entity, "name"));
        if !name.is_empty() && !fact.mentions.iter().any(|known| known == name) {
            fact.mentions.push(name.to_owned());
        }
    }
    let scopes = [text_at(value, "agent_id"), text_at(&value["source"], "session_id")];
    let episode: Vec<&str> =
        std::iter::once(PREFIX).chain(scopes.into_iter().filter(|scope| !scope.is_empty())).collect();
    intake.fact(fact.episode(episode.join("/")))
}
