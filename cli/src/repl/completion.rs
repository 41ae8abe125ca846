//! Completion of the word at the cursor, from the words that the parser expects there.
//!
//! Inside a quoted text, names of episodes or keys of items are offered from the database.

use crate::render::text::printable;
use holotype::query::attributes::{RECALL_COLUMNS, SETTINGS, Subject, attributes_of};
use holotype::query::{Errors, check, parse};

/// The greatest number of names of the database that are offered at once.
pub(super) const MOST: usize = 50;

/// The commands of a session.
pub(super) const COMMANDS: &[&str] = &[".exit", ".format", ".help", ".quit", ".timing"];

/// The source of the names in quotes.
pub(super) trait Names {
    fn episodes(&self, prefix: &str) -> Vec<String>;
    fn keys(&self, prefix: &str) -> Vec<String>;
}

/// The start of the word at the cursor, and its completions.
pub(super) fn complete(line: &str, cursor: usize, names: &dyn Names) -> (usize, Vec<String>) {
    let before = line.get(..cursor).unwrap_or(line);
    if before.starts_with('.') && !before.contains(' ') {
        return (0, COMMANDS.iter().filter(|it| it.starts_with(before)).map(|it| (*it).to_owned()).collect());
    }
    if let Some((quote, at)) = open_quote(before) {
        let (stem, prefix) = (&before[..at], &before[at + 1..]);
        let found = if names_episode(stem) { names.episodes(prefix) } else { names.keys(prefix) };
        // The list is drawn as it is, so names that a terminal would obey are left out too.
        let is_plain = |name: &String| !name.contains(['\'', '"', '\\', '\n']) && printable(name) == *name;
        let plain = found.into_iter().filter(is_plain);
        return (at + 1, plain.map(|name| format!("{name}{quote}")).collect());
    }
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let start = before.rfind(|c| !inside(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let (stem, prefix) = (&before[..start], before[start..].to_lowercase());
    let mut words = welcome(stem);
    words.retain(|word| word.starts_with(&prefix));
    words.sort_unstable();
    words.dedup();
    (start, words)
}

/// The quote that is still open at the end, and where it stands.
fn open_quote(text: &str) -> Option<(char, usize)> {
    let mut open = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (open, c) {
            (None, '\'' | '"') => open = Some((c, at)),
            (Some(_), '\\') => {
                chars.next();
            }
            // A doubled quote closes and opens again, which comes to the same.
            (Some((quote, _)), c) if c == quote => open = None,
            _ => {}
        }
    }
    open
}

/// True if a quote at the end of this text begins the name of an episode.
fn names_episode(stem: &str) -> bool {
    let mut rest = stem.trim_end();
    // Further names of a list follow commas.
    while let Some(list) = rest.strip_suffix(',') {
        let list = list.trim_end();
        let Some(inner) = list.strip_suffix(['\'', '"']) else { return false };
        let Some(at) = inner.rfind(['\'', '"']) else { return false };
        rest = inner[..at].trim_end();
    }
    let rest = rest.strip_suffix('=').map_or(rest, str::trim_end);
    rest.len() >= 7 && rest.get(rest.len() - 7..).is_some_and(|word| word.eq_ignore_ascii_case("episode"))
}

/// The words that the parser accepts after this text.
fn welcome(stem: &str) -> Vec<String> {
    let end = stem.trim_end().len();
    let mut words = Vec::new();
    let subject = subject(stem);
    if let Err(errors) = parse(stem) {
        take(&errors, end, subject, &mut words);
    }
    if words.is_empty() {
        // The statement may end here: what else may follow is told of something that may follow nowhere.
        if let Err(errors) = parse(&format!("{stem} )")) {
            take(&errors, end, subject, &mut words);
        }
    }
    // A value is checked against what its attribute knows.
    let strange = format!("{stem} zzqx");
    if let Ok(script) = parse(&strange)
        && let Err(errors) = check(&script, None, None)
    {
        let lists = errors.iter().flat_map(|error| &error.expected).filter_map(|it| it.strip_prefix("one of "));
        let known: Vec<String> = lists.flat_map(|known| known.split(", ")).map(str::to_owned).collect();
        if !known.is_empty() {
            return known;
        }
    }
    words
}

/// The subject of the statement at the cursor; none for a recall, whose rows have columns of their own.
fn subject(stem: &str) -> Option<Subject> {
    let statement = stem.rsplit(';').next().unwrap_or_default().to_lowercase();
    let mut words = statement.split_whitespace().filter(|word| !matches!(*word, "explain" | "analyze"));
    let verb = words.next().unwrap_or_default();
    Some(match (verb, words.next().unwrap_or_default()) {
        ("recall", _) => return None,
        ("history", _) => Subject::Change,
        ("find" | "count", noun) => match noun.trim_end_matches(',') {
            "pages" => Subject::Page,
            "episodes" => Subject::Episode,
            "claims" => Subject::Claim,
            "edges" => Subject::Edge,
            "events" => Subject::Event,
            "receipts" => Subject::Receipt,
            _ => Subject::Item,
        },
        _ => Subject::Item,
    })
}

/// The keywords and names that errors at the end say they expected.
fn take(errors: &Errors, end: usize, subject: Option<Subject>, words: &mut Vec<String>) {
    for error in errors.iter().filter(|error| error.span.start as usize >= end) {
        for expected in &error.expected {
            match expected.strip_prefix('`').and_then(|word| word.strip_suffix('`')) {
                Some(word) => words.extend(word.starts_with(char::is_alphabetic).then(|| word.to_owned())),
                None if expected.contains("setting") => {
                    words.extend(SETTINGS.iter().map(|setting| setting.name.to_owned()));
                }
                None if expected.contains("attribute") || expected.contains("column") || expected.contains("name") => {
                    let attributes = attributes_of(subject.unwrap_or(Subject::Item));
                    words.extend(attributes.map(|attribute| attribute.name.to_owned()));
                    if subject.is_none() {
                        words.extend(RECALL_COLUMNS.iter().map(|name| (*name).to_owned()));
                    }
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Trip;

    impl Names for Trip {
        fn episodes(&self, prefix: &str) -> Vec<String> {
            ["trip-42", "trip-43"].iter().filter(|id| id.starts_with(prefix)).map(|id| (*id).to_owned()).collect()
        }

        fn keys(&self, prefix: &str) -> Vec<String> {
            ["t1", "t2", "it's"].iter().filter(|key| key.starts_with(prefix)).map(|key| (*key).to_owned()).collect()
        }
    }

    fn offered(line: &str) -> Vec<String> {
        complete(line, line.len(), &Trip).1
    }

    #[track_caller]
    fn offers(line: &str, wanted: &[&str]) {
        let found = offered(line);
        for word in wanted {
            assert!(found.iter().any(|found| found == word), "{line}: {word} is not among {found:?}");
        }
    }

    #[test]
    fn keywords_are_offered_where_they_may_stand() {
        offers("", &["recall", "find", "count", "explain", "show"]);
        assert_eq!(offered("rec"), ["recall", "record"]);
        offers("find ", &["traces", "facts", "pages", "claims"]);
        assert_eq!(offered("find tr"), ["traces"]);
        offers("recall 'x' ", &["in", "where", "through", "limit", "budget"]);
        offers("recall 'x' through traces ", &["by", "pool", "limit"]);
        assert_eq!(offered("recall 'x' limit 3 whe"), ["where"]);
        assert_eq!(offered("RECALL 'x' LIMIT 3 WHE"), ["where"]);
        assert!(!offered("recall 'x' ").contains(&"by".to_owned()));
    }

    #[test]
    fn attributes_and_their_values_are_offered() {
        offers("find traces where ", &["status", "tool", "not", "failed", "has", "cites"]);
        assert_eq!(offered("find traces where stat"), ["status"]);
        offers("find traces where status = ", &["success", "unknown", "failed"]);
        assert_eq!(offered("find traces where status = f"), ["failed"]);
        offers("find traces order by st", &["status", "step"]);
        offers("find traces return ke", &["key"]);
        offers("set ", &["profile"]);
        offers("show ", &["episodes", "head", "settings"]);
    }

    #[test]
    fn names_in_quotes_come_from_the_database() {
        assert_eq!(complete("recall 'x' in episode 'tr", 25, &Trip), (23, vec!["trip-42'".into(), "trip-43'".into()]));
        assert_eq!(offered("recall 'x' in episode 'trip-42', \"trip-43"), ["trip-43\""]);
        assert_eq!(offered("find traces where episode = 'trip-42"), ["trip-42'"]);
        assert_eq!(offered("sources of '"), ["t1'", "t2'"], "a key with a quote in it would have to be escaped");
        assert_eq!(offered("mark 't2"), ["t2'"]);
    }

    #[test]
    fn commands_are_offered() {
        assert_eq!(offered(".f"), [".format"]);
        assert_eq!(offered(".").len(), COMMANDS.len());
    }

    #[test]
    fn in_any_line_the_word_begins_between_characters_and_before_the_cursor() {
        for line in ["é", "'é", "recall 'x' ümlaut", "\u{0}", "'\\", "((((", "recall $", "in episode ,'", "episode='"]
        {
            for cursor in 0..=line.len() {
                let (start, _) = complete(line, cursor, &Trip);
                assert!(line.is_char_boundary(start), "{line:?} at {cursor}: {start}");
                assert!(start <= cursor || !line.is_char_boundary(cursor), "{line:?} at {cursor}: {start}");
            }
        }
    }
}
