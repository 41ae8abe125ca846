//! The roles of a write-back (TierMem B.6, Figure 11): memory manager and filter.

use super::Model;
use crate::failure::Failure;
use crate::prompts::Role;
use crate::reply::Members;
use holotype::write_back::{Decision, FindingFilter, Known, MemoryManager};
use serde_json::{Value, json};

impl MemoryManager for Model {
    fn decide(&self, finding: &str, known: &[Known<'_>]) -> Result<Decision, String> {
        let listed = known.iter().enumerate().map(|(index, known)| json!({"index": index, "text": known.text}));
        let inputs = json!({"finding": finding, "known": listed.collect::<Value>()});
        let reply = self.ask(Role::MemoryManager, &inputs);
        reply.and_then(|reply| decision(&reply, known.len())).map_err(|failure| failure.to_string())
    }
}

/// The decision beside so many known recalls.
fn decision(reply: &str, known: usize) -> Result<Decision, Failure> {
    let mut members = Members::of(reply)?;
    let word = members.stated("decision")?;
    let index = members.index("index", known)?;
    let text = members.text("text")?;
    let decision = match (word.as_str(), index, text) {
        ("ADD", None, None) => Decision::Add,
        ("UPDATE", Some(of), Some(text)) => Decision::Update { of, text },
        ("SKIP", by, None) => Decision::Skip { by },
        _ => {
            return Err(members.refused("is neither ADD, UPDATE with an index and a text, nor SKIP"));
        }
    };
    members.end()?;
    Ok(decision)
}

impl FindingFilter for Model {
    fn refuse(&self, finding: &str, evidence: &[String]) -> Result<Option<String>, String> {
        let inputs = json!({"finding": finding, "evidence": evidence});
        self.ask(Role::FindingFilter, &inputs).and_then(|reply| refusal(&reply)).map_err(|failure| failure.to_string())
    }
}

/// The reason of a refusal, or `None` for what is kept.
fn refusal(reply: &str) -> Result<Option<String>, Failure> {
    let mut members = Members::of(reply)?;
    let keep = members.truth("keep")?;
    let reason = members.text("reason")?;
    members.end()?;
    Ok((!keep).then(|| reason.unwrap_or_else(|| "the model refuses it".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decisions_name_what_they_were_shown() {
        let update = Decision::Update { of: 1, text: "x".to_owned() };
        assert_eq!(decision(r#"{"decision": "ADD"}"#, 0).unwrap(), Decision::Add);
        assert_eq!(decision(r#"{"decision": "UPDATE", "index": 1, "text": "x"}"#, 2).unwrap(), update);
        assert_eq!(decision(r#"{"decision": "SKIP", "index": 0}"#, 1).unwrap(), Decision::Skip { by: Some(0) });
        assert_eq!(decision(r#"{"decision": "SKIP", "index": null}"#, 1).unwrap(), Decision::Skip { by: None });
        for reply in [
            "ADD",
            r#"{"decision": "UPDATE", "index": 2, "text": "x"}"#,
            r#"{"decision": "UPDATE", "index": "1", "text": "x"}"#,
            r#"{"decision": "UPDATE", "index": 1.5, "text": "x"}"#,
            r#"{"decision": "UPDATE", "index": 1}"#,
            r#"{"decision": "UPDATE", "index": 1, "text": " "}"#,
            r#"{"decision": "SKIP", "index": 7}"#,
            r#"{"decision": "ADD", "index": 0}"#,
            r#"{"decision": "DELETE", "index": 0}"#,
            r#"{"decision": "ADD", "id": "r1"}"#,
        ] {
            assert!(decision(reply, 2).is_err(), "{reply}");
        }
    }

    #[test]
    fn a_filter_keeps_or_says_why_not() {
        assert_eq!(refusal(r#"{"keep": true}"#).unwrap(), None);
        assert_eq!(refusal(r#"{"keep": false, "reason": "vague"}"#).unwrap().as_deref(), Some("vague"));
        assert!(refusal(r#"{"keep": false}"#).unwrap().is_some());
        for reply in ["yes", "[0]", r#"{"keep": "true"}"#, r#"{"keep": 1}"#, r#"{"keep": true, "x": 1}"#] {
            assert!(refusal(reply).is_err(), "{reply}");
        }
    }

    proptest! {
        #[test]
        fn any_reply_is_read_or_refused(reply in any::<String>(), word in any::<String>(), index in any::<i64>()) {
            let _ = (decision(&reply, 3), refusal(&reply));
            let near = json!({"decision": "UPDATE", "index": index, "text": word}).to_string();
            if let Ok(Decision::Update { of, text }) = decision(&near, 3) {
                prop_assert!(of < 3 && !text.is_empty());
            }
        }
    }
}
