//! HELM's written citations (A.7): a pointer to a span of a trace, as a text that a model can copy and a program parse.
//!
//! ```text
//! [[CITE tool=<t> log=<log_id> step=<s> field=<f> start=<i> end=<j>]]
//! optional: hash=<hex digits> unit=char
//! ```
//!
//! `tool=-` is no tool. A name with a blank, a quote, an equals sign or a bracket, and the tool called `-`, stand in
//! double quotes, in which `\"` is a quote, `\\` a backslash and `\n` a line end. Offsets count bytes, with `unit=char`
//! characters; where nothing says which and they differ, a validator takes what is cited elsewhere or nothing. `hash`
//! is the first 16 to 64 hex digits of the span's BLAKE3 hash.
//!
//! Invariant: what [`Cite`] prints parses to the same citation.

use std::fmt::{self, Display, Formatter};

/// The beginning of a citation.
pub(crate) const OPEN: &str = "[[CITE";
/// Its end.
const CLOSE: &str = "]]";
/// The fewest hex digits of a hash that tell one span from another.
const SHORTEST_HASH: usize = 16;
/// All of them.
const LONGEST_HASH: usize = 64;

/// A parsed citation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cite {
    /// The tool of the trace; `None` for a trace without one.
    pub tool: Option<String>,
    /// The log of the trace: its `log_id`, which is its episode unless stated.
    pub log: String,
    /// The step of the trace.
    pub step: u64,
    /// The field.
    pub field: String,
    /// The first byte, or character.
    pub start: u64,
    /// The byte, or character, after the last.
    pub end: u64,
    /// The first hex digits of the hash of the span.
    pub hash: Option<String>,
    /// True if `start` and `end` count characters.
    pub chars: bool,
    /// True if it says whether they count bytes or characters.
    pub is_unit_stated: bool,
}

impl Display for Cite {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Cite { tool, log, step, field, start, end, hash, chars, is_unit_stated } = self;
        write!(f, "{OPEN} tool=")?;
        match tool {
            None => f.write_str("-")?,
            Some(tool) => name(f, tool)?,
        }
        f.write_str(" log=")?;
        name(f, log)?;
        write!(f, " step={step} field=")?;
        name(f, field)?;
        write!(f, " start={start} end={end}")?;
        if let Some(hash) = hash {
            write!(f, " hash={hash}")?;
        }
        f.write_str(match (chars, is_unit_stated) {
            (true, _) => " unit=char",
            (false, true) => " unit=byte",
            (false, false) => "",
        })?;
        f.write_str(CLOSE)
    }
}

fn name(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | '=' | '[' | ']');
    if !name.is_empty() && name != "-" && name.chars().all(is_plain) {
        return f.write_str(name);
    }
    f.write_str("\"")?;
    for c in name.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '"' | '\\' => write!(f, "\\{c}")?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl Cite {
    /// Parses a citation; `None` if it is malformed.
    ///
    /// ```
    /// use holotype::Cite;
    ///
    /// let cite = Cite::parse("[[CITE tool=\"web search\" log=trip-42 step=3 field=text start=0 end=5]]").unwrap();
    /// assert_eq!(cite.tool.as_deref(), Some("web search"));
    /// assert_eq!(Cite::parse(&cite.to_string()), Some(cite));
    /// ```
    pub fn parse(written: &str) -> Option<Cite> {
        let mut rest = written.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
        let mut cite = Cite::default();
        let mut seen = Vec::new();
        loop {
            let trimmed = rest.trim_start();
            if trimmed.is_empty() {
                break;
            }
            if trimmed.len() == rest.len() {
                return None;
            }
            let (name, after) = trimmed.split_once('=')?;
            let (value, quoted, after) = value(after)?;
            if seen.contains(&name) {
                return None;
            }
            seen.push(name);
            rest = after;
            cite.set(name, value, quoted)?;
        }
        ["tool", "log", "step", "field", "start", "end"].iter().all(|name| seen.contains(name)).then_some(cite)
    }

    fn set(&mut self, name: &str, value: String, quoted: bool) -> Option<()> {
        match name {
            "tool" => self.tool = Some(value).filter(|tool| quoted || tool != "-"),
            "log" => self.log = value,
            "field" => self.field = value,
            _ if quoted => return None,
            "step" => self.step = number(&value)?,
            "start" => self.start = number(&value)?,
            "end" => self.end = number(&value)?,
            "hash" => self.hash = Some(is_hash(&value).then_some(value)?),
            "unit" => {
                self.is_unit_stated = true;
                self.chars = match value.as_str() {
                    "char" => true,
                    "byte" => false,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// A value, whether it was quoted, and what stands behind it.
fn value(text: &str) -> Option<(String, bool, &str)> {
    let Some(inner) = text.strip_prefix('"') else {
        let len = text.find(char::is_whitespace).unwrap_or(text.len());
        let value = text.get(..len)?;
        return (!value.is_empty() && !value.contains(['"', '\\'])).then(|| (value.to_owned(), false, &text[len..]));
    };
    let mut value = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, true, &inner[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

/// The length of the citation that `text` begins with: to its `]]` outside of quotes. Without one, the text up to the
/// first `]]`, or all of it, is a malformed citation.
pub(crate) fn len_of_cite(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted && text[at..].starts_with(CLOSE) => return at + CLOSE.len(),
            '\n' => break,
            _ => {}
        }
    }
    text.find(CLOSE).map_or(text.len(), |at| at + CLOSE.len())
}

/// A number in decimal digits alone.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

/// True for as many hex digits as a citation may give of a hash.
fn is_hash(text: &str) -> bool {
    (SHORTEST_HASH..=LONGEST_HASH).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn citations_parse_in_their_form_only() {
        let good = "[[CITE tool=- log=e step=3 field=text start=0 end=5 unit=char]]";
        let cite = Cite::parse(good).unwrap();
        assert_eq!((cite.tool.as_deref(), cite.log.as_str(), cite.step, cite.chars), (None, "e", 3, true));
        for bad in [
            "[[CITE tool=- log=e step=3 field=text start=0]]",
            "[[CITE tool=- log=e step=x field=text start=0 end=5]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 end=6]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 colour=red]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5",
            "[[CITE tool=- log=e step=+3 field=text start=0 end=5]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 hash=]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 hash=0123456789abcde]]",
            "[[CITE tool=- log=e step=3 field=text start=0 end=5 hash=0123456789abcdeg]]",
            "[[CITE tool=my tool log=e step=3 field=text start=0 end=5]]",
            "[[CITE tool=\"my tool log=e step=3 field=text start=0 end=5]]",
            "[[CITE tool=- log=e step=\"3\" field=text start=0 end=5]]",
            "[[CITEtool=- log=e step=3 field=text start=0 end=5]]",
        ] {
            assert_eq!(Cite::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_and_ends_where_it_ends(
            tool in proptest::option::of(".{1,12}|[-\"\\\\ =\\[\\]\n]{1,4}"),
            (log, field) in (".{0,12}", "[a-z. \\]]{1,8}"),
            numbers in any::<[u64; 3]>(),
            (hash, chars) in (proptest::option::of("[0-9a-f]{16,64}"), any::<bool>()),
            behind in "[ a-z\\]\"]{0,6}",
        ) {
            let [step, start, end] = numbers;
            let cite = Cite { tool, log, step, field, start, end, hash, chars, is_unit_stated: chars };
            let written = cite.to_string();
            prop_assert_eq!(Cite::parse(&written), Some(cite));
            prop_assert_eq!(len_of_cite(&format!("{written}{behind}")), written.len());
        }
    }
}
