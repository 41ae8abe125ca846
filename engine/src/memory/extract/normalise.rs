//! One spelling for equal values: `$1,234.50` is `1234.5 USD`, `3 May 2026` is `2026-05-03`, `8:15 pm` is `20:15`.
//!
//! Numbers stay text, so that no digit is lost. A value that is no number, date or time is folded: lower case, single
//! blanks, plain quotes, without quotes and sentence punctuation around it.

/// Units by spelling; the first of each row is the one written. Currencies come first.
const UNITS: [&[&str]; 28] = [
    &["USD", "$", "us$", "usd", "dollar", "dollars"],
    &["EUR", "€", "eur", "euro", "euros"],
    &["GBP", "£", "gbp", "pound sterling", "pounds sterling"],
    &["JPY", "¥", "jpy", "yen"],
    &["CHF", "chf", "francs"],
    &["%", "%", "percent", "per cent", "pct"],
    &["kg", "kg", "kgs", "kilogram", "kilograms"],
    &["g", "g", "gram", "grams"],
    &["lb", "lb", "lbs", "pound", "pounds"],
    &["km", "km", "kilometre", "kilometres", "kilometer", "kilometers"],
    &["m", "m", "metre", "metres", "meter", "meters"],
    &["cm", "cm", "centimetre", "centimetres", "centimeter", "centimeters"],
    &["mm", "mm", "millimetre", "millimetres", "millimeter", "millimeters"],
    &["mi", "mi", "mile", "miles"],
    &["l", "l", "litre", "litres", "liter", "liters"],
    &["ms", "ms", "millisecond", "milliseconds"],
    &["s", "s", "sec", "secs", "second", "seconds"],
    &["min", "min", "mins", "minute", "minutes"],
    &["h", "h", "hr", "hrs", "hour", "hours"],
    &["d", "d", "day", "days"],
    &["KB", "kb", "kilobyte", "kilobytes"],
    &["MB", "mb", "megabyte", "megabytes"],
    &["GB", "gb", "gigabyte", "gigabytes"],
    &["TB", "tb", "terabyte", "terabytes"],
    &["°C", "°c", "c", "celsius", "degrees celsius", "degrees c"],
    &["°F", "°f", "f", "fahrenheit", "degrees fahrenheit", "degrees f"],
    &["km/h", "km/h", "kmh", "kph"],
    &["mph", "mph", "miles per hour"],
];

/// The number of rows of [`UNITS`] that are currencies, which alone may stand before a number: `m-39` is no length.
const CURRENCIES: usize = 5;

/// English names of months.
pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The one spelling of a value.
pub fn normalise(value: &str) -> String {
    let folded = fold(value);
    if !folded.bytes().any(|byte| byte.is_ascii_digit()) {
        return folded;
    }
    let known =
        date(&folded).or_else(|| time(&folded)).or_else(|| date_and_time(&folded)).or_else(|| quantity(&folded));
    known.unwrap_or(folded)
}

/// Lower case, single blanks, plain quotes, nothing but the value.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        for c in word.chars() {
            match c {
                '\u{2018}' | '\u{2019}' => folded.push('\''),
                '\u{201c}' | '\u{201d}' => folded.push('"'),
                '\u{2212}' => folded.push('-'),
                c => folded.extend(c.to_lowercase()),
            }
        }
    }
    let edge = |c: char| matches!(c, '"' | '\'' | '`' | '*' | ' ');
    let mark = |c: char| edge(c) || matches!(c, '.' | ',' | ';' | ':' | '!' | '?');
    let trimmed = folded.trim_start_matches(edge).trim_end_matches(mark);
    if trimmed.len() == folded.len() { folded } else { trimmed.to_owned() }
}

/// A number with an optional unit before or after it.
fn quantity(text: &str) -> Option<String> {
    let (text, negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest.trim_start(), true));
    let start = text.find(|c: char| c.is_ascii_digit() || c == '.')?;
    let (before, rest) = text.split_at_checked(start)?;
    let len = rest.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.')).count();
    let (digits, after) = rest.split_at_checked(len)?;
    let (before, after) = (before.trim(), after.trim());
    let (before, inner) = before.strip_suffix('-').map_or((before, false), |unit| (unit.trim(), true));
    let (scale, after) = scale(after);
    let unit = match (before.is_empty(), after.is_empty()) {
        (true, true) => "",
        (false, true) => currency(before)?,
        (true, false) => unit(after)?,
        // `$5 USD` names one unit twice; `$5 kg` is no quantity.
        (false, false) => currency(before).filter(|found| unit(after) == Some(*found))?,
    };
    let number = shift(&number(digits, unit.is_empty() && scale == 0)?, scale);
    let sign = if (negative != inner) && number != "0" { "-" } else { "" };
    Some(if unit.is_empty() { format!("{sign}{number}") } else { format!("{sign}{number} {unit}") })
}

/// Powers of ten by the word after a number.
fn scale(after: &str) -> (usize, &str) {
    let scales = [("thousand", 3), ("million", 6), ("billion", 9)];
    let found = scales.iter().find_map(|(name, zeros)| Some((*zeros, after.strip_prefix(name)?)));
    found.filter(|(_, rest)| rest.is_empty() || rest.starts_with(' ')).map_or((0, after), |(n, rest)| (n, rest.trim()))
}

/// Digits without grouping and superfluous zeros; `None` if they are no number. A bare code such as `007` is none.
fn number(digits: &str, bare: bool) -> Option<String> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.contains(['.', ',']) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let is_grouped = whole.contains(',');
    if is_grouped && (first.is_empty() || first.len() > 3 || groups.any(|group| group.len() != 3)) {
        return None;
    }
    if bare && !digits.contains('.') && whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    Some(match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    })
}

/// The number times a power of ten.
fn shift(number: &str, zeros: usize) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if zeros == 0 || number == "0" {
        return number.to_owned();
    }
    let moved: String = fraction.chars().chain(std::iter::repeat('0')).take(zeros).collect();
    let whole = format!("{whole}{moved}");
    let whole = whole.trim_start_matches('0');
    match fraction.get(zeros..).filter(|rest| !rest.is_empty()) {
        Some(rest) => format!("{}.{rest}", if whole.is_empty() { "0" } else { whole }),
        None => whole.to_owned(),
    }
}

/// The unit a spelling names.
fn unit(spelling: &str) -> Option<&'static str> {
    named(&UNITS, spelling)
}

fn currency(spelling: &str) -> Option<&'static str> {
    named(UNITS.get(..CURRENCIES)?, spelling)
}

fn named(units: &[&[&'static str]], spelling: &str) -> Option<&'static str> {
    units.iter().find(|row| row.iter().skip(1).any(|known| *known == spelling))?.first().copied()
}

fn whole(text: &str, least_len: usize, most_len: usize, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let is_number = (least_len..=most_len).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && range.contains(number))
}

/// `2026-05-03`, `2026/5/3`, `3.5.2026`, `3 May 2026`, `May 3rd, 2026`. Dates such as 03/05/2026 mean two things and
/// stay.
fn date(text: &str) -> Option<String> {
    let parts = |separator: char| {
        let mut parts = text.split(separator);
        Some([parts.next()?, parts.next()?, parts.next()?]).filter(|_| parts.next().is_none())
    };
    let written = |year: &str, month: Option<u32>, day: &str| {
        let year = whole(year, 4, 4, 1..=9999)?;
        let (month, day) = (month?, whole(day, 1, 2, 1..=31)?);
        Some(format!("{year:04}-{month:02}-{day:02}"))
    };
    let month_number = |text: &str| whole(text, 1, 2, 1..=12);
    let by_number = ['-', '/'].into_iter().filter_map(parts).find_map(|[y, m, d]| written(y, month_number(m), d));
    let by_dots = || parts('.').and_then(|[d, m, y]| written(y, month_number(m), d));
    let by_name = || {
        let spaced = text.replace(',', " ");
        let words: Vec<&str> = spaced.split_whitespace().filter(|word| *word != "of").collect();
        let [a, b, year] = words.as_slice() else { return None };
        let day = |text: &'_ str| text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).to_owned();
        written(year, month(b), &day(a)).or_else(|| written(year, month(a), &day(b)))
    };
    by_number.or_else(by_dots).or_else(by_name)
}

fn month(name: &str) -> Option<u32> {
    let name = name.trim_end_matches('.');
    let is_named = |month: &str| name == month || (name.len() >= 3 && name.len() <= 4 && month.starts_with(name));
    MONTHS.iter().position(|month| is_named(month)).map(|index| index as u32 + 1)
}

/// `20:15`, `20:15:00`, `8:15 pm`, `8 p.m.`
fn time(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !matches!(c, '.' | ' ')).collect();
    let (clock, half) = match (compact.strip_suffix("am"), compact.strip_suffix("pm").or(compact.strip_suffix("p"))) {
        (Some(clock), _) => (clock, Some(0)),
        (None, Some(clock)) => (clock, Some(12)),
        (None, None) => (compact.as_str(), None),
    };
    let mut parts = clock.split(':');
    let hour = whole(parts.next()?, 1, 2, if half.is_some() { 1..=12 } else { 0..=24 })?;
    let minute = parts.next();
    if minute.is_none() && half.is_none() {
        return None;
    }
    let minute = minute.map_or(Some(0), |minute| whole(minute, 2, 2, 0..=59))?;
    let second = parts.next().map_or(Some(0), |second| whole(second, 2, 2, 0..=60))?;
    if parts.next().is_some() {
        return None;
    }
    let hour = half.map_or(hour, |half| hour % 12 + half);
    let seconds = if second > 0 { format!(":{second:02}") } else { String::new() };
    Some(format!("{hour:02}:{minute:02}{seconds}"))
}

/// A date, then `t` or a blank, then a time, then `z` or an offset.
fn date_and_time(text: &str) -> Option<String> {
    let (day, clock) = text.split_once([' ', 't'])?;
    let day = date(day)?;
    let (clock, zone) = match clock.strip_suffix('z') {
        Some(clock) => (clock, "Z"),
        None => clock.rfind(['+', '-']).map_or((clock, ""), |at| clock.split_at_checked(at).unwrap_or((clock, ""))),
    };
    let clock = clock.split_once('.').map_or(clock, |(clock, _)| clock);
    Some(format!("{day}T{}{}", time(clock)?, if zone == "+00:00" { "Z" } else { zone }))
}
