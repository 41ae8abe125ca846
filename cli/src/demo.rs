//! `holotype demo`: the whole idea in one minute, with a story that comes with the program.
//!
//! What is printed is laid out in `demo/script.md`. The narrative is fixed; every count, text, score, span, verdict,
//! place and hash in it is computed while it runs. Where an order differs from the story's, the demo says so and ends
//! with status 1.

mod change;
mod story;

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::branch;
use crate::render::text::{cut, width, wrap};
use change::ChangedCopy;
use holotype::answer::{Answer, Role};
use holotype::{Holotype, Options, Verdict, hex};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use story::{Priced, Story};

/// The widest line.
const COLUMNS: usize = 96;
/// The widest line of what happened.
const EVENT_COLUMNS: usize = 90;

/// What a database is called that nobody named.
const NAME: &str = "demo";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to leave the database in [default: demo.holo, or demo-2.holo and so on]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let path = args.dir.clone().unwrap_or_else(fresh_name);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut telling = Telling { out: &mut out, path: &path, surprises: Vec::new() };
    telling.line("holotype demo: one question, asked twice.")?;

    let story = Story::create(&path)?;
    telling.what_happened(&story)?;
    telling.plain_similarity(&story)?;
    let answer = story.governed()?;
    telling.governed_recall(&story, &answer)?;
    telling.evidence(&story, &answer)?;
    let head = story.database.head();
    story.database.close()?;

    telling.one_byte()?;
    telling.heading(6, "The head of the log")?;
    telling.line(&format!("   commit {}  {}", head.commit, hex(&head.hash)))?;
    let name = path.display();
    telling.line(&format!(
        "   Keep it elsewhere: with `verify {name} --head HASH` it shows whether the past was changed."
    ))?;
    telling.heading(7, "Go on with")?;
    telling.line(&format!("   holotype query {name} \"recall 'Does Joseph need a visa?' score profile archive\""))?;
    telling.line(&format!("   holotype query {name} \"sources of 'ask-mara' depth 3\""))?;
    telling.line(&format!("   holotype repl {name}"))?;
    let surprises = telling.surprises;
    out.flush()?;
    for surprise in &surprises {
        database::note(&format!("this is not how the story goes: {surprise}"));
    }
    Ok(if surprises.is_empty() { Status::Done } else { Status::Found })
}

/// A name beside which nothing is overwritten.
fn fresh_name() -> PathBuf {
    let names = (1_u32..).map(|number| match number {
        1 => PathBuf::from(format!("{NAME}.holo")),
        _ => PathBuf::from(format!("{NAME}-{number}.holo")),
    });
    // Whatever the names, creating refuses a directory that is there.
    names.take(10_000).find(|name| !name.exists()).unwrap_or_else(|| PathBuf::from(format!("{NAME}.holo")))
}

/// The story being told.
struct Telling<'t, W> {
    out: &'t mut W,
    path: &'t Path,
    /// Where what was computed is not what the story says.
    surprises: Vec<String>,
}

impl<W: Write> Telling<'_, W> {
    fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", text.trim_end())
    }

    /// A line that is cut where it is too long.
    fn row(&mut self, text: &str) -> io::Result<()> {
        let blank: String = text.chars().take_while(|c| *c == ' ').collect();
        let mut kept = String::new();
        for c in text.trim().chars() {
            if width(&blank) + width(&kept) + 1 > COLUMNS {
                kept.pop();
                kept.push('…');
                break;
            }
            kept.push(c);
        }
        self.line(&format!("{blank}{kept}"))
    }

    fn heading(&mut self, number: u32, text: &str) -> io::Result<()> {
        self.line(&format!("\n{number}  {text}"))
    }

    fn expect(&mut self, holds: bool, otherwise: impl Into<String>) {
        if !holds {
            self.surprises.push(otherwise.into());
        }
    }

    fn what_happened(&mut self, story: &Story) -> Result<(), Failure> {
        self.heading(1, "What happened")?;
        let name = self.path.display().to_string();
        self.line(&format!("   An agent books a trip to Lisbon for Mara, Ines and Joseph. Its log is now in {name}:"))?;
        let (traces, recalls, themes) = (story.count("traces")?, story.count("recalls")?, story.count("themes")?);
        let transactions = story.transactions;
        self.line(&format!("   {traces} traces, {recalls} recalls, {themes} themes, in {transactions} transactions. Mara said on the first day:"))?;
        self.line(&format!("   \"{}.\" And then:", story.limit_quote()?))?;
        self.line("")?;
        let events = story.events()?;
        let who = events.iter().map(|event| width(&event.who)).max().unwrap_or(0);
        for event in &events {
            let blank = " ".repeat(who - width(&event.who));
            let lead = format!("   {}  {}{blank}  ", event.when, event.who);
            let text = cut(&event.text, EVENT_COLUMNS.saturating_sub(width(&lead)));
            self.line(&format!("{lead}{text}"))?;
        }
        self.expect(events.len() == story::EVENTS.len(), "some of its events are missing");
        self.line(&format!("\n   {}, the question: {}", story.asked_at()?, story::QUESTION))?;
        Ok(())
    }

    fn plain_similarity(&mut self, story: &Story) -> Result<(), Failure> {
        self.heading(2, "What plain similarity believes")?;
        let nearest = story.nearest()?;
        let first = nearest.iter().take(story::NEAREST.len()).collect::<Vec<_>>();
        let keys = first.iter().map(|near| width(&near.key)).max().unwrap_or(0);
        let prices = first.iter().map(|near| width(&near.price.words)).max().unwrap_or(0);
        for near in &first {
            let Priced { words, .. } = &near.price;
            let key_blank = " ".repeat(keys - width(&near.key));
            let price_blank = " ".repeat(prices - width(words));
            let (cosine, key, why) = (near.cosine, &near.key, &near.why);
            self.row(&format!("   {cosine:.3}  {key}{key_blank}  {words}{price_blank}  {why}"))?;
        }
        let limit = story.limit()?;
        let order: Vec<&str> = first.iter().map(|near| near.key.as_str()).collect();
        self.expect(order == story::NEAREST, format!("plain similarity finds {}", order.join(", ")));
        let walks_in = first.iter().all(|near| near.price.value < limit && near.price.value != story::PRICE);
        self.expect(walks_in, "plain similarity finds a price that is right or above the limit");
        self.line("   Five prices below the limit, none of them true now. This agent pays and does not ask.")?;
        Ok(())
    }

    fn governed_recall(&mut self, story: &Story, answer: &Answer) -> Result<(), Failure> {
        self.heading(3, "What governed recall answers, and why")?;
        self.line(&format!("   {}", story::statement()))?;
        self.line("       S = similarity + words + recency + status + source")?;
        let hits: Vec<_> = answer.rows.iter().filter(|row| row.role == Role::Hit).collect();
        let shown = hits.get(..story::ANSWERS.len()).unwrap_or(&hits);
        let keys = shown.iter().map(|row| width(&row.key)).max().unwrap_or(0);
        for row in shown {
            let parts = &row.parts;
            let blank = " ".repeat(keys - width(&row.key));
            self.row(&format!(
                "   {:.3}  {:>11.3}  {:>6.3}  {:>8.3}  {:>7.1}  {:>7.1}  {}{blank}  {}",
                row.score,
                parts.similarity,
                parts.words,
                parts.recency,
                parts.status,
                parts.source,
                row.key,
                story.words_of(row, answer),
            ))?;
        }
        let order: Vec<&str> = shown.iter().map(|row| row.key.as_str()).collect();
        let [answer_key, evidence @ ..] = story::ANSWERS;
        let expected = order.first() == Some(&answer_key) && evidence.iter().all(|key| order.contains(key));
        self.expect(expected, format!("governed recall finds {}", order.join(", ")));
        let back = story::KEPT_OUT.iter().find(|key| hits.iter().any(|row| row.key == **key));
        if let Some(key) = back {
            self.surprises.push(format!("{key} is not kept out"));
        }
        for line in story.why_kept_out(answer)? {
            self.line(&format!("   {line}"))?;
        }
        let price = shown.first().map(|row| story::priced(&story.words_of(row, answer)));
        let asks = price.as_ref().is_some_and(|price| price.value > story.limit().unwrap_or(f64::INFINITY));
        self.expect(asks, "the price found is not above the limit");
        let price = price.map(|price| price.words).unwrap_or_default();
        self.line(&format!("   {price} is above the limit. This agent asks first."))?;
        Ok(())
    }

    fn evidence(&mut self, story: &Story, answer: &Answer) -> Result<(), Failure> {
        self.heading(4, "What the answer rests on")?;
        let Some(row) = answer.rows.first() else {
            self.surprises.push("governed recall finds nothing".to_owned());
            return Ok(());
        };
        self.row(&format!("   {}  {}  {}", row.key, row.kind.as_str(), row.text))?;
        let cells: Vec<[String; 6]> = row
            .citations
            .iter()
            .map(|citation| {
                let text = citation.text.as_deref().unwrap_or_default();
                let hash = citation.hash.get(..8).unwrap_or_default();
                [
                    citation.target.clone(),
                    citation.tool.clone().unwrap_or_default(),
                    format!("{}[{}..{}]", citation.field, citation.start, citation.end),
                    format!("\"{text}\""),
                    hash.to_owned(),
                    citation.verdict.as_str().to_owned(),
                ]
            })
            .collect();
        let widest = |column: usize| cells.iter().map(|row| row.get(column).map_or(0, |cell| width(cell))).max();
        let widths: Vec<usize> = (0..6).map(|column| widest(column).unwrap_or(0)).collect();
        for (index, row) in cells.iter().enumerate() {
            let padded =
                row.iter().zip(&widths).map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide - width(cell))));
            self.line(&format!("   {}{}", branch(index + 1 == cells.len()), padded.collect::<Vec<_>>().join("  ")))?;
        }
        let sound = !row.citations.is_empty() && row.citations.iter().all(|citation| citation.verdict == Verdict::Ok);
        self.expect(sound, format!("the evidence of {} does not hold in {}", row.key, story.database.path().display()));
        self.line("   Each span was read from the log just now and hashed, and the hash is the one that was")?;
        self.line("   stored with the fact. Every row that cites something is checked so when it is read.")?;
        Ok(())
    }

    fn one_byte(&mut self) -> Result<(), Failure> {
        self.heading(5, "One byte is changed, in a copy")?;
        let copy = ChangedCopy::of(self.path, story::QUOTE, story::FORGED)?;
        self.line("   In a copy, the 2 of \"268 EUR each\" becomes a 1: a fare below the limit. Its verify says:")?;
        let faults = copy.faults()?;
        if let Some(first) = faults.first() {
            for line in wrap(&copy.within(&first.to_string()), COLUMNS - 3) {
                self.line(&format!("   {line}"))?;
            }
        }
        if let Some(more) = faults.len().checked_sub(1).filter(|more| *more > 0) {
            self.line(&format!("   and {more} more, of the items that it holds and that rest on it."))?;
        }
        let found = faults.iter().any(|fault| copy.is_where_it_was_changed(fault));
        self.expect(found, "verify does not find the byte that was changed");
        let shown = copy.shows(story::FORGED)?;
        let database = Holotype::open(self.path, Options::read_only())?;
        let report = database.verify(&mut |_, _| {})?;
        let name = self.path.display();
        self.expect(report.is_clean(), format!("verify finds something in {name}"));
        self.expect(!shown, "the copy shows the forged fare as evidence");
        self.line(&format!(
            "   Asked again, the copy does not show 168 EUR as evidence. In {name}, verify finds nothing."
        ))?;
        Ok(())
    }
}
