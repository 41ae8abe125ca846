//! The roles that read (PlugMem 3.2, 3.3): hop controller, mode chooser and reasoner.

use super::Model;
use crate::prompts::Role;
use crate::reply;
use holotype::answer::Line;
use holotype::{
    Asked, Guidance, HopController, HopDecision, HopView, Mode, ModeChooser, Reasoner, Result, Row, Status,
    parse_guidance, time,
};
use serde_json::{Map, Value, json};

impl HopController for Model {
    fn decide(&self, view: &HopView<'_>) -> Result<HopDecision> {
        let row = |id: &holotype::ItemId| Ok(json!({"id": id.0, "text": view.text(*id)?}));
        let rows: Value = view.rows.iter().map(row).collect::<Result<_>>()?;
        let inputs = json!({
            "question": view.question,
            "hop": view.hop,
            "most_ids": view.carry,
            "facts": rows,
        });
        let reply = self.ask(Role::HopController, &inputs)?;
        reply::object(&reply)?;
        HopDecision::parse(&reply, view)
    }
}

impl ModeChooser for Model {
    fn choose(&self, task: &str, observation: &str) -> Result<Mode> {
        let inputs = json!({"task_description": task, "observation": observation});
        Mode::parse(&self.ask(Role::ModeChooser, &inputs)?)
    }
}

impl Reasoner for Model {
    /// Rows without one are no question for a model: their guidance is empty.
    fn reason(&self, asked: &Asked<'_>, rows: &[Row]) -> Result<Guidance> {
        if rows.is_empty() {
            return Ok(Guidance::default());
        }
        let role = match asked.mode {
            Mode::Episodic => Role::ReasonerEpisodic,
            Mode::Semantic => Role::ReasonerSemantic,
            Mode::Procedural => Role::ReasonerProcedural,
        };
        let information: Value = rows.iter().map(|row| piece(asked, row)).collect::<Result<_>>()?;
        let now = asked.now.map(time::format);
        let inputs = json!({"question": asked.question, "current_time": now, "information": information});
        parse_guidance(&self.ask(role, &inputs)?, asked.mode, rows)
    }
}

/// A row as a reasoner sees it: its text, when and by whom it was said, what was done then, and how well it worked.
fn piece(asked: &Asked<'_>, row: &Row) -> Result<Value> {
    let mut piece = Map::new();
    let mut put = |name: &str, value: Option<Value>| drop(value.map(|value| piece.insert(name.to_owned(), value)));
    put("key", Some(json!(row.key)));
    put("time", row.time.map(|micros| json!(time::format(micros))));
    put("speaker", row.speaker.as_ref().map(|speaker| json!(speaker)));
    put("episode", row.episode.as_ref().map(|episode| json!(episode)));
    put("status", row.status.filter(|status| *status != Status::Unknown).map(|status| json!(status.as_str())));
    put("text", Some(json!(row.text)));
    if let Some(item) = asked.snapshot.map(|snapshot| snapshot.item(row.item)).transpose()? {
        for name in ["state", "action"] {
            put(name, item.content.field_text(name).map(|text| json!(text)));
        }
        put("return_score", item.attributes.return_score.map(|score| json!(score)));
    }
    let line = |line: &Line| json!({"key": line.key, "when": line.label, "text": line.text});
    put("related", (!row.lines.is_empty()).then(|| row.lines.iter().map(line).collect()));
    Ok(Value::Object(piece))
}

#[cfg(test)]
mod tests {
    use holotype::structure::{MergedFact, Reflection};
    use holotype::{Decision, Mode, parse_guidance};
    use proptest::prelude::*;

    proptest! {
        /// The readers of the engine get whatever a model says.
        #[test]
        fn any_reply_is_read_or_refused(reply in any::<String>(), index in any::<i64>()) {
            let _ = (Mode::parse(&reply), MergedFact::parse(&reply), Reflection::parse(&reply, 3));
            let _ = (Decision::parse(&reply), holotype::router::parse_action(&reply));
            for mode in [Mode::Episodic, Mode::Semantic, Mode::Procedural] {
                let _ = parse_guidance(&format!("### Information\n{reply}[x]"), mode, &[]);
                let _ = parse_guidance(&reply, mode, &[]);
            }
            if let Ok(Reflection::Merge(index, text)) = Reflection::parse(&format!("Merge({index}, {reply})"), 3) {
                prop_assert!(index < 3 && !text.is_empty());
            }
        }
    }
}
