//! `holotype demo`: one question, asked twice, about a story that comes with the program.
//!
//! `demo/script.md` is the layout of the output. The narrative is fixed; every count, text, score, span, verdict, place
//! and hash in it is computed while the demo runs. Where an order differs from the story's, the demo says so and ends
//! with status 1. With `--format json` or `jsonl` the same values are one JSON document, and no prose is printed.
//!
//! The database is made in a directory for temporary files and removed at the end, unless `--keep` names another.

mod change;
mod scratch;
mod story;

use crate::failure::{Failure, Status};
use crate::render::text::{cut, width, wrap};
use crate::render::{self, Format, branch};
use crate::{database, interrupt};
use change::ChangedCopy;
use holotype::answer::{Answer, Role, Row};
use holotype::plural::counted;
use holotype::{Holotype, Layer, Options, Verdict, hex};
pub(crate) use scratch::Scratch;
use serde_json::{Map, Value, json};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use story::{Near, Priced, Story};

/// The widest line.
const COLUMNS: usize = 96;
/// The widest line of what happened.
const EVENT_COLUMNS: usize = 90;

/// The name of the database in the commands of section 7, if the database is not kept.
const NAME: &str = "demo.holo";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep the database of the demo in this new directory [default: it is removed at the end]
    #[arg(long, value_name = "PATH")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    // Ctrl-C stops the demo between two sections, so that nothing is left behind.
    let _deferred = interrupt::defer(1);
    let scratch = if args.keep.is_none() { Some(Scratch::new()?) } else { None };
    let path = match (&args.keep, &scratch) {
        (Some(path), _) => path.clone(),
        (None, scratch) => scratch.as_ref().map_or_else(|| PathBuf::from(NAME), |scratch| scratch.path().join(NAME)),
    };
    let is_json = matches!(format, Format::Json | Format::Jsonl);
    let mut out: Box<dyn Write> =
        if is_json { Box::new(io::sink()) } else { Box::new(BufWriter::new(io::stdout().lock())) };
    let mut telling = Telling { out: &mut out, path: &path, facts: Map::new(), surprises: Vec::new() };
    tell(&mut telling, args.keep.as_deref())?;
    let Telling { mut facts, surprises, .. } = telling;
    out.flush()?;
    drop(out);
    if is_json {
        facts.insert("surprises".into(), surprises.as_slice().into());
        render::write_fact(&mut io::stdout().lock(), &facts.into(), "", format)?;
    }
    for surprise in &surprises {
        database::note(&format!("the result differs from the story: {surprise}"));
    }
    Ok(if surprises.is_empty() { Status::Done } else { Status::Found })
}

fn tell<W: Write>(telling: &mut Telling<'_, W>, kept: Option<&Path>) -> Result<(), Failure> {
    let stopped = || if interrupt::asked() { Err(Failure::Interrupted) } else { Ok(()) };
    telling.line("holotype demo: one question, asked twice.")?;
    telling.fact("question", story::QUESTION);
    telling.fact("kept", kept.map(|path| path.display().to_string()));

    let story = Story::create(telling.path)?;
    telling.what_happened(&story)?;
    stopped()?;
    telling.plain_similarity(&story)?;
    stopped()?;
    let answer = story.governed()?;
    telling.governed_recall(&story, &answer)?;
    telling.evidence(&story, &answer)?;
    let head = story.database.head();
    story.database.close()?;

    stopped()?;
    telling.one_byte()?;
    stopped()?;
    telling.heading(6, "The head of the log")?;
    telling.line(&format!("   commit {}  {}", head.commit, hex(&head.hash)))?;
    telling.fact("head", json!({"commit": head.commit.0, "hash": hex(&head.hash)}));
    telling.line("   Keep it elsewhere: `holotype verify DB --head HASH` shows later whether the past was changed.")?;
    telling.heading(7, "Try it yourself")?;
    if kept.is_none() {
        telling.line(&format!("   holotype demo --keep {NAME}"))?;
    }
    let name = kept.map_or_else(|| NAME.to_owned(), |path| path.display().to_string());
    telling.line(&format!("   holotype query {name} \"recall 'Does Joseph need a visa?' score profile archive\""))?;
    telling.line(&format!("   holotype query {name} \"sources of 'ask-mara' depth 3\""))?;
    telling.line(&format!("   holotype repl {name}"))?;
    Ok(())
}

/// The story being told.
struct Telling<'t, W> {
    out: &'t mut W,
    path: &'t Path,
    /// The computed values, for JSON.
    facts: Map<String, Value>,
    /// The points where the result differs from the story.
    surprises: Vec<String>,
}

impl<W: Write> Telling<'_, W> {
    fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", text.trim_end())
    }

    /// Writes a line, cut if it is too long.
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

    fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    fn expect(&mut self, holds: bool, otherwise: impl Into<String>) {
        if !holds {
            self.surprises.push(otherwise.into());
        }
    }

    fn what_happened(&mut self, story: &Story) -> Result<(), Failure> {
        self.heading(1, "What happened")?;
        self.line("   An agent books a trip to Lisbon for Mara, Ines and Joseph. Its log holds")?;
        let (traces, recalls, themes) = (story.count("traces")?, story.count("recalls")?, story.count("themes")?);
        let transactions = story.transactions;
        self.line(&format!(
            "   {}, {} and {}, in {}. Mara said on the first day:",
            counted(traces, "traces"),
            counted(recalls, "recalls"),
            counted(themes, "themes"),
            counted(transactions, "transactions")
        ))?;
        let limit = story.limit_quote()?;
        self.line(&format!("   \"{limit}.\" And then:"))?;
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
        let told = |event: &story::Event| json!({"when": event.when, "who": event.who, "text": event.text});
        self.fact(
            "happened",
            json!({
                "traces": traces, "recalls": recalls, "themes": themes, "transactions": transactions, "limit": limit,
                "events": events.iter().map(told).collect::<Vec<_>>(),
            }),
        );
        self.line(&format!("\n   {}, the question: {}", story.asked_at()?, story::QUESTION))?;
        Ok(())
    }

    fn plain_similarity(&mut self, story: &Story) -> Result<(), Failure> {
        self.heading(2, "What plain similarity believes")?;
        let nearest = self.rows_of_similarity(&story.nearest(None)?, story::NEAREST.len())?;
        self.line("   Five prices below the limit, none of them true now. This agent pays and does not ask.")?;
        let limit = story.limit()?;
        self.expect_traps("plain similarity", &nearest, &story::NEAREST, story::NEAREST.len(), limit);

        self.line(&format!("\n   With a metadata filter, {}:", story::FILTER))?;
        let filtered = self.rows_of_similarity(&story.nearest(Some(story::FILTER))?, story::FILTERED.len())?;
        self.line("   The filter removes the failed call, the old version and the guess. Two fares that were true")?;
        self.line("   once come first: no filter on one item knows that a later one replaced it. It pays too.")?;
        self.expect_traps("similarity with a filter", &filtered, &story::FILTERED, 2, limit);
        let told =
            |near: &Near| json!({"cosine": near.cosine, "key": near.key, "price": near.price.words, "why": near.why});
        self.fact("similarity", nearest.iter().map(told).collect::<Vec<_>>());
        let filtered: Vec<Value> = filtered.iter().map(told).collect();
        self.fact("similarity_with_filter", json!({"filter": story::FILTER, "rows": filtered}));
        Ok(())
    }

    /// Writes the nearest items and gives those that were written.
    fn rows_of_similarity(&mut self, nearest: &[Near], most: usize) -> Result<Vec<Near>, Failure> {
        let first = nearest.get(..most).unwrap_or(nearest);
        let keys = first.iter().map(|near| width(&near.key)).max().unwrap_or(0);
        let prices = first.iter().map(|near| width(&near.price.words)).max().unwrap_or(0);
        for near in first {
            let Priced { words, .. } = &near.price;
            let key_blank = " ".repeat(keys - width(&near.key));
            let price_blank = " ".repeat(prices - width(words));
            let (cosine, key, why) = (near.cosine, &near.key, &near.why);
            self.row(&format!("   {cosine:.3}  {key}{key_blank}  {words}{price_blank}  {why}"))?;
        }
        Ok(first.to_vec())
    }

    /// Expects this order, and wrong prices below the limit in its first `traps` rows.
    fn expect_traps(&mut self, what: &str, found: &[Near], expected: &[&str], traps: usize, limit: f64) {
        let order: Vec<&str> = found.iter().map(|near| near.key.as_str()).collect();
        self.expect(order == expected, format!("{what} finds {}", order.join(", ")));
        let walks_in =
            found.iter().take(traps).all(|near| near.price.value < limit && near.price.value != story::PRICE);
        self.expect(walks_in, format!("{what} finds a price that is right or above the limit"));
    }

    fn governed_recall(&mut self, story: &Story, answer: &Answer) -> Result<(), Failure> {
        self.heading(3, "What governed recall answers, and why")?;
        self.fact("governed_recall", json!({"statement": story::statement(), "answer": answer.to_json(None)}));
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
            for line in &row.lines {
                let when = line.time.map(story::day_and_hour_of).unwrap_or_default();
                let (order, key) = (line.order.as_str(), &line.key);
                self.row(&format!("          {order} ({when}): {}  {key}", story::priced(&line.text).words))?;
            }
        }
        self.line("   The searches and the guess speak of one fare. The newest search leads, the others are lines")?;
        self.line("   below it: nothing true is hidden, and nothing outdated comes first.")?;
        let lines: Vec<&str> = hits.first().iter().flat_map(|row| &row.lines).map(|line| line.key.as_str()).collect();
        self.expect(lines == story::LINES_OF_FIRST, format!("the first row has the lines {}", lines.join(", ")));
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
        let is_fact = |row: &&Row| row.role == Role::Hit && row.layer == Layer::Recall;
        let Some(row) = answer.rows.iter().find(is_fact) else {
            self.surprises.push("governed recall finds no fact".to_owned());
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
        self.fact("evidence", row.to_json(Some(&["key".to_owned(), "text".to_owned(), "citations".to_owned()])));
        self.line("   Each span was read from the log just now and hashed: the hash is the one stored with the")?;
        self.line("   fact. Every row that cites something is checked like this each time it is read.")?;
        Ok(())
    }

    fn one_byte(&mut self) -> Result<(), Failure> {
        self.heading(5, "One byte changed in a copy")?;
        let copy = ChangedCopy::of(self.path, story::QUOTE, story::FORGED)?;
        self.line("   In a copy, the 2 of \"268 EUR each\" becomes a 1: a fare below the limit. Its verify says:")?;
        let faults = copy.faults()?;
        if let Some(first) = faults.first() {
            for line in wrap(&copy.within(&first.to_string()), COLUMNS - 3) {
                self.line(&format!("   {line}"))?;
            }
        }
        if let Some(more) = faults.len().checked_sub(1).filter(|more| *more > 0) {
            self.line(&format!("   and {} that follow from it.", counted(more as u64, "more faults")))?;
        }
        let found = faults.iter().any(|fault| copy.is_where_it_was_changed(fault));
        self.expect(found, "verify does not find the byte that was changed");
        let shown = copy.shows(story::FORGED)?;
        let database = Holotype::open(self.path, Options::read_only())?;
        let report = database.verify(&mut |_, _| {})?;
        self.expect(report.is_clean(), "verify finds faults in the original");
        self.expect(!shown, "the copy shows the forged fare as evidence");
        self.line("   Asked again, the copy does not show 168 EUR as evidence. The original has no faults.")?;
        let told: Vec<String> = faults.iter().map(|fault| copy.within(&fault.to_string())).collect();
        self.fact(
            "changed_byte",
            json!({"faults": told, "shown_as_evidence": shown, "original_is_clean": report.is_clean()}),
        );
        Ok(())
    }
}
