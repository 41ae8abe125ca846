//! Numbers in one spelling, whatever separates their digits.
//!
//! A *word* of digits and separators has a canonical spelling ([`canonical_into`]):
//!
//! | written | canonical |
//! |---|---|
//! | `1,299` `1'299` `1.299.000` `1_299` `1,00,000` | digits alone |
//! | `1,299.50` `1.299,50` | `1299.50` |
//! | `3,14` | `3.14` |
//! | `1,299.00` `1299.00` | `1299` |
//! | `1.299` | as written, which may be a fraction or a version; `1299` is a second reading |
//!
//! A *run* is several groups of digits with blanks, hyphens, dots, slashes or parentheses between them, also over white
//! space ([`NumberRun`]). Two kinds give a whole of their digits: a number in groups of three (`1 299,00`), and a code
//! of at least seven digits in groups, such as the number of a telephone, a card or a book (`+1 (555) 010-0199`). A
//! telephone number also gives its digits without the code of the country and without a leading zero. Dates and
//! addresses of hosts have words alone.
//!
//! Cost: one test of each chunk that has a digit.

/// The most groups of a run; a longer one is a table rather than a number.
const MAX_GROUPS: usize = 8;
/// The digits of a run: those of a local telephone number and of a long card number.
const RUN_DIGITS: std::ops::RangeInclusive<usize> = 7..=19;
/// The digits of an international telephone number.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// The reading of a word as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Not a number with separators.
    None,
    /// Its canonical spelling was written.
    Certain,
    /// The canonical spelling of a second reading was written.
    Possible,
}

/// Writes the canonical spelling of a word that is a number with separators.
pub(crate) fn canonical_into(word: &str, number: &mut String) -> Reading {
    number.clear();
    let is_separator = |byte: u8| matches!(byte, b'.' | b',' | b'\'' | b'_');
    let may_be = word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_digit() || is_separator(byte));
    let Some(first_at) = word.bytes().position(is_separator).filter(|at| may_be && *at > 0) else {
        return Reading::None;
    };
    let (first, other) = (word.as_bytes()[first_at], word.bytes().rev().find(|byte| is_separator(*byte)));
    let mark = other.filter(|other| *other != first && matches!(other, b'.' | b','));
    let (whole, fraction) = mark.and_then(|mark| word.rsplit_once(char::from(mark))).unwrap_or((word, ""));
    let mut groups = whole.split(char::from(first));
    let leading = groups.next().unwrap_or_default();
    let group_count = groups.clone().count();
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // In India the groups before the last have two digits.
    let short_groups = first == b',' && leading.len() <= 2;
    let grouped = leading.len() <= 3
        && !leading.starts_with('0')
        && (1..).zip(groups).all(|(place, group)| {
            all_digits(group) && (group.len() == 3 || (short_groups && group.len() == 2 && place < group_count))
        });
    if grouped && (mark.is_none() || all_digits(fraction)) {
        number.extend(whole.chars().filter(char::is_ascii_digit));
        push_fraction(fraction, number);
        return if first == b'.' && group_count == 1 && mark.is_none() { Reading::Possible } else { Reading::Certain };
    }
    // A fraction without groups.
    match word.split_once([',', '.']) {
        Some((whole, fraction)) if all_digits(whole) && all_digits(fraction) && (first == b',' || fraction == "00") => {
            number.push_str(whole);
            push_fraction(fraction, number);
            Reading::Certain
        }
        _ => Reading::None,
    }
}

/// Appends a fraction unless it is zero.
fn push_fraction(fraction: &str, number: &mut String) {
    if fraction.bytes().any(|byte| byte != b'0') {
        number.push('.');
        number.push_str(fraction);
    }
}

/// Groups of digits that may be one number.
#[derive(Debug, Default)]
pub(crate) struct NumberRun {
    digits: String,
    /// The signs before each group and its length.
    groups: Vec<(Gap, usize)>,
    /// The signs since the last group.
    gap: String,
    is_open: bool,
    whole: String,
}

/// The signs before a group of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Plus,
    Start,
    Blank,
    Dot,
    Comma,
    /// A hyphen, a slash or parentheses, also with blanks.
    Other,
}

impl Gap {
    /// The gap after another group.
    fn between(signs: &str) -> Option<Self> {
        match signs {
            " " => Some(Self::Blank),
            "." => Some(Self::Dot),
            "," => Some(Self::Comma),
            "-" | "/" | " - " | " / " | ") " | ")" | " (" | "(" | ")-" | ") - " => Some(Self::Other),
            _ => None,
        }
    }
}

impl NumberRun {
    /// Continues with the next chunk between white space, and passes the wholes of a run that ends before it.
    /// `adjacent` is true if a single blank separates it from the chunk before.
    pub(crate) fn chunk(&mut self, chunk: &str, adjacent: bool, each: &mut dyn FnMut(&str)) {
        if !adjacent {
            self.finish(each);
        }
        let chunk = chunk.trim_matches(super::letters::is_currency);
        let is_part =
            |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b',' | b'/' | b'(' | b')');
        if !chunk.bytes().all(is_part) || !chunk.bytes().any(|byte| byte.is_ascii_digit()) {
            self.finish(each);
            return;
        }
        if !self.groups.is_empty() {
            self.gap.push(' ');
        }
        self.is_open = false;
        for byte in chunk.bytes() {
            if byte.is_ascii_digit() {
                self.digit(byte, each);
            } else {
                self.is_open = false;
                self.gap.push(char::from(byte));
            }
        }
    }

    fn digit(&mut self, digit: u8, each: &mut dyn FnMut(&str)) {
        if !self.is_open {
            let plus = self.gap.ends_with('+');
            let between = if self.groups.is_empty() { None } else { Gap::between(&self.gap) };
            if between.is_none() {
                self.emit(each);
                self.clear();
            }
            self.groups.push((between.unwrap_or(if plus { Gap::Plus } else { Gap::Start }), 0));
            self.gap.clear();
            self.is_open = true;
        }
        if let Some((_, len)) = self.groups.last_mut().filter(|_| self.digits.len() <= *RUN_DIGITS.end()) {
            *len += 1;
            self.digits.push(char::from(digit));
        }
    }

    /// Ends the run and passes its wholes.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.groups.is_empty() {
            self.emit(each);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.digits.clear();
        self.groups.clear();
        self.gap.clear();
        self.is_open = false;
    }

    fn emit(&mut self, each: &mut dyn FnMut(&str)) {
        if self.digits.len() > *RUN_DIGITS.end() || self.groups.len() > MAX_GROUPS {
            return;
        }
        if self.is_spaced_number() {
            self.spaced_number(each);
        } else if self.is_code() {
            self.code(each);
        }
    }

    /// `1 299`, `12 345 678,90`.
    fn is_spaced_number(&self) -> bool {
        let [(_, first), rest @ ..] = self.groups.as_slice() else { return false };
        let groups = rest.iter().take_while(|(gap, len)| *gap == Gap::Blank && *len == 3).count();
        let fraction = matches!(rest.get(groups..), Some([] | [(Gap::Comma | Gap::Dot, 1..=2)]));
        (1..=3).contains(first) && !self.digits.starts_with('0') && groups > 0 && fraction
    }

    fn spaced_number(&mut self, each: &mut dyn FnMut(&str)) {
        let fraction = self.groups.last().filter(|(gap, _)| *gap != Gap::Blank).map_or(0, |(_, len)| *len);
        let (whole, fraction) = self.digits.split_at(self.digits.len() - fraction);
        each(whole);
        self.whole.clear();
        self.whole.push_str(whole);
        push_fraction(fraction, &mut self.whole);
        if self.whole != whole {
            each(&self.whole);
        }
    }

    /// Digits in groups that are written in several ways, such as a telephone number.
    fn is_code(&self) -> bool {
        let lens: Vec<usize> = self.groups.iter().map(|(_, len)| *len).collect();
        let total = self.digits.len();
        let is_date = matches!(lens.as_slice(), [4, 1..=2, 1..=2, ..] | [1..=2, 1..=2, 4, ..]);
        let is_address = lens.len() == 4
            && lens.iter().all(|len| *len <= 3)
            && self.groups.iter().skip(1).all(|(gap, _)| *gap == Gap::Dot);
        let commas = self.groups.iter().any(|(gap, _)| *gap == Gap::Comma);
        let enough = match lens.as_slice() {
            [_] if self.is_international() => PHONE_DIGITS.contains(&total),
            [_] => self.digits.starts_with('0') && PHONE_DIGITS.contains(&total),
            [3, 4] => true,
            [_, _] => total >= 9,
            _ => RUN_DIGITS.contains(&total),
        };
        enough && total >= 2 * lens.len() && !is_date && !is_address && !commas
    }

    fn is_international(&self) -> bool {
        self.groups.first().is_some_and(|(gap, _)| *gap == Gap::Plus)
    }

    fn code(&mut self, each: &mut dyn FnMut(&str)) {
        let Some((_, first)) = self.groups.first().copied() else { return };
        let is_single = self.groups.len() == 1;
        let digits = self.digits.as_str();
        let without_zeros = digits.trim_start_matches('0');
        if !is_single {
            each(digits);
        }
        if without_zeros.len() < digits.len() && !without_zeros.is_empty() {
            each(without_zeros);
        }
        let has_country = self.is_international() || digits.starts_with("00") || (first == 1 && digits.len() == 11);
        if !has_country {
            return;
        }
        // The code of the country is the first group; of digits without groups it has one to three.
        for country in if is_single { 1..=3 } else { first..=first } {
            let national = digits.get(country..).unwrap_or_default().trim_start_matches('0');
            if national.len() >= *RUN_DIGITS.start() {
                each(national);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_numbers() {
        let mut number = String::new();
        let table = [
            ("1,299", Reading::Certain, "1299"),
            ("1,299.00", Reading::Certain, "1299"),
            ("1.299,00", Reading::Certain, "1299"),
            ("1.299,50", Reading::Certain, "1299.50"),
            ("1'299.5", Reading::Certain, "1299.5"),
            ("12,345,678", Reading::Certain, "12345678"),
            ("12,34,567.5", Reading::Certain, "1234567.5"),
            ("1.299.000", Reading::Certain, "1299000"),
            ("1_000", Reading::Certain, "1000"),
            ("1.299", Reading::Possible, "1299"),
            ("3,14", Reading::Certain, "3.14"),
            ("12.00", Reading::Certain, "12"),
            ("3.14", Reading::None, ""),
            ("1.2.3", Reading::None, ""),
            ("05.01.2026", Reading::None, ""),
            ("1,2,3", Reading::None, ""),
            ("0.123", Reading::None, ""),
            ("1299", Reading::None, ""),
            ("v1.2", Reading::None, ""),
        ];
        for (word, reading, wanted) in table {
            assert_eq!((canonical_into(word, &mut number), number.as_str()), (reading, wanted), "{word}");
        }
    }

    fn wholes(text: &str) -> String {
        let mut run = NumberRun::default();
        let mut found = Vec::new();
        let mut each = |whole: &str| found.push(whole.to_owned());
        text.split(' ').for_each(|chunk| run.chunk(chunk, true, &mut each));
        run.finish(&mut each);
        found.join(" ")
    }

    #[test]
    fn runs_of_groups() {
        let table = [
            ("costs 1 299 today", "1299"),
            ("€1 299,50 or 12 500€", "1299 1299.50 12500"),
            ("12, 500", ""),
            ("12 50", ""),
            ("call +1 (555) 010-0199.", "15550100199 5550100199"),
            ("555-010-0199", "5550100199"),
            ("555.010.0199", "5550100199"),
            ("555-0199", "5550199"),
            ("+15550100199", "5550100199 550100199 50100199"),
            ("+49 30 1234567", "49301234567 301234567"),
            ("030/1234567", "0301234567 301234567"),
            ("4111 1111 1111 1111", "4111111111111111"),
            ("978-3-16-148410-0", "9783161484100"),
            ("2026-01-05 2026-01-06", ""),
            ("05.01.2026", ""),
            ("192.168.10.25", ""),
            ("1990-1995", ""),
            ("1 2 3 4 5 6 7 8", ""),
            ("10 20 30 40 50 60 70 80 90", ""),
            ("12345678901234567890123 4567890", ""),
        ];
        for (text, wanted) in table {
            assert_eq!(wholes(text), wanted, "{text}");
        }
    }
}
