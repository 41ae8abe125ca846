//! Times as other programs write them, as microseconds since the epoch.
//!
//! | text or number | is |
//! |---|---|
//! | `2026-01-05T10:00:00Z`, `…+02:00`, `…+0200`, `…+01:00[Europe/Zurich]` | that moment |
//! | `Mon, 5 Jan 2026 10:00:00 +0000` | that moment |
//! | `2026-01-05` | the start of the day in the given zone, else in UTC |
//! | `2026-01-05T10:00:00`, `2026-01-05 10:00:00.5` | that moment in the given zone; without one it is refused |
//! | a number below 10^11, 10^14, 10^17, above | seconds, milliseconds, microseconds, nanoseconds |
//!
//! Anything finer than a microsecond is cut.

use holotype::query::time::in_range;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use serde_json::Value;

/// The reason why a value is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeFault {
    /// It is a time of the day without a zone.
    #[error("got the time '{0}' without a zone, expected --zone NAME, such as --zone Europe/Zurich or --zone UTC")]
    NoZone(String),
    /// It is nothing of the kind, or outside the years 0 to 9999.
    #[error("got '{0}', expected a time: RFC 3339, a date, or seconds since 1970")]
    NoTime(String),
}

/// The zone of that name: `Europe/Zurich`, `UTC`, `+02:00`.
pub(crate) fn zone(name: &str) -> Result<TimeZone, String> {
    let fixed = format!("1970-01-01T00:00:00{name}").parse::<Timestamp>().ok();
    if let Some(offset) = fixed.filter(|_| name.starts_with(['+', '-'])) {
        let offset = jiff::tz::Offset::from_seconds(-(offset.as_second() as i32));
        return offset.map(TimeZone::fixed).map_err(|error| error.to_string());
    }
    TimeZone::get(name).map_err(|_| {
        format!("got the zone '{name}', expected a name such as Europe/Zurich, UTC, or an offset such as +02:00")
    })
}

/// The time that a JSON value states; `None` for null, an empty text and 0.
pub(crate) fn from_json(value: &Value, zone: Option<&TimeZone>) -> Result<Option<i64>, TimeFault> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => from_text(text, zone).map(Some),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(0), _) => Ok(None),
            (Some(whole), _) => from_whole(whole).map(Some),
            (None, Some(float)) => from_float(float).map(Some),
            (None, None) => Err(TimeFault::NoTime(number.to_string())),
        },
        other => Err(TimeFault::NoTime(other.to_string())),
    }
}

/// The time that a text states.
pub(crate) fn from_text(text: &str, zone: Option<&TimeZone>) -> Result<i64, TimeFault> {
    let text = text.trim();
    let no_time = || TimeFault::NoTime(text.to_owned());
    if let Ok(whole) = text.parse::<i64>() {
        return from_whole(whole);
    }
    if let Some(float) = text.parse::<f64>().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    {
        return from_float(float);
    }
    let text = &text.replacen(" UTC", "Z", 1);
    if let Ok(moment) = text.parse::<Timestamp>() {
        return checked(moment.as_microsecond(), text);
    }
    if let Ok(moment) = rfc2822::parse(text) {
        return checked(moment.timestamp().as_microsecond(), text);
    }
    if let Ok(date) = text.parse::<Date>().map_err(|_| no_time())
        && text.len() <= 10
    {
        return at_zone(date.at(0, 0, 0, 0), zone.unwrap_or(&TimeZone::UTC), text);
    }
    match (text.parse::<DateTime>(), zone) {
        (Ok(naive), Some(zone)) => at_zone(naive, zone, text),
        (Ok(_), None) => Err(TimeFault::NoZone(text.to_owned())),
        (Err(_), _) => Err(no_time()),
    }
}

/// A moment that a clock in a zone shows. One that it shows twice is the earlier, one that it leaves out the later.
pub(crate) fn at_zone(naive: DateTime, zone: &TimeZone, text: &str) -> Result<i64, TimeFault> {
    let moment = zone.to_ambiguous_timestamp(naive).compatible().map_err(|_| TimeFault::NoTime(text.to_owned()))?;
    checked(moment.as_microsecond(), text)
}

/// A number by its magnitude.
fn from_whole(number: i64) -> Result<i64, TimeFault> {
    let micros = match number.unsigned_abs() {
        0..100_000_000_000 => number.checked_mul(1_000_000),
        100_000_000_000..100_000_000_000_000 => number.checked_mul(1_000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(number),
        _ => Some(number.div_euclid(1_000)),
    };
    checked(micros.unwrap_or(i64::MAX), &number.to_string())
}

fn from_float(number: f64) -> Result<i64, TimeFault> {
    let scale = match number.abs() {
        size if size < 1e11 => 1e6,
        size if size < 1e14 => 1e3,
        size if size < 1e17 => 1.0,
        size if size < 1e20 => 1e-3,
        _ => return Err(TimeFault::NoTime(number.to_string())),
    };
    checked((number * scale).round() as i64, &number.to_string())
}

fn checked(micros: i64, text: &str) -> Result<i64, TimeFault> {
    in_range(micros).map_err(|_| TimeFault::NoTime(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_is_the_same_moment() {
        let zurich = zone("Europe/Zurich").unwrap();
        let moment = 1_767_607_200_123_456;
        for value in [
            json!("2026-01-05T10:00:00.123456Z"),
            json!("2026-01-05T10:00:00.123456789Z"),
            json!("2026-01-05T12:00:00.123456+0200"),
            json!("2026-01-05 12:00:00.123456+02:00"),
            json!("2026-01-05T11:00:00.123456+01:00[Europe/Zurich]"),
            json!("2026-01-05 11:00:00.123456"),
            json!("2026-01-05 10:00:00.123456 UTC"),
            json!(1_767_607_200.123_456),
            json!("1767607200.123456"),
            json!(1_767_607_200_123_456_i64),
            json!(1_767_607_200_123_456_789_i64),
        ] {
            assert_eq!(from_json(&value, Some(&zurich)), Ok(Some(moment)), "{value}");
        }
        assert_eq!(from_json(&json!(1_767_607_200_123_i64), None), Ok(Some(1_767_607_200_123_000)));
        assert_eq!(from_json(&json!(1_767_607_200), None), Ok(Some(1_767_607_200_000_000)));
        assert_eq!(from_text("Mon, 5 Jan 2026 10:00:00 +0000", None), Ok(1_767_607_200_000_000));
        assert_eq!(from_text("2026-01-05", None), Ok(1_767_571_200_000_000));
        assert_eq!(from_text("2026-01-05", Some(&zurich)), Ok(1_767_567_600_000_000));
        assert_eq!(from_text("2026-01-05T10:00:00", Some(&zone("+02:00").unwrap())), Ok(1_767_600_000_000_000));
    }

    #[test]
    fn what_is_no_moment_says_why() {
        let naive = "2026-01-05T10:00:00";
        assert_eq!(from_text(naive, None), Err(TimeFault::NoZone(naive.to_owned())));
        for text in ["yesterday", "2026-13-01", "nan", "inf", "1e300", "", "99999999-01-01"] {
            assert!(matches!(from_text(text, None), Err(TimeFault::NoTime(_))), "{text}");
        }
        assert_eq!(from_json(&Value::Null, None), Ok(None));
        assert_eq!(from_json(&json!(""), None), Ok(None));
        assert!(from_json(&json!([1]), None).is_err());
        assert!(zone("Nowhere/Land").is_err());
        assert!(zone("+99:00").is_err());
    }
}
