//! The items of memory that a session was shown, and which of them its answers use.
//!
//! An item was shown by the context at the beginning, or by a tool of the MCP server of this database, whose answers
//! name their items as `[KEY]` or `"key":"KEY"`. An answer uses an item if it cites `[KEY]`, or says so many of the
//! item's words one after the other, whatever their case and punctuation, that it can hardly be chance.

use super::event::{Event, What};

/// The tools whose answers show items, as the ends of their names in every harness.
const TOOLS: [&str; 4] = ["recall", "get", "why", "query"];
/// The name of the server within the names of its tools.
const SERVER: &str = "holotype";
/// Words in a row that make a quotation; a text that has fewer is quoted whole, down to the least.
const WORDS: usize = 6;
const LEAST_WORDS: usize = 4;
/// The most keys that one answer of a tool shows.
const KEYS: usize = 64;

/// The words that may be keys in the answer of a tool of the memory; none of any other event.
pub(super) fn shown_by(event: &Event) -> Vec<String> {
    let What::Call { tool, .. } = &event.what else { return Vec::new() };
    let tool = tool.to_ascii_lowercase();
    if !tool.contains(SERVER) || !TOOLS.iter().any(|end| tool.ends_with(end)) {
        return Vec::new();
    }
    // Before the arrow are the arguments.
    let said = event.text.split_once("\n→ ").map_or("", |(_, said)| said);
    let mut keys: Vec<String> = Vec::new();
    let bracketed = said.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(key, _)| key);
    // The brackets of JSON hold no key.
    let bracketed = bracketed.filter(|key| !key.contains('"'));
    let members =
        said.split("\"key\":").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split_once('"'));
    for key in bracketed.chain(members.map(|(key, _)| key)) {
        let is_new = !key.is_empty() && key.len() <= holotype::MAX_KEY_LEN && !keys.iter().any(|known| known == key);
        if is_new && keys.len() < KEYS {
            keys.push(key.to_owned());
        }
    }
    keys
}

/// True for what an agent answered.
pub(super) fn is_answer(event: &Event) -> bool {
    event.what == What::Turn { by_user: false }
}

/// An answer, prepared for many questions.
pub(super) struct Answer<'a> {
    text: &'a str,
    /// Its words between single spaces, and around them.
    words: String,
}

impl<'a> Answer<'a> {
    pub(super) fn new(text: &'a str) -> Answer<'a> {
        Answer { text, words: format!(" {} ", words(text).join(" ")) }
    }

    /// True if the answer cites the key.
    pub(super) fn cites(&self, key: &str) -> bool {
        self.text.contains(&format!("[{key}]"))
    }

    /// True if the answer quotes a text.
    pub(super) fn quotes(&self, text: &str) -> bool {
        let words = words(text);
        let run = words.len().min(WORDS);
        run >= LEAST_WORDS && words.windows(run).any(|run| self.words.contains(&format!(" {} ", run.join(" "))))
    }
}

/// The words of a text: runs of letters and digits, in small letters.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::event::Outcome;

    fn call(tool: &str, text: &str) -> Event {
        Event::new("s", "1", What::Call { tool: tool.to_owned(), outcome: Outcome::Success }, text, Vec::new())
    }

    #[test]
    fn answers_of_the_servers_tools_show_keys() {
        let rows = "1. [s/p1] turn: \"a\"\n2. [~4] fact: \"b\"\n{\"rows\":[{\"key\":\"k 3\"}]}";
        let said = &format!("{{\"query\":\"[no]\"}}\n→ 2 found.\n{rows}");
        for tool in ["mcp__holotype__recall", "mcp__plugin_x_holotype__get", "holotype.query", "mcp_holotype_why"] {
            assert_eq!(shown_by(&call(tool, said)), ["s/p1", "~4", "k 3"], "{tool}");
        }
        for tool in ["mcp__holotype__record", "mcp__other__recall", "Bash"] {
            assert!(shown_by(&call(tool, said)).is_empty(), "{tool}");
        }
    }

    #[test]
    fn a_key_or_words_in_a_row_are_a_use() {
        let answer = Answer::new("As noted [s/p1], the *staging server* listens at port 8080 – since May.");
        assert!(answer.cites("s/p1") && !answer.cites("s/p") && !answer.cites("p1"));
        assert!(answer.quotes("The staging server listens at port 8080."));
        assert!(answer.quotes("note: the staging server listens at port 8080, on host b"));
        assert!(answer.quotes("LISTENS at port 8080"));
        for other in ["port 8080 since", "the production server listens at port 8080", "", "at port 808 since"] {
            assert!(!answer.quotes(other), "{other}");
        }
    }
}
