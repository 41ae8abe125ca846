//! Small samples in the layout of the data folder: a conversation, a desk, a story, a tool log, and documents.

use crate::Result;
use crate::smoke::conversation::{self, Story};
use crate::smoke::desk;
use holotype::interchange::line::{Episode, FieldValue, Line, Trace};
use serde_json::json;
use std::path::Path;

const PERSONS: [&str; 4] = ["Mary", "John", "Sandra", "Daniel"];
const PLACES: [&str; 5] = ["kitchen", "garden", "office", "hallway", "bathroom"];
const RESERVATIONS: [&str; 4] = ["1N99U6", "KC18K6", "4WQ150", "VAAOXJ"];
const CABINS: [&str; 3] = ["economy", "business", "basic_economy"];
const START_US: i64 = 1_767_225_600_000_000;
const MINUTE_US: i64 = 60_000_000;

/// Sentences with a question about the first, by language.
const DOCUMENTS: [(&str, [&str; 3], &str); 3] = [
    (
        "en",
        [
            "The harbour of Lindau was built in 1856 by Bavarian engineers.",
            "The lighthouse is open to visitors from May to October.",
            "Ferries cross the lake every hour.",
        ],
        "When was the harbour of Lindau built?",
    ),
    (
        "de",
        [
            "Der Hafen von Lindau wurde 1856 von bayerischen Ingenieuren gebaut.",
            "Der Leuchtturm ist von Mai bis Oktober für Besucher geöffnet.",
            "Die Fähren überqueren den See jede Stunde.",
        ],
        "Wann wurde der Hafen von Lindau gebaut?",
    ),
    (
        "zh",
        ["林道港由巴伐利亚工程师于1856年建造。", "灯塔从五月到十月对游客开放。", "渡轮每小时横渡湖面一次。"],
        "林道港是什么时候建造的？",
    ),
];

/// Writes every sample below a folder.
pub(super) fn write(data: &Path) -> Result<()> {
    conversation::write(&data.join("locomo-dev"))?;
    desk::write(&data.join("epistemic-dev"))?;
    story(&data.join("public"))?;
    log(&data.join("public"))?;
    documents(&data.join("public"))
}

/// Writes a trace of an episode, a minute after the one before.
fn trace(story: &mut Story, episode: &str, step: u64, tool: Option<&str>, text: &str) -> Result<String> {
    let key = format!("{episode}/{step}");
    let vector = story.row(text)?;
    let of = |name: &str| Some(name.to_owned());
    story.line(Line::Trace(Trace {
        key: Some(key.clone()),
        episode: episode.to_owned(),
        step: Some(step),
        time: Some(START_US + i64::try_from(step)? * MINUTE_US),
        kind: of(if tool.is_some() { "call" } else { "observation" }),
        source: of(if tool.is_some() { "tool" } else { "environment" }),
        tool: tool.map(str::to_owned),
        status: of("success"),
        fields: vec![("text".to_owned(), FieldValue::Text(text.to_owned()))],
        vector,
        ..Trace::default()
    }))?;
    Ok(key)
}

fn begin(dir: &Path, name: &str, episode: &str) -> Result<Story> {
    let mut story = Story::create(dir, name)?;
    story.line(Line::Episode(Episode { id: episode.to_owned(), ..Episode::default() }))?;
    Ok(story)
}

fn story(dir: &Path) -> Result<()> {
    let mut story = begin(dir, "babi", "story")?;
    let mut places: [Vec<String>; PERSONS.len()] = Default::default();
    for step in 0..24 {
        let nth = step * 7 % PERSONS.len() + step / 12 % 2;
        let nth = nth % PERSONS.len();
        let text = format!("{} went to the {}.", PERSONS[nth], PLACES[step * 3 % PLACES.len()]);
        places[nth].push(trace(&mut story, "story", step as u64, None, &text)?);
    }
    for (person, keys) in PERSONS.iter().zip(&places) {
        if let Some((last, before)) = keys.split_last() {
            let known = json!({"evidence": [last], "stale": before, "at": {"step": 23}, "episode": "story"});
            story.ask(&format!("Where is {person}?"), known)?;
        }
    }
    story.finish()?;
    Ok(())
}

fn log(dir: &Path) -> Result<()> {
    let mut story = begin(dir, "tau-airline", "airline")?;
    let mut keys: [Vec<String>; RESERVATIONS.len()] = Default::default();
    for step in 0..12 {
        let nth = step % RESERVATIONS.len();
        // The last reservation keeps its cabin.
        let cabin = CABINS[if nth + 1 == RESERVATIONS.len() { 0 } else { (step / RESERVATIONS.len() + nth) % 3 }];
        let details = json!({"reservation_id": RESERVATIONS[nth], "cabin": cabin, "insurance": "no", "passengers": 1});
        let tool = Some("get_reservation_details");
        keys[nth].push(trace(&mut story, "airline", step as u64, tool, &details.to_string())?);
    }
    for (nth, (reservation, keys)) in RESERVATIONS.iter().zip(&keys).enumerate() {
        let Some((last, before)) = keys.split_last() else { continue };
        let (category, same, stale) = match nth + 1 == RESERVATIONS.len() {
            true => ("unchanged cabin", before, &[][..]),
            false => ("changed cabin", &[][..], before),
        };
        let known = json!({"evidence": [last], "same": same, "stale": stale, "category": category});
        story.ask(&format!("What cabin is reservation {reservation} in?"), known)?;
    }
    story
        .ask("What cabin is reservation QQ7XZ1 in?", json!({"category": "foreign", "evidence": [], "foreign": true}))?;
    story.finish()?;
    Ok(())
}

fn documents(dir: &Path) -> Result<()> {
    let mut story = begin(dir, "xquad", "xquad-en")?;
    for (language, sentences, question) in DOCUMENTS {
        let episode = format!("xquad-{language}");
        let mut keys = Vec::new();
        for (step, text) in (0..).zip(sentences) {
            keys.push(trace(&mut story, &episode, step, None, text)?);
        }
        story.ask(question, json!({"evidence": [keys[0]], "category": language, "episode": episode}))?;
    }
    story.finish()?;
    Ok(())
}
