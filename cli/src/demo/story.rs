//! The story of the demo (`demo/README.md`), and the values that the database has for it.

use crate::failure::{Failure, Problem, Status};
use holotype::answer::{Answer, Output, Row, Table};
use holotype::cell::Cell;
use holotype::embed::{Embedder, HashingEmbedder};
use holotype::interchange::{self, ImportOptions};
use holotype::query::Params;
use holotype::{Durability, Edge, Holotype, ItemId, Options};
use std::path::Path;
use std::sync::Arc;

const STORY: &str = include_str!("../../demo/story.jsonl");

/// The question.
pub(super) const QUESTION: &str = "What does the flight to Lisbon cost now?";
const EPISODE: &str = "trip-42";
/// The events that section 1 shows.
pub(super) const EVENTS: [&str; 8] = ["t5", "t6", "t24", "t39", "t51", "t53", "t54", "t56"];
/// The first items by plain similarity.
pub(super) const NEAREST: [&str; 5] = ["t56", "t51", "t5", "t39", "t6"];
/// The filter on metadata that is tried beside plain similarity.
pub(super) const FILTER: &str = "status = success and version = 'v3'";
/// The first items by similarity that pass the filter: two fares of earlier days, then the answer.
pub(super) const FILTERED: [&str; 3] = ["t39", "t6", "t53"];
/// The first rows of governed recall: the newest search, and the fact that rests on it.
pub(super) const ANSWERS: [&str; 2] = ["t53", "fare-thu"];
/// The lines of the first row: earlier fares of the same search, and the guess.
pub(super) const LINES_OF_FIRST: [&str; 4] = ["t39", "t6", "t24", "t5"];
/// Items that governed recall keeps out.
pub(super) const KEPT_OUT: [&str; 4] = ["t56", "t51", "fare-mon", "fare-wed"];
/// The right price.
pub(super) const PRICE: f64 = 268.0;
/// The words of the log that are changed in a copy, and what they become.
pub(super) const QUOTE: &str = "268 EUR each";
pub(super) const FORGED: &str = "168 EUR each";

/// The statement that governed recall answers.
pub(super) fn statement() -> String {
    format!("recall '{QUESTION}' in episode '{EPISODE}'")
}

/// The story in a database.
pub(super) struct Story {
    pub(super) database: Holotype,
    pub(super) transactions: u64,
}

/// One line of what happened.
pub(super) struct Event {
    pub(super) when: String,
    pub(super) who: String,
    pub(super) text: String,
}

/// An item near the question.
#[derive(Clone)]
pub(super) struct Near {
    pub(super) cosine: f32,
    pub(super) key: String,
    pub(super) price: Priced,
    /// Why its price is not the price now.
    pub(super) why: String,
}

/// A price in a text.
#[derive(Clone)]
pub(super) struct Priced {
    pub(super) words: String,
    pub(super) value: f64,
}

impl Story {
    /// Creates a database with the story in it.
    pub(super) fn create(path: &Path) -> Result<Story, Failure> {
        let database = Holotype::create(path, Options::default())?;
        let embedder: Option<Arc<dyn Embedder>> = Some(Arc::new(HashingEmbedder::default()));
        let options = ImportOptions { durability: Durability::Sync, skip_bad: false, embedder };
        let report = interchange::import(&database, "story.jsonl", STORY.as_bytes(), None, &options, &mut |_| {})?;
        Ok(Story { database, transactions: report.transactions })
    }

    fn table(&self, statement: &str) -> Result<Table, Failure> {
        match self.database.query(statement, &Params::new())?.pop() {
            Some(Output::Table(table)) => Ok(table),
            _ => Err(Problem::new(Status::Found, "demo", format!("`{statement}` gave no table")).into()),
        }
    }

    /// The number of items of a sort.
    pub(super) fn count(&self, noun: &str) -> Result<u64, Failure> {
        let table = self.table(&format!("count {noun}"))?;
        let count = table.rows.first().and_then(|row| row.iter().flatten().find_map(whole));
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    /// The user's instruction about the limit, as the fact that rests on it quotes it.
    pub(super) fn limit_quote(&self) -> Result<String, Failure> {
        let snapshot = self.database.snapshot();
        let citations = match snapshot.get("limit")? {
            Some(item) => snapshot.citations(item.id)?,
            None => Vec::new(),
        };
        Ok(citations.into_iter().find_map(|citation| citation.text).unwrap_or_default())
    }

    /// The price above which the agent has to ask.
    pub(super) fn limit(&self) -> Result<f64, Failure> {
        Ok(priced(&self.limit_quote()?).value)
    }

    /// The events, in order.
    pub(super) fn events(&self) -> Result<Vec<Event>, Failure> {
        let keys: Vec<String> = EVENTS.iter().map(|key| format!("'{key}'")).collect();
        let table = self.table(&format!(
            "find traces in episode '{EPISODE}' where key in ({}) order by step return time, tool, speaker, text",
            keys.join(", ")
        ))?;
        let event = |row: &Vec<Option<Cell>>| {
            let [time, tool, speaker, text] = row.as_slice() else { return None };
            Some(Event {
                when: time.as_ref().and_then(day_and_hour)?,
                who: text_of(tool).or_else(|| text_of(speaker)).unwrap_or_default(),
                text: text_of(text).unwrap_or_default(),
            })
        };
        Ok(table.rows.iter().filter_map(event).collect())
    }

    /// Day and hour at which the reader stands.
    pub(super) fn asked_at(&self) -> Result<String, Failure> {
        let time = self.governed()?.at.time.unwrap_or_default();
        let hour = day_and_hour(&Cell::Time(time)).unwrap_or_default();
        let hour = hour.split_once(' ').map_or("", |(_, hour)| hour).to_owned();
        Ok(format!("{}, {hour}", DAYS[weekday(time)]))
    }

    /// The answer of governed recall.
    pub(super) fn governed(&self) -> Result<Answer, Failure> {
        match self.database.query(&statement(), &Params::new())?.pop() {
            Some(Output::Answer(answer)) => Ok(*answer),
            _ => Err(Problem::new(Status::Found, "demo", "the recall gave no answer").into()),
        }
    }

    /// The active recalls and traces of the episode that pass the filter, by their cosine with the question alone,
    /// nearest first.
    pub(super) fn nearest(&self, filter: Option<&str>) -> Result<Vec<Near>, Failure> {
        let question = HashingEmbedder::default().embed(QUESTION).unwrap_or_default();
        let at = self.governed()?.at;
        let filter = filter.map(|filter| format!("and {filter} ")).unwrap_or_default();
        let table = self.table(&format!(
            "find items in episode '{EPISODE}' where layer in (recall, trace) and active = true {filter}\
             return item, key, text, tool, status, source, version, time, fields.error, fields.taxes"
        ))?;
        let snapshot = self.database.snapshot();
        let mut nearest = Vec::new();
        for row in &table.rows {
            let [item, key, text, tool, status, source, version, time, error, taxes] = row.as_slice() else { continue };
            let Some(id) = item.as_ref().and_then(whole).and_then(|id| u32::try_from(id).ok()) else { continue };
            let Some(vector) = snapshot.vector(ItemId(id))? else { continue };
            let named = |cell: &Option<Cell>, name: &str| text_of(cell).as_deref() == Some(name);
            let tool = text_of(tool).unwrap_or_default();
            let why = if named(status, "failed") {
                let error = text_of(error).unwrap_or_default();
                format!("{tool} failed: {}", error.split(',').next().unwrap_or_default())
            } else if text_of(version) != at.version {
                let (version, taxes) = (text_of(version).unwrap_or_default(), text_of(taxes).unwrap_or_default());
                format!("{tool} at version {version}: taxes {taxes}")
            } else if named(source, "assistant") {
                "a guess of the assistant".to_owned()
            } else {
                let days = days_between(time, at.time);
                match days {
                    0 => "of today".to_owned(),
                    1 => "one day old".to_owned(),
                    days => format!("{} days old", in_words(days)),
                }
            };
            let text = text_of(text).unwrap_or_default();
            nearest.push(Near {
                cosine: cosine(&question, &vector),
                key: text_of(key).unwrap_or_default(),
                price: priced(&text),
                why,
            });
        }
        nearest.sort_by(|a, b| b.cosine.total_cmp(&a.cosine));
        Ok(nearest)
    }

    /// The words that the row's evidence quotes, or that quote the row, up to a comma.
    pub(super) fn words_of(&self, row: &Row, answer: &Answer) -> String {
        let of_itself = |text: &str| text == row.text;
        let quoted = row.citations.iter().filter_map(|citation| citation.text.as_deref()).find(|text| !of_itself(text));
        let quoting =
            answer.rows.iter().flat_map(|other| &other.citations).filter(|citation| citation.target == row.key);
        let words =
            quoted.or_else(|| quoting.filter_map(|citation| citation.text.as_deref()).find(|text| !of_itself(text)));
        words.unwrap_or(&row.text).split(',').next().unwrap_or_default().to_owned()
    }

    /// The reasons why items are kept out, read from the database.
    pub(super) fn why_kept_out(&self, answer: &Answer) -> Result<[String; 2], Failure> {
        let snapshot = self.database.snapshot();
        let table = self.table("find traces where key in ('t56', 't51') order by step return status, version")?;
        let cell = |row: usize, column: usize| table.rows.get(row).and_then(|row| text_of(row.get(column)?));
        let failed = cell(1, 0).unwrap_or_default();
        let version = cell(0, 1).unwrap_or_default();
        let reader = answer.at.version.clone().unwrap_or_default();
        let mut superseded = Vec::new();
        for key in ["fare-mon", "fare-wed"] {
            if let Some(item) = snapshot.get(key)?
                && !snapshot.linking(item.id, Edge::Supersedes)?.is_empty()
            {
                superseded.push(key);
            }
        }
        Ok([
            format!(
                "Kept out: t56, it {failed}; t51, its version is {version} and the reader's {reader}; {} and",
                superseded.first().copied().unwrap_or_default()
            ),
            format!("{}, superseded.", superseded.get(1).copied().unwrap_or_default()),
        ])
    }
}

/// The price in a text: the words around `EUR`.
pub(super) fn priced(text: &str) -> Priced {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| word.trim_matches(|c: char| !c.is_alphanumeric()) == "EUR").unwrap_or(0);
    let before = |back: usize| at.checked_sub(back).and_then(|at| words.get(at)).copied().unwrap_or_default();
    let value = before(1).parse().unwrap_or(f64::NAN);
    let about = if before(2) == "about" { "about " } else { "" };
    Priced { words: format!("{about}{} EUR", before(1)), value }
}

fn text_of(cell: &Option<Cell>) -> Option<String> {
    cell.as_ref().map(Cell::to_string)
}

fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Integer(number) => Some(*number),
        _ => None,
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAY_US: i64 = holotype::time::DAY_US;

/// The day of the week, from Sunday; 1 January 1970 was a Thursday.
fn weekday(time: i64) -> usize {
    usize::try_from((time.div_euclid(DAY_US) + 4).rem_euclid(7)).unwrap_or(0)
}

/// An instant as `Mon 08:36`.
fn day_and_hour(cell: &Cell) -> Option<String> {
    let Cell::Time(time) = cell else { return None };
    Some(day_and_hour_of(*time))
}

/// The day and the hour of a time: `Thu 09:05`.
pub(super) fn day_and_hour_of(time: i64) -> String {
    let minutes = time.rem_euclid(DAY_US) / 60_000_000;
    let day = DAYS.get(weekday(time)).and_then(|day| day.get(..3)).unwrap_or_default();
    format!("{day} {:02}:{:02}", minutes / 60, minutes % 60)
}

/// Midnights between an instant and the reader.
fn days_between(time: &Option<Cell>, reader: Option<i64>) -> i64 {
    match (time, reader) {
        (Some(Cell::Time(time)), Some(reader)) => reader.div_euclid(DAY_US) - time.div_euclid(DAY_US),
        _ => 0,
    }
}

fn in_words(number: i64) -> String {
    let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let known = usize::try_from(number).ok().and_then(|number| words.get(number));
    known.map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_the_words_around_eur() {
        let price = |text| {
            let Priced { words, value } = priced(text);
            (words, value)
        };
        assert_eq!(price("it does not cost much now, about 160 EUR. Let me look."), ("about 160 EUR".into(), 160.0));
        assert_eq!(price("9 March, 11:35: 268 EUR per adult"), ("268 EUR".into(), 268.0));
        assert!(price("no price").1.is_nan());
    }

    #[test]
    fn days_are_named() {
        let monday = 1_771_230_960_000_000;
        assert_eq!(day_and_hour(&Cell::Time(monday)).as_deref(), Some("Mon 08:36"));
        assert_eq!(DAYS[weekday(monday)], "Monday");
        assert_eq!(days_between(&Some(Cell::Time(monday)), Some(monday + 2 * DAY_US)), 2);
    }
}
