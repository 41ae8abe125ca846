//! Claims of text that is read line by line: calls, keys with values, tables. Sentences make no claims.

use super::{Claims, subject};

/// Arguments of a call that say how to answer and not about what.
const OPTIONS: [&str; 26] = [
    "limit",
    "max results",
    "top k",
    "k",
    "page",
    "page size",
    "per page",
    "offset",
    "cursor",
    "sort",
    "order",
    "format",
    "lang",
    "language",
    "locale",
    "unit",
    "units",
    "currency",
    "timeout",
    "verbose",
    "debug",
    "version",
    "api key",
    "token",
    "fields",
    "timezone",
];

/// Longest `[label]` before a line, in bytes.
const MAX_LABEL_LEN: usize = 40;

/// Longest `key` of a `key: value` line, in words.
const MAX_KEY_WORDS: usize = 6;
/// Longest `value` of a `key: value` line, in words.
const MAX_VALUE_WORDS: usize = 12;

/// True if an argument of a call says how to answer.
pub(super) fn is_option(attribute: &str) -> bool {
    OPTIONS.contains(&attribute)
}

/// Adds the claims of a text.
pub(super) fn extract(tool: Option<&str>, text: &str, claims: &mut Claims<'_>) {
    let mut about = String::new();
    let mut table: Option<Table<'_>> = None;
    for line in text.lines() {
        if claims.is_full() {
            return;
        }
        let line = line.trim().trim_start_matches(['#', '>', '*', '-', '\u{2022}', ' ']).trim_matches('*').trim();
        let line = without_label(tool, without_number(line));
        if line.is_empty() {
            about.clear();
            table = None;
            continue;
        }
        if let Some(cells) = cells(line) {
            table = Some(match table.take() {
                None => Table { header: cells },
                Some(table) => {
                    table.row(&cells, &about, claims);
                    table
                }
            });
            continue;
        }
        table = None;
        if let Some((called, rest)) = call(tool, line) {
            about = called;
            if !rest.is_empty() {
                segment(&about, rest, claims);
            }
        } else if let Some(heading) = line.strip_suffix(':').filter(|heading| heading.len() <= super::MAX_PART_LEN) {
            about = heading.trim_matches('*').to_owned();
        } else if let Some(called) = tool.and_then(|tool| line.strip_prefix(tool)?.strip_prefix(' '))
            && !line.contains([':', '=', '.'])
        {
            about = called.to_owned();
        } else {
            segment(&about, line, claims);
        }
    }
}

/// A line without the number of a list before it.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = (1..4).contains(&(line.len() - rest.len()));
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
    rest.filter(|_| is_number).map_or(line, str::trim_start)
}

/// A line without `[label]` or the tool's own name before it: neither belongs to the subject.
fn without_label<'l>(tool: Option<&str>, line: &'l str) -> &'l str {
    let in_brackets = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    if let Some((label, rest)) = in_brackets.filter(|(label, _)| label.len() <= MAX_LABEL_LEN)
        && !label.contains(['[', '"', '{', ','])
        && rest.starts_with([' ', ':'])
    {
        return rest.trim_start_matches([' ', ':', '-']);
    }
    let behind = tool.and_then(|tool| line.strip_prefix(tool)).filter(|rest| rest.starts_with([' ', ':']));
    behind.map(|rest| rest.trim_start_matches([' ', ':'])).filter(|rest| rest.contains(['=', ':'])).unwrap_or(line)
}

/// `name(arguments)`, then `:`, `=`, `->` or `=>` and what it returned: the subject and the rest of the line.
fn call<'l>(tool: Option<&str>, line: &'l str) -> Option<(String, &'l str)> {
    let (name, behind) = line.split_once('(')?;
    let is_name = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-'))
    };
    if !is_name(name) {
        return None;
    }
    let mut depth = 1_usize;
    let end = behind.find(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let (arguments, rest) = (behind.get(..end)?, behind.get(end + 1..)?.trim_start());
    let returned = ["->", "=>", "\u{2192}", ":", "="].iter().find_map(|sign| rest.strip_prefix(sign)).unwrap_or(rest);
    let subject = match arguments.trim() {
        "" => tool.unwrap_or(name).to_owned(),
        arguments => about_arguments(arguments),
    };
    Some((subject, returned.trim()))
}

/// The subject that arguments name: all of them, less options and quotes.
fn about_arguments(arguments: &str) -> String {
    let mut words = Vec::new();
    for argument in arguments.trim_matches(['{', '}']).split(',') {
        let (name, value) = match argument.split_once(['=', ':']) {
            Some((name, value)) => (subject::attribute(name.trim().trim_matches(['"', '\''])), value),
            None => (String::new(), argument),
        };
        if is_option(&name) {
            continue;
        }
        let kind = match name.as_str() {
            "id" | "key" | "name" | "query" | "q" | "item" | "sku" | "code" | "entity" | "subject" => "",
            name => name,
        };
        let value = value.trim().trim_matches(['"', '\'']);
        words.push(format!("{kind} {value}").trim().to_owned());
    }
    words.join(" ")
}

/// A line, or the result of a call: pairs with `=` or `:`.
fn segment(about: &str, text: &str, claims: &mut Claims<'_>) {
    let is_pair = |part: &str| pair_count(part) > 0;
    let is_key = |part: &str| !is_pair(part) && part.contains(": ");
    let has_sign = text.contains('=');
    if has_sign && text.split("; ").any(is_pair) && text.split("; ").any(is_key) {
        return text.split("; ").for_each(|part| segment(about, part, claims));
    }
    let about = match has_sign.then(|| text.split_once(": ")).flatten() {
        // `Flight TK129: price = $583, gate = D24`
        Some((heading, rest)) if rest.contains(['=', ':']) && pair_count(rest) > 0 && pair_count(heading) == 0 => {
            return equations(if about.is_empty() { heading } else { about }, rest, claims);
        }
        _ => about,
    };
    if has_sign && pair_count(text) > 0 {
        return equations(about, text, claims);
    }
    let has_key = |part: &str| part.contains(": ") || part.contains(":** ") || part.trim().is_empty();
    let is_list = text.contains(':') && text.split([';', '|']).all(has_key);
    if is_list {
        text.split([';', '|']).for_each(|part| colon(about, part, claims));
    }
}

/// The number of `=` that are neither `==`, `<=`, `>=` nor `!=`.
fn pair_count(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_comparison = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        matches!(before, Some(b'=' | b'<' | b'>' | b'!')) || matches!(bytes.get(at + 1), Some(b'=' | b'>'))
    };
    text.match_indices('=').filter(|(at, _)| !is_comparison(*at)).count()
}

/// `key=value`, any number of them, separated by commas, semicolons, bars or blanks.
fn equations(about: &str, text: &str, claims: &mut Claims<'_>) {
    let mut about = about.to_owned();
    for part in split_list(text) {
        let mut rest = part;
        while let Some((left, right)) = rest.split_once('=') {
            let (subject, attribute) = subject::split(left.trim().trim_matches(['"', '\'']));
            if !subject.is_empty() {
                about = subject.to_owned();
            }
            // The value ends before the key of the next pair.
            let (value, next) = match right.find('=') {
                Some(equals) => {
                    let head = right.get(..equals).unwrap_or(right).trim_end();
                    let end = head.rfind(char::is_whitespace).unwrap_or(0);
                    right.split_at_checked(end).unwrap_or((right, ""))
                }
                None => (right, ""),
            };
            claims.add(&about, attribute, value.trim().trim_matches(['"', '\'']));
            rest = next;
        }
    }
}

/// Parts between commas, semicolons and bars; a comma inside a number or between quotes separates nothing.
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let (mut start, mut at, mut quoted) = (0, 0, false);
    std::iter::from_fn(move || {
        if start > bytes.len() {
            return None;
        }
        while let Some(byte) = bytes.get(at) {
            quoted ^= *byte == b'"';
            let is_end = match byte {
                b';' | b'|' => !quoted,
                b',' => !quoted && !bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
                _ => false,
            };
            if is_end {
                break;
            }
            at += 1;
        }
        let part = text.get(start..at);
        at += 1;
        start = at;
        part
    })
}

/// `key: value`. A line whose value is a sentence has no value: the key is a speaker.
fn colon(about: &str, text: &str, claims: &mut Claims<'_>) {
    // Markdown closes its emphasis behind the colon.
    let parts = text.trim().split_once(":** ").or_else(|| text.trim().split_once(": "));
    let Some((key, value)) = parts else { return };
    let (key, value) = (key.trim().trim_matches(['*', '"', '\'', '`']), value.trim().trim_matches('*').trim());
    let words = value.split_whitespace().count();
    let is_sentence = value.ends_with(['.', '!', '?']) && words > 3;
    let is_short = |key: &str| key.split_whitespace().count() <= MAX_KEY_WORDS;
    if key.is_empty() || key.contains(['.', '?', '!', ',']) || is_sentence || words > MAX_VALUE_WORDS {
        return;
    }
    if let Some((subject, attribute)) = owner(key).filter(|(name, of)| is_short(name) && is_short(of)) {
        return claims.add(subject, attribute, value.trim_end_matches('.'));
    }
    if !is_short(key) {
        return;
    }
    if let Some((name, _kind)) = key.strip_suffix(')').and_then(|key| key.rsplit_once(" ("))
        && let Some((attribute, value)) = listed(name, value)
    {
        return claims.add(name, attribute, value);
    }
    let (subject, attribute) = subject::split(key);
    match (subject, attribute) {
        (subject, "") => {
            if let Some((attribute, value)) = listed(subject, value) {
                claims.add(subject, attribute, value);
            } else if value.chars().all(char::is_alphabetic) && subject.bytes().any(|byte| byte.is_ascii_digit()) {
                // `Flight TK129: delayed`. A key without a digit may be a speaker.
                claims.add(subject, "state", value);
            }
        }
        ("", attribute) => claims.add(about, attribute, value),
        (subject, attribute) => claims.add(subject, attribute, value),
    }
}

/// Subject and attribute of a key: `Gate of UA123`, `UA123's gate`, `UA123 - gate`, `UA123 has the following gate`.
fn owner(key: &str) -> Option<(&str, &str)> {
    let marks = [" - ", " \u{2013} ", " \u{2014} ", " / ", " has the following ", "'s ", "\u{2019}s "];
    let split = marks
        .iter()
        .find_map(|mark| key.split_once(mark))
        .map(|(subject, attribute)| (subject.trim_matches('*'), attribute));
    let split = split.or_else(|| {
        let (attribute, subject) = key.split_once(" of ").or_else(|| key.split_once(" for "))?;
        Some((subject, attribute))
    });
    split.filter(|(subject, attribute)| !subject.is_empty() && !attribute.is_empty())
}

/// `gate B12` behind a key that names a thing: plain words, then the value. Of two plain words the second is the value.
fn listed<'v>(subject: &str, value: &'v str) -> Option<(&'v str, &'v str)> {
    if subject.is_empty() {
        return None;
    }
    let words: Vec<(usize, &str)> = subject::words(value).collect();
    let is_value = |(_, word): &&(usize, &str)| !word.starts_with(char::is_lowercase);
    let pair = (words.len() == 2).then(|| words.last()).flatten();
    let (at, _) = words.iter().find(is_value).or(pair)?;
    let (name, value) = value.split_at_checked(*at)?;
    (!name.trim().is_empty() && name.split_whitespace().count() <= 3).then_some((name.trim(), value))
}

/// A table whose first line was read.
struct Table<'t> {
    header: Vec<&'t str>,
}

impl Table<'_> {
    /// One line below the header: a subject with its values, or a key with its value.
    fn row(&self, cells: &[&str], about: &str, claims: &mut Claims<'_>) {
        let is_rule = |cell: &&str| cell.chars().all(|c| matches!(c, '-' | ':' | '=' | ' '));
        if cells.iter().all(is_rule) || cells.len() != self.header.len() {
            return;
        }
        let [first, values @ ..] = cells else { return };
        let names_values =
            |name: &str| matches!(subject::attribute(name).as_str(), "value" | "values" | "reading" | "");
        if let ([value], [_, name]) = (values, self.header.as_slice())
            && names_values(name)
        {
            return claims.add(about, first, value);
        }
        for (value, name) in values.iter().zip(self.header.iter().skip(1)) {
            claims.add(first, name, value);
        }
    }
}

/// The cells of a line of a table, drawn with bars or tabulators.
fn cells(line: &str) -> Option<Vec<&str>> {
    let separator = if line.contains('|') && !line.contains('=') {
        '|'
    } else if line.contains('\t') {
        '\t'
    } else {
        return None;
    };
    // `key: value | key: value` is a list.
    let line = line.trim_matches('|');
    let cells: Vec<&str> = line.split(separator).map(str::trim).collect();
    let is_table = cells.len() > 1 && cells.len() <= 32 && !cells.iter().all(|cell| cell.contains(": "));
    is_table.then_some(cells)
}
