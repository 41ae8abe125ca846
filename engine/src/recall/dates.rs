//! The dates that a question names, as windows of time.
//!
//! | written | window |
//! |---|---|
//! | `2026-03-05`, `5 March 2026`, `March 5th, 2026` | the day |
//! | `March 5`, `5th of March` | the latest such day that is not after the reader |
//! | `March 2026`, `in March` | the month; without a year, the latest that is not after the reader |
//! | `today`, `yesterday`, `3 days ago` | a day before the reader's |
//! | `last week`, `2 weeks ago`, `last month` | seven days, or thirty, that end as long before the reader |
//!
//! People speak of a day on it and in the days after: a window begins [`BEFORE`] before the first day and ends
//! [`AFTER`] after its beginning or, for several days, after the last begins. Names of months are English, whole or
//! their first three letters; `may` and `march` in lower case are other words.

use crate::memory::extract::MONTHS;
use crate::model::time::DAY_US;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan};
use std::ops::Range;

/// A window begins half a day before a date and ends three days after the date begins.
const BEFORE: i64 = DAY_US / 2;
const AFTER: i64 = 3 * DAY_US;
/// Words of a question that are looked at.
const MAX_WORDS: usize = 256;

/// The windows of time of the dates that a text names, in microseconds since the epoch. `now` is the reader's time.
pub(crate) fn windows(text: &str, now: Option<i64>) -> Vec<Range<i64>> {
    let separators = |c: char| c.is_whitespace() || matches!(c, ',' | '?' | '!' | ';' | '(' | ')' | '"' | '\'');
    let words: Vec<&str> = text
        .split(separators)
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .collect();
    let today =
        now.and_then(|now| Timestamp::from_microsecond(now).ok()).map(|now| Offset::UTC.to_datetime(now).date());
    let mut windows = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let rest = &words[at..];
        let found = absolute(rest, today).or_else(|| relative(rest, today?));
        let (days, taken) = found.unwrap_or((None, 1));
        windows.extend(days.and_then(|(first, last)| window(first, last)));
        at += taken;
    }
    windows
}

/// The first and the last day of a date.
type Days = (Date, Date);

/// A date at the beginning of some words and the words it takes; no days for a date that the calendar lacks.
fn absolute(words: &[&str], today: Option<Date>) -> Option<(Option<Days>, usize)> {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    if let Ok(date) = word(0).parse::<Date>() {
        return word(0).contains('-').then_some((Some((date, date)), 1));
    }
    let of = usize::from(word(1).eq_ignore_ascii_case("of"));
    if let (Some(day), Some(month)) = (day_number(word(0)), month_number(word(1 + of))) {
        let (date, taken) = dated(year_number(word(2 + of)), month, day, today);
        return Some((date.map(|date| (date, date)), 2 + of + taken));
    }
    let month = month_number(word(0))?;
    if let Some(day) = day_number(word(1)) {
        let (date, taken) = dated(year_number(word(2)), month, day, today);
        return Some((date.map(|date| (date, date)), 2 + taken));
    }
    let is_named = word(0).starts_with(char::is_uppercase);
    let year = year_number(word(1));
    let first = match year {
        Some(year) => Date::new(year, month, 1).ok(),
        None if is_named => latest(month, 1, today),
        None => return None,
    };
    Some((first.map(|first| (first, first.last_of_month())), 1 + usize::from(year.is_some())))
}

/// A day of a stated year, which takes a word more, or of the latest year that is not after the reader.
fn dated(year: Option<i16>, month: i8, day: i8, today: Option<Date>) -> (Option<Date>, usize) {
    match year {
        Some(year) => (Date::new(year, month, day).ok(), 1),
        None => (latest(month, day, today), 0),
    }
}

fn latest(month: i8, day: i8, today: Option<Date>) -> Option<Date> {
    let today = today?;
    let of_year = |year: i16| Date::new(year, month, day).ok();
    of_year(today.year()).filter(|date| *date <= today).or_else(|| of_year(today.year() - 1))
}

/// A time before the reader's at the beginning of some words.
fn relative(words: &[&str], today: Date) -> Option<(Option<Days>, usize)> {
    let lower: Vec<String> = words.iter().take(3).map(|word| word.to_lowercase()).collect();
    let word = |at: usize| lower.get(at).map(String::as_str).unwrap_or_default();
    let back = |days: i64| today.checked_sub(days.days()).ok();
    let length = |unit: &str| match unit.trim_end_matches('s') {
        "day" => Some(1),
        "week" => Some(7),
        "month" => Some(30),
        _ => None,
    };
    match word(0) {
        "today" => return Some((Some((today, today)), 1)),
        "yesterday" => return Some((back(1).map(|day| (day, day)), 1)),
        "last" => {
            let days = length(word(1)).filter(|days| *days > 1)?;
            return Some((back(2 * days).zip(back(1)), 2));
        }
        _ => {}
    }
    let count = match word(0) {
        "a" | "one" => 1,
        "two" => 2,
        "three" => 3,
        number => number.parse::<i64>().ok().filter(|number| (1..=1_000).contains(number))?,
    };
    let days = count * length(word(1)).filter(|_| word(2) == "ago")?;
    let around = days / count / 2;
    Some((back(days + around).zip(back(days - around)), 3))
}

/// `5`, `5th`, `05`
fn day_number(word: &str) -> Option<i8> {
    let number = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    number.parse().ok().filter(|day| (1..=31).contains(day) && number.len() <= 2)
}

fn year_number(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| (1000..=9999).contains(year))
}

/// The number of a month by its name, or its first three letters.
fn month_number(word: &str) -> Option<i8> {
    if matches!(word, "may" | "march" | "mar") {
        return None;
    }
    let word = word.to_lowercase();
    let is_name = |month: &str| month == word || (word.len() == 3 && month.starts_with(&word)) || word == "sept";
    let place = MONTHS.iter().position(|month| is_name(month))?;
    let place = if word == "sept" { 8 } else { place };
    i8::try_from(place + 1).ok()
}

fn window(first: Date, last: Date) -> Option<Range<i64>> {
    let micros = |date: Date| Some(Offset::UTC.to_timestamp(date.to_datetime(Time::midnight())).ok()?.as_microsecond());
    Some(micros(first)?.saturating_sub(BEFORE)..micros(last)?.saturating_add(AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time;
    use proptest::prelude::*;

    fn days(text: &str) -> Vec<String> {
        let now = time::parse("2026-03-20T15:00:00Z").unwrap();
        let day = |micros: i64| time::format(micros)[..10].to_owned();
        let shown = |window: &Range<i64>| match window.end - window.start == BEFORE + AFTER {
            true => day(window.start + BEFORE),
            false => format!("{} to {}", day(window.start + BEFORE), day(window.end - AFTER)),
        };
        windows(text, Some(now)).iter().map(shown).collect()
    }

    #[test]
    fn dates_of_questions() {
        for (text, wanted) in [
            ("What happened on 2023-05-07?", &["2023-05-07"][..]),
            ("What did Tim read on 8th December, 2023?", &["2023-12-08"]),
            ("the 5th of March", &["2026-03-05"]),
            ("on May 7, 2023 and June 3", &["2023-05-07", "2025-06-03"]),
            ("in May 2023", &["2023-05-01 to 2023-05-31"]),
            ("What did she paint in December?", &["2025-12-01 to 2025-12-31"]),
            ("What did I say yesterday?", &["2026-03-19"]),
            ("3 days ago", &["2026-03-17"]),
            ("two weeks ago", &["2026-03-03 to 2026-03-09"]),
            ("the meeting of last week", &["2026-03-06 to 2026-03-19"]),
            ("may I march 5 miles? 31 February 2023", &[]),
            ("room 5, UA123, 1999", &[]),
        ] {
            assert_eq!(days(text), wanted, "{text}");
        }
        assert!(windows("yesterday, May 7", None).is_empty());
        assert_eq!(windows("7 May 2023", None).len(), 1);
    }

    proptest! {
        #[test]
        fn windows_are_not_empty(
            words in prop::collection::vec("[0-9]{1,5}|May 5|last|week|days|ago|of|Dec|20[0-9]{2}-0[0-9]-10", 0..8)
        ) {
            let text = words.join(" ");
            for window in windows(&text, Some(i64::MAX)).into_iter().chain(windows(&text, Some(0))) {
                prop_assert!(window.start < window.end);
            }
        }
    }
}
