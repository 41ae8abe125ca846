//! A conversation with questions, in the form that `locomo` reads: two friends, and among much small talk one remark
//! for each question, with the recall that was distilled from it and a theme for each sitting.

use crate::Result;
use holotype::embed::HashingEmbedder;
use holotype::interchange::line::{Commit, Episode, FieldValue, Line, Pointer, Recall, Theme, Trace, VectorRef};
use holotype::interchange::{LineWriter, NpyWriter, Precision};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

const EPISODE: &str = "friends";
const THINGS: [&str; 8] = ["bicycle", "violin", "telescope", "kayak", "typewriter", "loom", "accordion", "kiln"];
const CITIES: [&str; 6] = ["Lisbon", "Tromso", "Kyoto", "Quito", "Leipzig", "Cork"];
const SMALL_TALK: [&str; 5] = [
    "That sounds lovely, tell me more when we meet.",
    "I was so tired yesterday that I slept until noon.",
    "The weather has been dreadful, has it not?",
    "Good to hear from you again, how have you been?",
    "I should get going, dinner is nearly ready.",
];

/// Lines with the vectors they name, written side by side.
pub(crate) struct Story {
    lines: LineWriter<BufWriter<File>>,
    vectors: NpyWriter,
    questions: BufWriter<File>,
    question_vectors: NpyWriter,
    asked: usize,
    embedder: HashingEmbedder,
}

impl Story {
    /// Begins NAME.jsonl and the files beside it in a new folder.
    pub(crate) fn create(dir: &Path, name: &str) -> Result<Story> {
        std::fs::create_dir_all(dir)?;
        let file = |rest: &str| dir.join(format!("{name}{rest}"));
        let embedder = HashingEmbedder::new(128);
        let npy = |rest: &str| NpyWriter::create(file(rest), embedder.dim(), Precision::F16);
        Ok(Story {
            lines: LineWriter::new(BufWriter::new(File::create(file(".jsonl"))?)),
            vectors: npy(".f16.npy")?,
            questions: BufWriter::new(File::create(file(".questions.jsonl"))?),
            question_vectors: npy(".questions.f16.npy")?,
            asked: 0,
            embedder,
        })
    }

    pub(crate) fn line(&mut self, line: Line) -> Result<()> {
        Ok(self.lines.write(&line)?)
    }

    /// The row of a text's vector.
    pub(crate) fn row(&mut self, text: &str) -> Result<Option<VectorRef>> {
        let vector = self.embedder.embed(text).ok_or("a blank text")?;
        Ok(Some(VectorRef::Row(self.vectors.push(&vector)?)))
    }

    /// Writes a question, with what else its bench wants to know of it.
    pub(crate) fn ask(&mut self, question: &str, mut known: serde_json::Value) -> Result<()> {
        let vector = self.embedder.embed(question).ok_or("a blank question")?;
        known["question"] = json!(question);
        known["row"] = json!(self.question_vectors.push(&vector)?);
        self.asked += 1;
        Ok(writeln!(self.questions, "{known}")?)
    }

    /// Ends all files and gives the number of questions.
    pub(crate) fn finish(mut self) -> Result<usize> {
        self.lines.write(&Line::Commit(Commit::default()))?;
        self.lines.finish()?;
        self.vectors.finish()?;
        self.questions.flush()?;
        self.question_vectors.finish()?;
        Ok(self.asked)
    }
}

/// Writes the folder and gives the number of questions.
pub(crate) fn write(dir: &Path) -> Result<usize> {
    let mut story = Story::create(dir, EPISODE)?;
    story.line(Line::Episode(Episode { id: EPISODE.to_owned(), ..Episode::default() }))?;
    let mut step = 0;
    for (sitting, city) in CITIES.iter().enumerate() {
        let mut children = Vec::new();
        for (nth, thing) in THINGS.iter().enumerate() {
            let speaker = ["Ada", "Ben"][(nth + sitting) % 2];
            let talk = SMALL_TALK[(nth * 3 + sitting) % SMALL_TALK.len()];
            turn(&mut story, sitting, step, "Ada", talk)?;
            let remark = format!("I finally bought a {thing} at a flea market in {city}, for {} euros.", 20 + step);
            let key = turn(&mut story, sitting, step + 1, speaker, &remark)?;
            let fact = format!("{speaker} bought a {thing} in {city}.");
            children.push(format!("{key}/fact"));
            let row = story.row(&fact)?;
            story.line(Line::Recall(Recall {
                key: Some(format!("{key}/fact")),
                kind: Some("fact".to_owned()),
                text: Some(fact),
                from: vec![Pointer::item(key.clone())],
                vector: row,
                ..Recall::default()
            }))?;
            story.ask(
                &format!("How much did {speaker} pay for the {thing} from {city}?"),
                json!({ "evidence": [key] }),
            )?;
            step += 2;
        }
        let text = format!("Ada and Ben talked about what they bought in {city}.");
        let row = story.row(&text)?;
        let kind = Some("theme".to_owned());
        let key = Some(format!("sitting-{sitting}"));
        story.line(Line::Theme(Theme { key, kind, text: Some(text), children, vector: row, ..Theme::default() }))?;
    }
    story.finish()
}

/// Writes a turn and gives its key.
fn turn(story: &mut Story, sitting: usize, step: u64, speaker: &str, text: &str) -> Result<String> {
    /// The first of January 2026, in microseconds.
    const BEGINNING: i64 = 1_767_225_600_000_000;
    let key = format!("turn-{step}");
    let vector = story.row(text)?;
    story.line(Line::Trace(Trace {
        key: Some(key.clone()),
        episode: EPISODE.to_owned(),
        step: Some(step),
        time: Some(BEGINNING + i64::try_from(step)? * 60_000_000),
        kind: Some("turn".to_owned()),
        source: Some("user".to_owned()),
        log_id: Some(format!("sitting-{sitting}")),
        speaker: Some(speaker.to_owned()),
        fields: vec![("text".to_owned(), FieldValue::Text(text.to_owned()))],
        vector,
        ..Trace::default()
    }))?;
    Ok(key)
}
