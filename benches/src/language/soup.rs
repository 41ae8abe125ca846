//! Sources of 1 MiB that are no statement, or one that is too long: how long it takes to say so.

use super::{line, timed};
use crate::Result;
use crate::random::Random;
use holotype::query::{MAX_SOURCE_LEN, check, parse};

/// Words that lead far into the parser.
const WORDS: &[&str] = &[
    "recall",
    "'x'",
    "where",
    "(",
    ")",
    "not",
    "and",
    "or",
    "status",
    "=",
    "failed",
    "in",
    "episode",
    "through",
    "traces",
    "->",
    "limit",
    "7",
    ";",
    ",",
    "find",
    "count",
    "by",
    "\"",
    "'",
    "$q",
    "1d",
    "--",
    "\n",
    "\\",
    "fields",
    ".",
    "claims",
    "between",
    "score",
    "half-life",
    "<",
    "é",
    "\u{0}",
    "order",
];

pub(super) fn run() -> Result<()> {
    let mut random = Random(3);
    let mut sources: Vec<(String, String)> = Vec::new();
    let mut words = String::new();
    while words.len() < MAX_SOURCE_LEN {
        words += WORDS[random.below(WORDS.len())];
        words.push(' ');
    }
    sources.push(("soup: words".to_owned(), cut(words)));
    let bytes: Vec<u8> = (0..MAX_SOURCE_LEN).map(|_| random.below(256) as u8).collect();
    sources.push(("soup: bytes".to_owned(), cut(String::from_utf8_lossy(&bytes).into_owned())));
    for piece in ["(", "'", "not ", "a.", "-- x\n", "$", "recall 'x' limit 1 limit 1; ", "x ", "'\\q' ", "1e", "…"] {
        sources.push((format!("soup: {:?} again and again", piece), cut(piece.repeat(MAX_SOURCE_LEN / piece.len()))));
    }
    for (head, piece) in [
        ("find items where ", "step = 1 or "),
        ("find items where ", "has nonsense or "),
        ("find items where key in (", "'a', "),
        ("remember fact 'x' from ", "'t1', "),
        ("", "recall 'x'; "),
    ] {
        let chain = format!("{head}{}", piece.repeat(MAX_SOURCE_LEN / piece.len()));
        sources.push((format!("soup: {head}{piece}without an end"), cut(chain)));
    }
    let deep = format!("find items where {}", "(".repeat(MAX_SOURCE_LEN - 20));
    sources.push(("soup: brackets".to_owned(), cut(deep)));
    for (phase, source) in sources {
        let durations = timed(5, |_| match parse(&source).and_then(|script| check(&script, None, None)) {
            Ok(()) => Ok(0),
            Err(errors) => Ok(errors.render(&source).len()),
        })?;
        println!("{}", line(&phase, &durations));
    }
    Ok(())
}

/// At most as much as the parser takes.
fn cut(mut source: String) -> String {
    source.truncate(source.floor_char_boundary(MAX_SOURCE_LEN));
    source
}
