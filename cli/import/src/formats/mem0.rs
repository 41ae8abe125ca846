//! `mem0`: memories as `get_all` gives them, in `results`, in an array, or one a line.
//!
//! Each is a fact in the episode of its user, agent and run. It is ungrounded unless a trace holds its words.

use super::{first_text, names, text_at};
use crate::entry::{Fact, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use serde_json::Value;

const PREFIX: &str = "mem0";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Mem0, files)? {
        let wanted = ["results", "memories", "relations"];
        intake.values(files, name, &wanted, &mut |intake, value, raw| memory(intake, &value, raw))?;
    }
    Ok(())
}

fn memory(intake: &mut Intake<'_>, value: &Value, raw: &str) -> Result<(), ImportError> {
    intake.count_read();
    let text = first_text(value, &["memory", "data", "text"]);
    if text.is_empty() {
        let (from, to) = (text_at(value, "source"), first_text(value, &["destination", "target"]));
        let kind = text_at(value, "relationship");
        if from.is_empty() || to.is_empty() || kind.is_empty() {
            intake.bad("got a value without `memory`, expected a memory of Mem0");
            return Ok(());
        }
        let mut fact = Fact::new(key(&[PREFIX, from, kind, to]), format!("{from} {kind} {to}")).raw(raw);
        fact.mentions = vec![from.to_owned(), to.to_owned()];
        fact.mentions.dedup();
        return intake.fact(fact.episode(PREFIX));
    }
    let id = text_at(value, "id");
    let id = if id.is_empty() { hash(text) } else { id.to_owned() };
    let time = match intake.time(&value["updated_at"])? {
        Some(time) => Some(time),
        None => intake.time(&value["created_at"])?,
    };
    let scopes = ["user_id", "agent_id", "run_id"].map(|name| text_at(value, name));
    let scopes = scopes.into_iter().filter(|scope| !scope.is_empty());
    let episode: Vec<&str> = std::iter::once(PREFIX).chain(scopes).collect();
    intake.fact(Fact::new(key(&[PREFIX, &id]), text).time(time).episode(episode.join("/")).raw(raw))
}
