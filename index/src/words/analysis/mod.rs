//! From text to terms.
//!
//! Text is brought into one spelling (`normal`), cut into words by UAX #29, and lower-cased. A *word* is the unit of
//! length: it gives one [`Role::Word`] term and counts once. It may give further terms:
//!
//! | role | example | why |
//! |---|---|---|
//! | `Surface` | `running` → `=running` beside `run`; `Málaga` → `=málaga` beside `malaga` | exact forms first |
//! | `Part` | `UA123` → `ua`, `123`; `flight_id` → `flight`, `id`; `JavaScript` → `java`, `script` | parts of codes |
//! | `Whole` | `SKU-4411`, `10:30`, `2023-05-08`, `$450`, `ann@mail.org` beside their words | find whole codes |
//! | `Pair` | `東京` beside `東`, `京` | words of scripts without spaces |
//! | `Joined` | `555 010 0199` → `5550100199` | groups of digits, however they are separated |
//! | `Folded` | `Müller` → `mueller`; `1.299` → `1299`; `במטוס` → `מטוס` | a second reading of the word |
//!
//! The **stem is the match term**: a word is posted under the form that writers share, without case and accents
//! (`folding`) and, unless [`Stemming::None`], without endings: Porter 2 for ASCII letters, rules of the script for
//! others (`scripts`). The surface, the word as written, is posted in a separate namespace with the prefix `=`, with
//! which no word begins, if it differs. So term frequencies, document frequencies and lengths are those of BM25 over
//! stems, and the exact form is an addition with a low weight in queries (`words::query`).
//!
//! Rules, each with a row in the tables of `tests`:
//! 1. `'s 'd 'm 'll 're 've` are removed from the end of a word; other apostrophes are removed (`don't` → `dont`), and
//!    pieces of three letters or more are parts (`l'avion` → `lavion`, `avion`).
//! 2. Single letters between dots are an acronym (`U.S.A.` → `usa`).
//! 3. Numbers have one spelling (`numbers`): `1,299.00` and `1.299,00` are `1299`, `05` is `5`, and groups of digits
//!    also give their digits as a whole. A version has no `v` (`v1.2.3` → `1.2.3`).
//! 4. A word with other inner punctuation, with digits and letters, or with a capital after a small letter is kept
//!    without underscores, and its pieces are parts (`pieces`); pieces of one letter are not.
//! 5. Words joined by one of `-/\:.@_#&+=~`, by `::`, `->` or `://`, and words next to a currency sign, `#`, `@`, `%`,
//!    `+`, or after a dot (`.NET`), also give a whole. A whole joined by hyphens, without digits, has no hyphens
//!    (`e-mail` → `email`).
//! 6. A single letter keeps `+`, `++` and `#` (`C++`, `F#`, `A+`): with them it is another name.
//! 7. Scripts without spaces are cut into characters and adjacent pairs (`scripts::spaceless`).
//! 8. Emoji are words (`emoji`).
//! 9. Terms are cut at 96 bytes; a whole has at most 16 words, and a word at most 16 parts.
//!
//! Cost: linear in any text. Text is analysed in windows of at most 64 KiB, cut at white space if there is any, so that
//! memory is bounded.

mod chunks;
mod compounds;
mod emoji;
mod folding;
pub(crate) mod inline_word;
mod letters;
mod normal;
mod numbers;
mod pieces;
mod scripts;
pub(crate) mod stems;
pub(crate) mod stop;
mod term_cache;
#[cfg(test)]
mod tests;
pub(crate) mod vocabulary;

pub use letters::name_signs;

use crate::words::analysis::folding::{fold_into, lower_into, respell_into};
use crate::words::analysis::inline_word::InlineWord;
use crate::words::analysis::letters::{is_one_char, is_version, without_contraction, without_leading_zero};
use crate::words::analysis::numbers::{NumberRun, Reading, canonical_into};
use crate::words::analysis::pieces::cut_pieces;
use crate::words::analysis::scripts::spaceless::Unit;
use crate::words::analysis::scripts::{Script, arabic, devanagari, hebrew, korean};
use crate::words::analysis::stems::Stems;

/// The greatest length of a term in bytes; longer terms are cut.
pub const MAX_TERM_LEN: usize = 96;
/// The prefix of a surface term.
pub const SURFACE_MARK: char = '=';

const WINDOW_LEN: usize = 64 << 10;
/// Increased whenever a text would give other terms than before.
const RULES_VERSION: u32 = 2;

/// The stemming of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stemming {
    /// Porter 2 for words of ASCII letters, and rules of the script for words of other letters.
    #[default]
    English,
    /// No stemming: case, accents and spelling alone.
    None,
}

/// The identity of an analyser. Segments store it, and an index refuses segments of another analyser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnalyzerId(pub u32);

impl std::fmt::Display for AnalyzerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stemming = match self.0 & 0xff {
            0 => "none",
            1 => "english",
            _ => "unknown",
        };
        write!(f, "analyser {} ({stemming})", self.0 >> 8)
    }
}

/// The relation of a term to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The word itself, stemmed; the only role that counts towards a document's length.
    Word,
    /// The preceding word as written, in lower case, if its stem differs.
    Surface,
    /// A second reading of the preceding word: a spelling without its letters, a root without what may be a prefix.
    Folded,
    /// One of `of` pieces of the preceding word.
    Part {
        /// The number of pieces of the word.
        of: u8,
    },
    /// Several words, or a word and a sign, written as one.
    Whole,
    /// Two adjacent characters of a script without spaces.
    Pair,
    /// The digits of several groups as one number.
    Joined,
}

/// A term from the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// The dictionary key.
    pub key: &'a str,
    /// Its relation to its word.
    pub role: Role,
}

/// A consumer of terms.
pub(crate) trait Sink {
    /// Takes a term.
    fn term(&mut self, term: Term<'_>);

    /// Prepares for a lower-cased word that follows soon, for example with a prefetch.
    fn expect(&mut self, _short: InlineWord) {}

    /// Takes all terms of a lower-cased word or a piece of text from a cache and returns true. If it returns false, the
    /// terms follow, then [`Sink::learn`].
    fn remembers(&mut self, _short: InlineWord) -> bool {
        false
    }

    /// The numbers of terms and words taken so far.
    fn taken(&self) -> Taken {
        Taken::default()
    }

    /// Caches the terms since `_since` as those of this word or piece.
    fn learn(&mut self, _short: InlineWord, _since: Taken) {}
}

/// The number of terms that a sink has taken, and the number of words among them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) terms: usize,
    pub(crate) words: u32,
}

struct Each<'a>(&'a mut dyn FnMut(Term<'_>));

impl Sink for Each<'_> {
    fn term(&mut self, term: Term<'_>) {
        (self.0)(term);
    }
}

/// A method of analysing text. Cheap to copy; [`Analyzer::start`] returns the working state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analyzer {
    stemming: Stemming,
}

impl Analyzer {
    /// The analyser with this stemming.
    pub fn new(stemming: Stemming) -> Self {
        Self { stemming }
    }

    /// Its stemming.
    pub fn stemming(&self) -> Stemming {
        self.stemming
    }

    /// Its identity: rules and stemming.
    pub fn id(&self) -> AnalyzerId {
        let stemming = match self.stemming {
            Stemming::None => 0,
            Stemming::English => 1,
        };
        AnalyzerId(RULES_VERSION << 8 | stemming)
    }

    /// True if every term of a word is on the stop list of the language.
    pub fn is_stop_word(&self, word: &str) -> bool {
        let mut terms = self.analyze(word).into_iter().filter(|(_, role)| *role == Role::Word).peekable();
        terms.peek().is_some() && terms.all(|(key, _)| stop::is_stop_word(self, &key))
    }

    /// The working state for analysing many texts.
    pub fn start(&self) -> Analysis {
        self.start_with(Stems::new(self.stemming))
    }

    /// The same, with a stemmer.
    pub(crate) fn start_with(&self, stems: Stems) -> Analysis {
        Analysis::new(stems)
    }

    /// The terms of one text, in order.
    pub fn analyze(&self, text: &str) -> Vec<(String, Role)> {
        let mut terms = Vec::new();
        self.start().run(text, &mut |term| {
            terms.push((term.key.to_owned(), term.role));
        });
        terms
    }
}

/// An analyser with its buffers.
pub struct Analysis {
    stems: Stems,
    number_run: NumberRun,
    units: Vec<Unit>,
    key: String,
    folded: String,
    number: String,
    whole: String,
    pieces: Vec<(usize, usize)>,
}

impl std::fmt::Debug for Analysis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Analysis").field("stems", &self.stems).finish_non_exhaustive()
    }
}

impl Analysis {
    pub(crate) fn new(stems: Stems) -> Self {
        Self {
            stems,
            number_run: NumberRun::default(),
            units: Vec::new(),
            key: String::new(),
            folded: String::new(),
            number: String::new(),
            whole: String::new(),
            pieces: Vec::new(),
        }
    }

    /// Its stems.
    pub(crate) fn stems(&self) -> &Stems {
        &self.stems
    }

    /// Passes the terms of `text` to `each`, in order; further terms follow their word, wholes their last word.
    pub fn run(&mut self, text: &str, each: &mut dyn FnMut(Term<'_>)) {
        self.run_into(text, &mut Each(each));
    }

    /// The same, into a sink that may cache the terms of words.
    pub(crate) fn run_into(&mut self, text: &str, sink: &mut impl Sink) {
        let mut rest = text;
        while !rest.is_empty() {
            let (window, after) = rest.split_at(window_end(rest));
            rest = after;
            self.chunks(window, sink);
        }
    }

    /// One word of UAX #29 with its further terms.
    fn word(&mut self, word: &str, sink: &mut impl Sink) {
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            self.letters(word, sink);
        } else if word.bytes().all(|byte| byte.is_ascii_digit()) {
            self.letters(without_leading_zero(word), sink);
        } else {
            self.composed(without_contraction(word.trim_matches('_')), sink);
        }
    }

    /// A word that may have capitals, accents, digits or inner punctuation.
    fn composed(&mut self, word: &str, sink: &mut impl Sink) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut key = std::mem::take(&mut self.key);
        let found = cut_pieces(word, &mut pieces);
        lower_into(word, &mut key);
        let one_letters = || pieces.iter().all(|(start, end)| is_one_char(&word[*start..*end]));
        if is_version(&key) {
            self.letters(&key[1..], sink);
            self.parts(word, &pieces, 2, sink);
        } else if found.dots > 0 && !found.other_signs && !found.digits && one_letters() {
            key.retain(|sign| !matches!(sign, '.' | '\''));
            self.letters(&key, sink);
        } else {
            let mut number = std::mem::take(&mut self.number);
            let reading = canonical_into(&key, &mut number);
            if reading == Reading::Certain {
                self.letters(&number, sink);
                cut_pieces(&number, &mut pieces);
                self.parts(&number, &pieces, 1, sink);
            } else {
                key.retain(|sign| !matches!(sign, '\'' | '_' | '"'));
                self.letters(&key, sink);
                if reading == Reading::Possible {
                    sink.term(Term { key: cut(&number), role: Role::Folded });
                }
                let negated = word.rsplit_once('\'').is_some_and(|(_, end)| end.eq_ignore_ascii_case("t"));
                if !negated {
                    self.parts(word, &pieces, if found.apostrophe { 3 } else { 2 }, sink);
                }
            }
            self.number = number;
        }
        self.pieces = pieces;
        self.key = key;
    }

    /// A finished word: its stem, its surface if that differs, and its other readings.
    fn letters(&mut self, key: &str, sink: &mut impl Sink) {
        let key = cut(key);
        let word = InlineWord::word(key);
        if !key.is_empty() && !word.is_some_and(|word| sink.remembers(word)) {
            self.new_word(key, word, sink);
        }
    }

    fn new_word(&mut self, key: &str, word: Option<InlineWord>, sink: &mut impl Sink) {
        let since = sink.taken();
        if key.is_ascii() {
            let differs = self.stems.stem(key, |stem| {
                sink.term(Term { key: stem, role: Role::Word });
                stem != key
            });
            if differs {
                self.surface(key, sink);
            }
        } else {
            self.foreign_word(key, sink);
        }
        if let Some(word) = word {
            sink.learn(word, since);
        }
    }

    fn surface(&mut self, key: &str, sink: &mut impl Sink) {
        self.whole.clear();
        self.whole.push(SURFACE_MARK);
        self.whole.push_str(key);
        sink.term(Term { key: cut(&self.whole), role: Role::Surface });
    }

    /// A word with letters beyond ASCII.
    fn foreign_word(&mut self, key: &str, sink: &mut impl Sink) {
        let mut folded = std::mem::take(&mut self.folded);
        let script = self.match_form_into(key, &mut folded);
        let differs = self.stems.stem(cut(&folded), |stem| {
            sink.term(Term { key: stem, role: Role::Word });
            stem != key
        });
        if differs {
            self.surface(key, sink);
        }
        if respell_into(key, &mut self.whole) {
            self.stems.stem(cut(&self.whole), |stem| sink.term(Term { key: stem, role: Role::Folded }));
        }
        if self.stems.is_active() {
            let mut read = |key: &str, role| sink.term(Term { key: cut(key), role });
            match script {
                Script::Arabic => arabic::variant(&folded).into_iter().for_each(|key| read(key, Role::Folded)),
                Script::Hebrew => hebrew::variants(&folded).for_each(|key| read(key, Role::Folded)),
                Script::Hangul => {
                    korean::variant(&folded).into_iter().for_each(|key| read(key, Role::Folded));
                    let of = korean::pairs(&folded).take(pieces::MAX_PARTS).count() as u8;
                    korean::pairs(&folded).take(of.into()).for_each(|key| read(key, Role::Part { of }));
                }
                Script::Cyrillic | Script::Devanagari | Script::Greek | Script::Other => {}
            }
        }
        self.folded = folded;
    }

    /// Writes the form of a lower-cased word without accents and affixes, which is still to be stemmed.
    fn match_form_into(&self, key: &str, folded: &mut String) -> Script {
        fold_into(key, folded);
        if folded.is_empty() {
            folded.push_str(key);
        }
        let script = Script::of_word(folded);
        if self.stems.is_active() {
            match script {
                Script::Arabic => arabic::stem(folded),
                Script::Devanagari => devanagari::stem(folded),
                Script::Hangul => korean::stem(folded),
                Script::Cyrillic | Script::Greek | Script::Hebrew | Script::Other => {}
            }
        }
        script
    }

    fn parts(&mut self, word: &str, pieces: &[(usize, usize)], least_letters: usize, sink: &mut impl Sink) {
        if pieces.len() < 2 {
            return;
        }
        let counts = |piece: &str| {
            piece.starts_with(char::is_numeric) || piece.chars().take(least_letters).count() == least_letters
        };
        let parts = || pieces.iter().map(|(start, end)| &word[*start..*end]).filter(|piece| counts(piece));
        let of = parts().count() as u8;
        let mut folded = std::mem::take(&mut self.folded);
        for part in parts() {
            lower_into(without_leading_zero(part), &mut self.whole);
            if !self.whole.is_ascii() {
                self.match_form_into(&self.whole, &mut folded);
                std::mem::swap(&mut self.whole, &mut folded);
            }
            self.stems.stem(cut(&self.whole), |stem| sink.term(Term { key: stem, role: Role::Part { of } }));
        }
        self.folded = folded;
    }
}

/// The end of the next window: after the last white space, or at a character boundary if there is none.
fn window_end(text: &str) -> usize {
    if text.len() <= WINDOW_LEN {
        return text.len();
    }
    let most = text.floor_char_boundary(WINDOW_LEN);
    let window = &text[..most];
    window.char_indices().rev().find(|(_, sign)| sign.is_whitespace()).map_or(most, |(at, sign)| at + sign.len_utf8())
}

fn cut(term: &str) -> &str {
    if term.len() <= MAX_TERM_LEN { term } else { &term[..term.floor_char_boundary(MAX_TERM_LEN)] }
}
