//! The roles that read (PlugMem 3.2, 3.3): hop controller, mode chooser and reasoner.

use super::Model;
use crate::prompts::Role;
use crate::reply;
use holotype::{
    Guidance, HopController, HopDecision, HopView, Mode, ModeChooser, Reasoner, Result, Row, parse_guidance,
};
use serde_json::{Value, json};

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
    fn reason(&self, question: &str, mode: Mode, rows: &[Row]) -> Result<Guidance> {
        if rows.is_empty() {
            return Ok(Guidance::default());
        }
        let role = match mode {
            Mode::Episodic => Role::ReasonerEpisodic,
            Mode::Semantic => Role::ReasonerSemantic,
            Mode::Procedural => Role::ReasonerProcedural,
        };
        let row = |row: &Row| json!({"key": row.key, "text": row.text});
        let inputs = json!({"question": question, "information": rows.iter().map(row).collect::<Value>()});
        parse_guidance(&self.ask(role, &inputs)?, mode, rows)
    }
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
