//! `whatsapp`: an exported chat, `_chat.txt` or `WhatsApp Chat with NAME.txt`.
//!
//! A message begins with its time, `[05/01/2026, 10:00:00] Ana: …` or `1/5/26, 10:00 AM - Ana: …`; lines without one go
//! on with it. A message has no id: its key is the hash of its time, speaker and text, with a number where they repeat,
//! so that a later export of the same chat adds only what is new.
//!
//! The phone decides if the day or the month comes first. The file shows it: a number above 12, or that
//! times never go back. Where both orders fit, the import ends and asks for `--map order=dmy` or `order=mdy`.

use super::names;
use crate::entry::{Trace, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use holotype::{Kind, Source};
use jiff::civil::DateTime;
use std::collections::HashMap;

const PREFIX: &str = "whatsapp";
/// Characters without width that the exports hold.
const MARKS: [char; 4] = ['\u{200e}', '\u{200f}', '\u{202a}', '\u{202c}'];
/// The longest message, in bytes.
const MAX_MESSAGE_LEN: usize = 8 << 20;

/// The order of the parts of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Day,
    Month,
    Year,
}

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Whatsapp, files)? {
        let base = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".txt");
        let stem = if base == "_chat" { files.stem() } else { base.to_owned() };
        let stem = stem.trim_start_matches("WhatsApp Chat with ").trim_start_matches("WhatsApp Chat - ").to_owned();
        let order = heads(files, name, intake)?;
        let mut chat = Chat { episode: format!("{PREFIX}/{stem}"), stem, order, open: None, seen: HashMap::new() };
        intake.text_lines(files, name, &mut |intake, line| chat.line(intake, line))?;
        chat.end(intake)?;
    }
    Ok(())
}

/// Reads all times of a file to learn the order of their parts. Standard input, read once only, needs `order`.
fn heads(files: &Files, name: &str, intake: &mut Intake<'_>) -> Result<Option<Order>, ImportError> {
    match intake.options().map.given("order") {
        Some("dmy") => return Ok(Some(Order::Day)),
        Some("mdy") => return Ok(Some(Order::Month)),
        Some("ymd") => return Ok(Some(Order::Year)),
        Some(other) => {
            return Err(ImportError::Option(format!("--map: got order={other}, expected order=dmy, mdy or ymd")));
        }
        None => {}
    }
    if !files.can_read_again() {
        return Ok(None);
    }
    intake.in_file(&files.shown(name));
    let mut lines = crate::text::Lines::new(files.open_text(name)?);
    let mut fits = Fits::default();
    let failed = |source| ImportError::File { path: files.shown(name).into(), source };
    while let Some((_, line)) = lines.read().map_err(failed)? {
        if let Some(head) = line.ok().and_then(Head::parse) {
            fits.add(&head);
        }
    }
    Ok(fits.order())
}

/// The orders that all times so far fit.
#[derive(Default)]
struct Fits {
    last: [Option<DateTime>; 2],
    wrong: [bool; 2],
    back: [u64; 2],
    is_year_first: bool,
    count: u64,
}

impl Fits {
    fn add(&mut self, head: &Head<'_>) {
        self.count += 1;
        self.is_year_first |= head.date[0] > 31;
        for (at, order) in [Order::Day, Order::Month].into_iter().enumerate() {
            match head.clock(order) {
                None => self.wrong[at] = true,
                time => {
                    self.back[at] += u64::from(self.last[at] > time);
                    self.last[at] = time;
                }
            }
        }
    }

    fn order(&self) -> Option<Order> {
        match (self.is_year_first, self.wrong) {
            (true, _) => Some(Order::Year),
            (_, [false, true]) => Some(Order::Day),
            (_, [true, false]) => Some(Order::Month),
            _ if self.back[0] == 0 && self.back[1] > 0 => Some(Order::Day),
            _ if self.back[1] == 0 && self.back[0] > 0 => Some(Order::Month),
            _ => None,
        }
    }
}

/// The beginning of a message.
struct Head<'l> {
    shown: &'l str,
    date: [i16; 3],
    time: (i8, i8, i8),
    rest: &'l str,
}

impl<'l> Head<'l> {
    fn parse(line: &'l str) -> Option<Head<'l>> {
        let line = line.trim_start_matches(MARKS);
        let (shown, rest) = match line.strip_prefix('[') {
            Some(inner) => inner.split_once("] ").or_else(|| inner.split_once(']'))?,
            None => line.split_once(" - ")?,
        };
        if shown.len() > 48 || !shown.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (date, clock) = shown.split_once(", ").or_else(|| shown.split_once(' '))?;
        let mut parts =
            date.split(['/', '.', '-']).filter(|part| !part.is_empty()).map(|part| part.trim().parse::<i16>());
        let date = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
        if parts.next().is_some() {
            return None;
        }
        Some(Head { shown, date, time: clock_of(clock)?, rest: rest.trim_start_matches(MARKS) })
    }

    /// The time in an order of the date's parts.
    fn clock(&self, order: Order) -> Option<DateTime> {
        let [first, second, third] = self.date;
        let (year, month, day) = match order {
            Order::Day => (third, second, first),
            Order::Month => (third, first, second),
            Order::Year => (first, second, third),
        };
        let year = if (0..100).contains(&year) { year + 2000 } else { year };
        let (hour, minute, second) = self.time;
        DateTime::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?, hour, minute, second, 0).ok()
    }
}

/// `10:00`, `10:00:00`, `10:00 PM`, `10.00 p. m.`
fn clock_of(text: &str) -> Option<(i8, i8, i8)> {
    let letters: String = text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let digits = text.trim_matches(|c: char| !c.is_ascii_digit());
    let mut parts = digits.split([':', '.']).map(|part| part.parse::<i8>());
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().and_then(Result::ok).unwrap_or(0);
    let hour = match letters.as_str() {
        "am" if hour == 12 => 0,
        "pm" if hour < 12 => hour + 12,
        _ => hour,
    };
    Some((hour, minute, second))
}

/// A message whose lines are being read.
struct Open {
    shown: String,
    speaker: Option<String>,
    time: Option<i64>,
    text: String,
    raw: String,
}

struct Chat {
    episode: String,
    stem: String,
    order: Option<Order>,
    open: Option<Open>,
    /// How often a message occurred.
    seen: HashMap<String, u32>,
}

impl Chat {
    fn line(&mut self, intake: &mut Intake<'_>, line: &str) -> Result<(), ImportError> {
        let Some(head) = Head::parse(line) else {
            match &mut self.open {
                Some(open) if open.text.len() + line.len() < MAX_MESSAGE_LEN => {
                    for text in [&mut open.text, &mut open.raw] {
                        text.push('\n');
                        text.push_str(line);
                    }
                }
                Some(_) => intake.bad(format!("got a longer message, expected at most {} MiB", MAX_MESSAGE_LEN >> 20)),
                None => {
                    intake.count_read();
                    intake.bad("got a line before the first message, expected a time such as [05/01/2026, 10:00:00]");
                }
            }
            return Ok(());
        };
        self.end(intake)?;
        intake.count_read();
        let Some(order) = self.order else {
            let message = format!(
                "got the date '{}', in which day and month cannot be told apart, expected --map order=dmy or order=mdy",
                head.shown
            );
            return Err(intake.error(message));
        };
        let Some(clock) = head.clock(order) else {
            intake.bad(format!("got the time '{}', expected one that exists", head.shown));
            return Ok(());
        };
        let time = intake.time_of_clock(clock, head.shown)?;
        let said = head.rest.split_once(": ").or_else(|| head.rest.strip_suffix(':').map(|name| (name, "")));
        let (speaker, text) = match said {
            Some((speaker, text)) if speaker.len() <= 100 => (Some(speaker.to_owned()), text),
            _ => (None, head.rest),
        };
        let text = text.trim_start_matches(MARKS).to_owned();
        self.open = Some(Open { shown: head.shown.to_owned(), speaker, time, text, raw: line.to_owned() });
        Ok(())
    }

    /// Writes the message whose lines were read.
    fn end(&mut self, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let speaker = open.speaker.clone().unwrap_or_default();
        let id = hash(&format!("{}\0{speaker}\0{}", open.shown, open.text));
        let count = self.seen.entry(id.clone()).or_default();
        *count += 1;
        let id = if *count == 1 { id } else { format!("{id}-{count}") };
        let own = key(&[PREFIX, &self.stem, &id]);
        if open.text.trim().is_empty() {
            intake.ignore();
            return Ok(());
        }
        let trace = match open.speaker {
            Some(speaker) => {
                let turn = Trace::turn(self.episode.clone(), own, "", open.text);
                Trace { speaker: Some(speaker), source: Source::User, ..turn }
            }
            // "Messages are end-to-end encrypted", "Ana added Ben".
            None => Trace::new(Kind::Observation, self.episode.clone(), own, open.text).source(Source::System),
        };
        intake.trace(trace.time(open.time).raw(open.raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lines: &[&str]) -> Option<Order> {
        let mut fits = Fits::default();
        for line in lines {
            fits.add(&Head::parse(line).unwrap());
        }
        fits.order()
    }

    #[test]
    fn both_phones_forms_are_read() {
        let head = Head::parse("\u{200e}[31/12/2025, 21:05:09] Ana: hi").unwrap();
        assert_eq!((head.date, head.time, head.rest), ([31, 12, 2025], (21, 5, 9), "Ana: hi"));
        let head = Head::parse("1/5/26, 9:05\u{202f}PM - Ben: a - b").unwrap();
        assert_eq!((head.date, head.time, head.rest), ([1, 5, 26], (21, 5, 0), "Ben: a - b"));
        assert_eq!(clock_of("12:30 a. m."), Some((0, 30, 0)));
        for line in ["", "no head", "[sticker] hello", "10 apples - 3", "1/2/3/4, 10:00 - x"] {
            assert!(Head::parse(line).is_none(), "{line}");
        }
    }

    #[test]
    fn the_file_decides_the_order_or_nobody_does() {
        assert_eq!(order(&["13/1/26, 10:00 - A: x"]), Some(Order::Day));
        assert_eq!(order(&["1/13/26, 10:00 - A: x"]), Some(Order::Month));
        assert_eq!(order(&["2/1/26, 10:00 - A: x", "1/2/26, 10:00 - A: x"]), Some(Order::Day));
        assert_eq!(order(&["2026-01-05, 10:00 - A: x"]), Some(Order::Year));
        assert_eq!(order(&["1/2/26, 10:00 - A: x"]), None);
    }
}
