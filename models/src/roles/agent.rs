//! The roles of an agent's loop (HELM 3.3, A.8; HiMPO D.1): generator, controller and corruptor.

use super::Model;
use crate::failure::Failure;
use crate::prompts::Role;
use crate::reply::{self, Members};
use holotype::credit::{Corrupted, Corruptor};
use holotype::{Controller, Decision, Generator, Result, StepView};
use serde_json::json;
use std::collections::HashMap;

impl Generator for Model {
    /// The prompt of a cited recall goes as it is; the engine checks every citation of the reply.
    fn generate(&mut self, prompt: &str) -> std::result::Result<String, String> {
        self.say(Role::Generator, prompt).map_err(|failure| failure.to_string())
    }
}

impl Controller for Model {
    fn decide(&mut self, view: &StepView<'_>) -> Result<Decision> {
        let inputs = json!({
            "step": view.step,
            "request": view.request,
            "observation": view.observation,
            "novelty": view.novelty,
            "last_read": view.last_read,
            "tokens_left": view.tokens_left,
            "consolidations_left": view.consolidations_left,
            "items": view.items,
            "most_items": view.limits.items,
        });
        let reply = self.ask(Role::Controller, &inputs)?;
        reply::object(&reply)?;
        Decision::parse(&reply)
    }
}

impl Corruptor for Model {
    fn corrupt(&self, passage: &str, outcome: &str) -> Result<Option<Corrupted>> {
        let reply = self.ask(Role::Corruptor, &json!({"passage": passage, "outcome": outcome}))?;
        Ok(corrupted(&reply, passage)?)
    }
}

/// The wrong passage of a reply; the words it says it replaced must stand in the right one.
fn corrupted(reply: &str, right: &str) -> Result<Option<Corrupted>, Failure> {
    let mut members = Members::of(reply)?;
    let passage = members.text("passage")?;
    let mut replaced = HashMap::new();
    let words: Vec<String> = words(right).collect();
    for value in members.list("replaced")? {
        let mut pair = members.inner(value, "replaced")?;
        let (word, by) = (pair.stated("word")?.to_lowercase(), pair.stated("by")?);
        pair.end()?;
        if !words.contains(&word) {
            return Err(members.refused(format!("replaces {word:?}, which is no word of the passage")));
        }
        replaced.insert(word, by);
    }
    let Some(passage) = passage else { return members.end().map(|()| None) };
    if passage == right.trim() || replaced.is_empty() {
        return Err(members.refused("changes nothing"));
    }
    members.end()?;
    Ok(Some(Corrupted { passage, replaced }))
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wrong_passage_says_which_words_it_replaced() {
        let right = "The gate is 12.";
        let read = |reply: &str| corrupted(reply, right);
        let reply = r#"{"passage": "The gate is 47.", "replaced": [{"word": "12", "by": "47"}]}"#;
        let wrong = read(reply).unwrap().unwrap();
        assert_eq!((wrong.passage.as_str(), wrong.replaced["12"].as_str()), ("The gate is 47.", "47"));
        assert_eq!(read(r#"{"passage": null, "replaced": []}"#).unwrap(), None);
        for reply in [
            "The gate is 47.",
            r#"{"passage": "The gate is 47.", "replaced": [{"word": "13", "by": "47"}]}"#,
            r#"{"passage": "The gate is 12.", "replaced": [{"word": "12", "by": "47"}]}"#,
            r#"{"passage": "The gate is 47.", "replaced": []}"#,
            r#"{"passage": "The gate is 47."}"#,
        ] {
            assert!(read(reply).is_err(), "{reply}");
        }
    }

    proptest! {
        #[test]
        fn any_reply_is_read_or_refused(reply in any::<String>(), word in any::<String>()) {
            let _ = corrupted(&reply, &word);
            let near = json!({"passage": reply, "replaced": [{"word": word, "by": "x"}]});
            if let Ok(Some(wrong)) = corrupted(&near.to_string(), &word) {
                prop_assert!(wrong.passage != word && !wrong.replaced.is_empty());
            }
        }
    }
}
