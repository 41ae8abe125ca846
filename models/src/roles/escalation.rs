//! The roles of an escalation (TierMem): router, planner, reranker, and the integrator that finds what is worth
//! learning in pages.

use super::Model;
use crate::failure::Failure;
use crate::prompts::Role;
use crate::reply::{self, Members};
use holotype::answer::Command;
use holotype::router::{Action, Router, Signals, parse_action};
use holotype::write_back::{QuoteError, find_quote};
use holotype::{Integrator, PageRanker, PlanView, Planner};
use serde_json::{Value, json};

/// The longest search that a planner may ask for, in characters.
const LONGEST_SEARCH: usize = 500;
/// Findings of one call, at most.
const MOST_FINDINGS: usize = 20;

impl Router for Model {
    fn decide(&self, question: &str, rows: &[&str], _: &Signals) -> Result<Action, String> {
        let inputs = json!({"question": question, "summaries": rows});
        self.ask(Role::Router, &inputs).and_then(|reply| action(&reply)).map_err(|failure| failure.to_string())
    }
}

/// `S` or `R`; what is neither is an error, so that the answer says why it was escalated.
fn action(reply: &str) -> Result<Action, Failure> {
    let object = reply::object(reply)?;
    match (parse_action(reply), object.get("action").and_then(Value::as_str)) {
        (Action::Answer, _) => Ok(Action::Answer),
        (Action::Escalate, Some("R")) => Ok(Action::Escalate),
        _ => Err(Failure::reply("is neither {\"action\": \"S\"} nor {\"action\": \"R\"}", reply)),
    }
}

impl Planner for Model {
    fn next(&self, view: &PlanView<'_>) -> Result<Vec<Command>, String> {
        let command = |command: &Command| match command {
            Command::Summaries(text) => json!({"summaries": text}),
            Command::Pages(text) => json!({"pages": text}),
        };
        let inputs = json!({
            "question": view.question,
            "facts": view.facts.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>(),
            "coverage": view.coverage,
            "uncovered_words": view.uncovered,
            "already_searched": view.history.iter().map(command).collect::<Value>(),
        });
        self.ask(Role::Planner, &inputs).and_then(|reply| plan(&reply)).map_err(|failure| failure.to_string())
    }
}

/// The next searches; none for DONE.
fn plan(reply: &str) -> Result<Vec<Command>, Failure> {
    let mut members = Members::of(reply)?;
    let decision = members.stated("decision")?;
    let (summaries, pages) = (members.text("summaries")?, members.text("pages")?);
    if [&summaries, &pages].into_iter().flatten().any(|text| text.chars().count() > LONGEST_SEARCH) {
        return Err(members.refused(format!("asks for a search of more than {LONGEST_SEARCH} characters")));
    }
    let commands: Vec<Command> =
        summaries.map(Command::Summaries).into_iter().chain(pages.map(Command::Pages)).collect();
    if !matches!((decision.as_str(), commands.is_empty()), ("DONE", true) | ("SEARCH", false)) {
        return Err(members.refused("is neither DONE nor SEARCH with a text for `summaries`, `pages` or both"));
    }
    members.end()?;
    Ok(commands)
}

impl Integrator for Model {
    fn integrate(&self, question: &str, pages: &[&str]) -> Result<Vec<(String, String)>, String> {
        let inputs = json!({"question": question, "pages": pages});
        let reply = self.ask(Role::Integrator, &inputs);
        reply.and_then(|reply| stated_findings(&reply)).map_err(|failure| failure.to_string())
    }
}

impl PageRanker for Model {
    fn rank(&self, question: &str, pages: &[&str]) -> Result<Vec<usize>, String> {
        self.rerank(question, pages).map_err(|failure| failure.to_string())
    }
}

/// Something found in pages that helps to answer a question (TierMem Figure 7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The finding, as a statement.
    pub text: String,
    /// The words of the page that say it, as they stand there.
    pub quote: String,
    /// The index of the page, found by the quote: the model is not asked for it.
    pub page: usize,
}

impl Model {
    /// The facts in pages that help with a question, each finding with the quote that it rests on (the integrator of
    /// TierMem B.5). Of the model's findings those are dropped whose quote stands in no page, or in several: no pointer
    /// would resolve.
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, or a reply of another form.
    pub fn findings(&self, question: &str, pages: &[&str]) -> Result<Vec<Finding>, Failure> {
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let reply = self.ask(Role::Integrator, &json!({"question": question, "pages": pages}))?;
        let stated = stated_findings(&reply)?;
        Ok(stated.into_iter().filter_map(|(text, quote)| placed(text, &quote, pages)).collect())
    }
}

impl Model {
    /// The indices of texts in the order in which they help to answer a question (TierMem B.7), best first.
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, or a reply that does not name each text once.
    pub fn rerank(&self, question: &str, texts: &[&str]) -> Result<Vec<usize>, Failure> {
        if texts.len() < 2 {
            return Ok((0..texts.len()).collect());
        }
        let listed = texts.iter().enumerate().map(|(index, text)| json!({"index": index, "text": text}));
        let reply = self.ask(Role::Reranker, &json!({"question": question, "texts": listed.collect::<Value>()}))?;
        ranking(&reply, texts.len())
    }
}

/// The ranking of so many texts: every index once.
fn ranking(reply: &str, count: usize) -> Result<Vec<usize>, Failure> {
    let mut members = Members::of(reply)?;
    let mut ranking: Vec<usize> = Vec::new();
    for value in members.list("ranking")? {
        let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
        let index = index.filter(|index| *index < count && !ranking.contains(index));
        ranking
            .push(index.ok_or_else(|| members.refused(format!("ranks {value}, which is no text, or ranked twice")))?);
    }
    if ranking.len() < count {
        return Err(members.refused(format!("ranks {} of {count} texts", ranking.len())));
    }
    members.end()?;
    Ok(ranking)
}

/// The findings of a reply with their quotes.
fn stated_findings(reply: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut members = Members::of(reply)?;
    let list = members.list("findings")?;
    if list.len() > MOST_FINDINGS {
        return Err(members.refused(format!("has {} findings; at most {MOST_FINDINGS} are allowed", list.len())));
    }
    let mut stated = Vec::new();
    for value in list {
        let mut finding = members.inner(value, "findings")?;
        stated.push((finding.stated("fact")?, finding.stated("quote")?));
        finding.end()?;
    }
    members.end()?;
    Ok(stated)
}

/// A finding at the only place of its quote.
fn placed(text: String, quote: &str, pages: &[&str]) -> Option<Finding> {
    let mut found = None;
    for (page, content) in pages.iter().enumerate() {
        match find_quote(content, quote) {
            Ok(span) if found.is_none() => found = Some((page, content.get(span)?.to_owned())),
            Err(QuoteError::Absent) => {}
            Ok(_) | Err(_) => return None,
        }
    }
    found.map(|(page, quote)| Finding { text, quote, page })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn actions_are_s_or_r_and_nothing_else() {
        assert_eq!(action(r#"{"thinking": "explicit", "action": "S"}"#).unwrap(), Action::Answer);
        assert_eq!(action(r#"{"action": "R"}"#).unwrap(), Action::Escalate);
        for reply in
            ["S", "{}", r#"{"action": "s"}"#, r#"{"action": "S", "sure": true}"#, r#"{"action":"R","action":"S"}"#]
        {
            assert!(action(reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn plans_are_done_or_a_search() {
        assert_eq!(plan(r#"{"decision": "DONE"}"#).unwrap(), []);
        assert_eq!(plan(r#"{"decision": "DONE", "pages": null}"#).unwrap(), []);
        let both = plan(r#"{"decision": "SEARCH", "summaries": "where is the pier", "pages": " pier "}"#).unwrap();
        assert_eq!(both, [Command::Summaries("where is the pier".to_owned()), Command::Pages("pier".to_owned())]);
        assert_eq!(plan(r#"{"decision": "SEARCH", "pages": "pier"}"#).unwrap().len(), 1);
        let long = format!(r#"{{"decision": "SEARCH", "query": "{}"}}"#, "x".repeat(LONGEST_SEARCH + 1));
        for reply in [
            "DONE",
            r#"{"decision": "SEARCH"}"#,
            r#"{"decision": "SEARCH", "query": ""}"#,
            r#"{"decision": "DONE", "query": "x"}"#,
            r#"{"decision": "done"}"#,
            r#"{"decision": "DONE", "why": "x"}"#,
            &long,
        ] {
            assert!(plan(reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn a_ranking_names_each_text_once() {
        assert_eq!(ranking(r#"{"ranking": [2, 0, 1]}"#, 3).unwrap(), [2, 0, 1]);
        for list in ["[2, 0]", "[2, 0, 1, 1]", "[0, 0, 1]", "[0, 1, 3]", "[0, 1, -1]", "[0, 1, \"2\"]", "2"] {
            assert!(ranking(&format!("{{\"ranking\": {list}}}"), 3).is_err(), "{list}");
        }
    }

    #[test]
    fn a_finding_stands_where_its_quote_does() {
        let pages = ["The ferry leaves at nine.", "Bob  paid 12 EUR. Bob paid in cash."];
        let at = |quote: &str| placed("x".to_owned(), quote, &pages).map(|finding| (finding.page, finding.quote));
        assert_eq!(at("leaves at nine"), Some((0, "leaves at nine".to_owned())));
        assert_eq!(at("bob paid 12 eur"), Some((1, "Bob  paid 12 EUR".to_owned())));
        assert_eq!(at("Bob paid 13 EUR"), None);
        assert_eq!(at("Bob"), None, "it stands there twice");
        assert_eq!(at("..."), None);
        let twice = ["It leaves at nine.", "It leaves at nine, he said."];
        assert_eq!(placed("x".to_owned(), "leaves at nine", &twice), None, "it stands in two pages");
    }

    proptest! {
        #[test]
        fn any_reply_is_read_or_refused(reply in any::<String>(), fact in any::<String>(), quote in any::<String>()) {
            let _ = (action(&reply), plan(&reply), stated_findings(&reply), ranking(&reply, 3));
            let finding = json!({"findings": [{"fact": fact, "quote": quote}]}).to_string();
            for (text, quote) in stated_findings(&finding).unwrap_or_default() {
                let _ = placed(text, &quote, &[&reply, &quote]);
            }
        }
    }
}
