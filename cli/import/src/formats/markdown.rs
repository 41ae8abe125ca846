//! `markdown`: notes of a folder, such as those of Basic Memory or Obsidian.
//!
//! A note is an observation whose text is its body and whose file name is searchable. A line `- [category] text #tag`
//! is a fact, and so is a relation `- works_at [[Target]]`; both cite their line of the note.

use super::names;
use crate::entry::{Fact, Trace, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::text::MAX_LINE_LEN;
use crate::{Format, ImportError};
use holotype::Kind;
use std::collections::HashMap;
use std::io::Read as _;
use std::path::PathBuf;

const PREFIX: &str = "markdown";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let root = files.stem();
    for name in names(Format::Markdown, files)? {
        intake.in_file(&files.shown(name));
        let mut bytes = Vec::new();
        let failed = |source| ImportError::File { path: PathBuf::from(files.shown(name)), source };
        files.open_text(name)?.take(MAX_LINE_LEN as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        intake.at(1, bytes.len())?;
        intake.count_read();
        if bytes.len() > MAX_LINE_LEN {
            intake.bad(format!("got a longer note, expected at most {} MiB", MAX_LINE_LEN >> 20));
            continue;
        }
        match String::from_utf8(bytes) {
            Ok(text) => note(intake, &root, name, &text)?,
            Err(_) => intake.bad("got bytes that are no text, expected UTF-8 or UTF-16"),
        }
    }
    Ok(())
}

fn note(intake: &mut Intake<'_>, root: &str, name: &str, text: &str) -> Result<(), ImportError> {
    let text = text.replace("\r\n", "\n");
    let (front, body) = front_matter(&text);
    let body = body.trim();
    let stem = name.rsplit('/').next().unwrap_or(name);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let title = front.get("title").map_or(stem, String::as_str);
    let id =
        front.get("permalink").cloned().unwrap_or_else(|| name.rsplit_once('.').map_or(name, |(id, _)| id).to_owned());
    if body.is_empty() && front.is_empty() {
        intake.ignore();
        return Ok(());
    }
    let stated = ["modified", "updated", "date", "created"].into_iter().find_map(|name| front.get(name));
    let time = match stated {
        Some(stated) => intake.time_of_text(stated)?,
        None => None,
    };
    let own = key(&[PREFIX, root, &id]);
    let episode = format!("{PREFIX}/{root}");
    let mut trace = Trace::new(Kind::Observation, episode.clone(), own.clone(), body).time(time).raw(text.clone());
    trace = trace.field("title", title).field("file", name);
    for (name, value) in &front {
        if !matches!(name.as_str(), "title" | "permalink" | "file" | "raw") {
            trace = trace.field(name, value.clone());
        }
    }
    intake.trace(trace)?;
    for (line, start) in lines(body) {
        let Some((statement, mentions)) = statement(title, line) else { continue };
        let mut fact = Fact::new(format!("{own}#{}", hash(line.trim())), statement).time(time).episode(episode.clone());
        fact.evidence = Some((own.clone(), start as u64, (start + line.trim_end().len()) as u64));
        fact.mentions = mentions;
        intake.fact(fact)?;
    }
    Ok(())
}

/// The lines of a body outside of code, with their places.
fn lines(body: &str) -> impl Iterator<Item = (&str, usize)> {
    let (mut at, mut is_code) = (0, false);
    body.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((line.trim_end_matches('\n'), start))
    })
}

/// The statement that a line of a list makes, with the concepts that it mentions.
fn statement(title: &str, line: &str) -> Option<(String, Vec<String>)> {
    let item = line.trim_start().strip_prefix("- ").or_else(|| line.trim_start().strip_prefix("* "))?.trim();
    if let Some((kind, rest)) = item.split_once("[[")
        && let Some((target, _)) = rest.split_once("]]")
    {
        // `[[Target|shown]]`, `[[Target#heading]]`
        let target = target.split(['|', '#']).next().unwrap_or(target).trim();
        let kind = kind.trim().trim_matches('"');
        if target.is_empty() || kind.is_empty() || kind.starts_with('[') || kind.split_whitespace().count() > 4 {
            return None;
        }
        return Some((format!("{title} {kind} {target}"), vec![title.to_owned(), target.to_owned()]));
    }
    let (category, said) = item.strip_prefix('[')?.split_once(']')?;
    let is_task = category.trim().is_empty() || matches!(category, "x" | "X" | "-");
    let said = said.trim();
    // `[text](link)` is a link, and `[ ]` a task.
    if is_task || said.is_empty() || said.starts_with(['(', '[']) || category.len() > 40 {
        return None;
    }
    Some((format!("{title}: {said}"), vec![title.to_owned()]))
}

/// The members of the front matter that are scalars or lists of them, and the body.
fn front_matter(text: &str) -> (HashMap<String, String>, &str) {
    let mut front = HashMap::new();
    let Some(rest) = text.strip_prefix("---\n") else { return (front, text) };
    let Some((head, body)) = rest.split_once("\n---\n").or_else(|| Some((rest.strip_suffix("\n---")?, ""))) else {
        return (front, text);
    };
    let mut list = String::new();
    for line in head.lines() {
        if let Some(element) = line.trim_start().strip_prefix("- ") {
            if let Some(known) = front.get_mut(&list) {
                let known: &mut String = known;
                known.push_str(if known.is_empty() { "" } else { ", " });
                known.push_str(unquoted(element));
            }
            continue;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#'])) else {
            continue;
        };
        let value = value.trim();
        let value = match value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
            Some(elements) => elements.split(',').map(unquoted).collect::<Vec<_>>().join(", "),
            None => unquoted(value).to_owned(),
        };
        list = name.trim().to_lowercase();
        front.insert(list.clone(), value);
    }
    front.retain(|_, value| !value.is_empty());
    (front, body)
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_has_scalars_and_lists() {
        let text = "---\ntitle: \"A: b\"\ntags: [x, 'y']\naliases:\n- one\n- two\n---\nBody\n";
        let (front, body) = front_matter(text);
        assert_eq!(
            (front["title"].as_str(), front["tags"].as_str(), front["aliases"].as_str()),
            ("A: b", "x, y", "one, two")
        );
        assert_eq!(body, "Body\n");
        assert_eq!(front_matter("---\nno end").1, "---\nno end");
    }

    #[test]
    fn lists_state_observations_and_relations() {
        let stated = |line: &str| statement("Coffee", line).map(|(text, _)| text);
        assert_eq!(stated("- [method] Pour slowly #brew"), Some("Coffee: Pour slowly #brew".to_owned()));
        assert_eq!(stated("- pairs_with [[Cake|the cake]]"), Some("Coffee pairs_with Cake".to_owned()));
        for line in ["- [ ] a task", "- [x] done", "- [a link](http://x)", "- plain", "[method] no list", "- [[Alone]]"]
        {
            assert_eq!(stated(line), None, "{line}");
        }
    }
}
