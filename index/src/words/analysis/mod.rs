//! From text to terms.
//!
//! Text is normalised to NFKC, cut into words by UAX #29, and lower-cased. A *word* of UAX #29 is the unit of length:
//! it gives one [`Role::Word`] term and counts once. It may give further terms:
//!
//! | role | example | why |
//! |---|---|---|
//! | `Surface` | `running` → `=running` beside the word `run` | exact forms before inflected ones |
//! | `Part` | `UA123` → `ua`, `123`; `flight_id` → `flight`, `id`; `JavaScript` → `java`, `script` | parts of codes |
//! | `Whole` | `SKU-4411`, `10:30`, `2023-05-08`, `$450`, `ann@mail.org` beside their words | find whole codes |
//! | `Folded` | `Málaga` → `malaga` | queries often omit accents |
//!
//! The **stem is the match term**: under [`Stemming::English`] a word of plain letters is posted under its Porter 2
//! stem, and its surface in a separate namespace with the prefix `=`, with which no word begins. A surface equal to its
//! stem is not posted twice. So term frequencies, document frequencies and lengths are those of BM25 over stems, and
//! the exact form is an addition with a low weight in queries (`words::query`).
//!
//! Rules, each with a row in the tables below:
//! 1. `'s 'd 'm 'll 're 've` are removed from the end of a word; other apostrophes are removed (`don't` → `dont`), and
//!    pieces of three letters or more are parts (`l'avion` → `lavion`, `avion`).
//! 2. Single letters between dots are an acronym (`U.S.A.` → `usa`); commas between groups of three digits are removed
//!    (`1,000` → `1000`).
//! 3. A word with other inner punctuation, with digits and letters, or with a capital after a small letter is kept, and
//!    its pieces are parts; pieces of one letter are not.
//! 4. Words joined by one of `-/\:.@_#&+=~` or by `://`, and words next to a currency sign, `#`, `@` or `%`, also give
//!    a whole. A whole joined by hyphens, without digits, has no hyphens (`e-mail` → `email`).
//! 5. Neighbouring characters of scripts that UAX #29 cuts into single characters (Han, Hiragana, Thai) give a whole of
//!    two.
//! 6. Terms are cut at 96 bytes; a whole has at most 16 words, and a word at most 16 parts.
//!
//! Cost: linear in any text. Text is analysed in windows of at most 64 KiB, cut at white space if there is any, so that
//! memory is bounded.

mod chunks;
pub(crate) mod inline_word;
mod letters;
pub(crate) mod stems;
pub(crate) mod stop;
mod term_cache;
pub(crate) mod vocabulary;

use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::words::analysis::letters::{
    fold_into, has_grouped_digits, has_letter_or_digit, is_hyphen, is_joiner, is_one_char, is_prefix,
    is_single_character, is_suffix, lower_into, plain_into, without_contraction,
};

use crate::words::analysis::inline_word::InlineWord;
use crate::words::analysis::stems::Stems;

/// The greatest length of a term in bytes; longer terms are cut.
pub const MAX_TERM_LEN: usize = 96;
/// The prefix of a surface term.
pub const SURFACE_MARK: char = '=';

const WINDOW_LEN: usize = 64 << 10;
const MAX_WHOLE_WORDS: usize = 16;
const MAX_PARTS: usize = 16;
/// Increased whenever a text would give other terms than before.
const RULES_VERSION: u32 = 1;

/// The stemming of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stemming {
    /// Porter 2, for words of plain ASCII letters.
    #[default]
    English,
    /// No stemming.
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
    /// The preceding word as written, if its stem differs.
    Surface,
    /// The preceding word without accents, if it has any.
    Folded,
    /// One of `of` pieces of the preceding word.
    Part {
        /// The number of pieces of the word.
        of: u8,
    },
    /// Several words, or a word and a sign, written as one.
    Whole,
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
    key: String,
    plain: String,
    folded: String,
    whole: String,
    pieces: Vec<(usize, usize)>,
}

impl std::fmt::Debug for Analysis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Analysis").field("stems", &self.stems).finish_non_exhaustive()
    }
}

/// Adjacent words with nothing or one joining sign between them.
#[derive(Default)]
struct Compound {
    start: usize,
    end: usize,
    words: usize,
    digits: bool,
    only_hyphens: bool,
}

impl Analysis {
    pub(crate) fn new(stems: Stems) -> Self {
        Self {
            stems,
            key: String::new(),
            plain: String::new(),
            folded: String::new(),
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

    /// The terms of a text in NFKC, by UAX #29.
    fn window(&mut self, text: &str, sink: &mut impl Sink) {
        let mut compound = Compound::default();
        let mut last_single = None;
        for (start, word) in text.unicode_word_indices() {
            if !has_letter_or_digit(word) {
                continue;
            }
            let end = start + word.len();
            let joiner = if compound.words == 0 { None } else { text.get(compound.end..start) };
            match joiner {
                Some(sign)
                    if is_joiner(sign) && compound.words < MAX_WHOLE_WORDS && end - compound.start <= MAX_TERM_LEN =>
                {
                    compound.only_hyphens &= is_hyphen(sign);
                }
                _ => {
                    self.whole(text, &compound, sink);
                    compound = Compound { start, only_hyphens: true, ..Compound::default() };
                }
            }
            compound.end = end;
            compound.words += 1;
            compound.digits |= word.bytes().any(|byte| byte.is_ascii_digit());
            self.word(word, sink);

            let single = is_single_character(word);
            if single && last_single == Some(start) {
                let before = text[..start].chars().next_back().map_or(0, char::len_utf8);
                lower_into(&text[start - before..end], &mut self.whole);
                sink.term(Term { key: &self.whole, role: Role::Whole });
            }
            last_single = single.then_some(end);
        }
        self.whole(text, &compound, sink);
    }

    /// The whole of a compound that is more than one word.
    fn whole(&mut self, text: &str, compound: &Compound, sink: &mut impl Sink) {
        if compound.words == 0 {
            return;
        }
        let before = text[..compound.start].chars().next_back().filter(|sign| is_prefix(*sign));
        let after = text[compound.end..].chars().next().filter(|sign| is_suffix(*sign));
        if compound.words == 1 && before.is_none() && after.is_none() {
            return;
        }
        let start = compound.start - before.map_or(0, char::len_utf8);
        let end = compound.end + after.map_or(0, char::len_utf8);
        plain_into(&text[start..end], &mut self.plain);
        lower_into(&self.plain, &mut self.whole);
        if compound.words > 1 && compound.only_hyphens && !compound.digits {
            self.whole.retain(|sign| !matches!(sign, '-' | '\u{2010}' | '\''));
            self.stems.stem(&self.whole, |stem| sink.term(Term { key: cut(stem), role: Role::Whole }));
        } else {
            sink.term(Term { key: cut(&self.whole), role: Role::Whole });
        }
    }

    /// One word of UAX #29 with its further terms.
    fn word(&mut self, word: &str, sink: &mut impl Sink) {
        let simple =
            word.bytes().all(|byte| byte.is_ascii_lowercase()) || word.bytes().all(|byte| byte.is_ascii_digit());
        if simple {
            self.letters(word, sink);
            return;
        }
        plain_into(word, &mut self.plain);
        let plain = std::mem::take(&mut self.plain);
        self.composed(without_contraction(plain.trim_matches('_')), sink);
        self.plain = plain;
    }

    /// A word that may have capitals, accents, digits or inner punctuation; apostrophes are already `'`.
    fn composed(&mut self, word: &str, sink: &mut impl Sink) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut key = std::mem::take(&mut self.key);
        let found = cut_pieces(word, &mut pieces);
        lower_into(word, &mut key);
        if found.apostrophe {
            key.retain(|sign| sign != '\'');
        }
        let acronym = found.dots > 0
            && !found.other_signs
            && !found.digits
            && pieces.iter().all(|(start, end)| is_one_char(&word[*start..*end]));
        if acronym {
            key.retain(|sign| sign != '.');
        }
        if has_grouped_digits(&key) {
            key.retain(|sign| sign != ',');
            cut_pieces(&key, &mut pieces);
            self.letters(&key, sink);
            self.parts(&key, &pieces, 1, sink);
        } else {
            self.letters(&key, sink);
            let negated = word.rsplit_once('\'').is_some_and(|(_, end)| end.eq_ignore_ascii_case("t"));
            if !acronym && !negated {
                self.parts(word, &pieces, if found.apostrophe { 3 } else { 2 }, sink);
            }
        }
        self.pieces = pieces;
        self.key = key;
    }

    /// A finished word: its stem, its surface if that differs, and its form without accents if it has any.
    fn letters(&mut self, key: &str, sink: &mut impl Sink) {
        let key = cut(key);
        let word = InlineWord::word(key);
        if !key.is_empty() && !word.is_some_and(|word| sink.remembers(word)) {
            self.new_word(key, word, sink);
        }
    }

    fn new_word(&mut self, key: &str, word: Option<InlineWord>, sink: &mut impl Sink) {
        let since = sink.taken();
        let differs = self.stems.stem(key, |stem| {
            sink.term(Term { key: stem, role: Role::Word });
            stem != key
        });
        if differs {
            self.whole.clear();
            self.whole.push(SURFACE_MARK);
            self.whole.push_str(key);
            sink.term(Term { key: cut(&self.whole), role: Role::Surface });
        }
        if !key.is_ascii() && fold_into(key, &mut self.folded) {
            self.stems.stem(cut(&self.folded), |stem| sink.term(Term { key: stem, role: Role::Folded }));
        }
        if let Some(word) = word {
            sink.learn(word, since);
        }
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
        for part in parts() {
            lower_into(part, &mut self.whole);
            self.stems.stem(cut(&self.whole), |stem| sink.term(Term { key: stem, role: Role::Part { of } }));
        }
    }
}

/// The boundary between two pieces of a word.
#[derive(Default)]
struct Inside {
    digits: bool,
    apostrophe: bool,
    dots: usize,
    other_signs: bool,
}

/// Cuts a word at signs, between letters and digits, and before a capital after a small letter.
fn cut_pieces(word: &str, pieces: &mut Vec<(usize, usize)>) -> Inside {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Small,
        Capital,
        Digit,
    }
    let mut inside = Inside::default();
    let mut last: Option<Kind> = None;
    let mut open = false;
    pieces.clear();
    for (at, sign) in word.char_indices() {
        let kind = if sign.is_numeric() {
            inside.digits = true;
            Kind::Digit
        } else if sign.is_uppercase() {
            Kind::Capital
        } else if sign.is_alphanumeric() {
            Kind::Small
        } else if is_combining_mark(sign) {
            last.unwrap_or(Kind::Small)
        } else {
            match sign {
                '\'' => inside.apostrophe = true,
                '.' => inside.dots += 1,
                _ => inside.other_signs = true,
            }
            last = None;
            continue;
        };
        let goes_on = match (last, kind) {
            (Some(Kind::Digit), kind) => kind == Kind::Digit,
            (Some(Kind::Small), kind) => kind == Kind::Small,
            (Some(Kind::Capital), kind) => kind != Kind::Digit,
            (None, _) => false,
        };
        let end = at + sign.len_utf8();
        if !goes_on {
            open = pieces.len() < MAX_PARTS;
            if open {
                pieces.push((at, end));
            }
        } else if open && let Some(piece) = pieces.last_mut() {
            piece.1 = end;
        }
        last = Some(kind);
    }
    inside
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Words bare, surfaces with `=`, parts with `+`, wholes with `*`, folded with `~`.
    fn shown(analyzer: Analyzer, text: &str) -> String {
        let terms = analyzer.analyze(text);
        let shown = terms.iter().map(|(key, role)| match role {
            Role::Word | Role::Surface => key.clone(),
            Role::Part { .. } => format!("+{key}"),
            Role::Whole => format!("*{key}"),
            Role::Folded => format!("~{key}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn analysis_table() {
        let table = [
            // Words and stems.
            ("The cat sat.", "the cat sat"),
            ("Running runs ran", "run =running run =runs ran"),
            ("connections connected", "connect =connections connect =connected"),
            ("go, went; gone!", "go went gone"),
            // Apostrophes, straight and curly.
            ("Caroline's book", "carolin =caroline book"),
            ("Caroline\u{2019}s book", "carolin =caroline book"),
            ("the dogs' beds", "the dog =dogs bed =beds"),
            ("don't DON\u{2019}T", "dont dont"),
            ("they're we'll I'm she'd you've", "they we i she you"),
            ("O'Brien l'avion", "obrien +brien lavion +avion"),
            // Codes: one word of UAX #29 with parts.
            ("UA123", "ua123 +ua +123"),
            ("flight_id", "flight_id +flight +id"),
            ("JavaScript iPhone", "javascript +java +script iphon =iphone +phone"),
            ("B12", "b12 +12"),
            ("__init__ _id", "init id"),
            ("3.14", "3.14 +3 +14"),
            ("v1.2.3", "v1.2.3 +1 +2 +3"),
            ("10am", "10am +10 +am"),
            // Codes: several words with a whole.
            ("SKU-4411", "sku 4411 *sku-4411"),
            ("at 10:30", "at 10 30 *10:30"),
            ("2023-05-08", "2023 05 08 *2023-05-08"),
            ("$450", "450 *$450"),
            ("450€ or 50%", "450 *450€ or 50 *50%"),
            ("#42 @alice", "42 *#42 alic =alice *@alice"),
            ("ann@mail.org", "ann mail.org +mail +org *ann@mail.org"),
            ("src/main.rs:12", "src main.rs +main +rs 12 *src/main.rs:12"),
            ("https://example.org/a", "https example.org +exampl +org a *https://example.org/a"),
            ("e-mail", "e mail *email"),
            ("well-known", "well known *wellknown"),
            ("GPT-4", "gpt 4 *gpt-4"),
            // Numbers and acronyms.
            ("1,000 and 12,345.50", "1000 and 12345.50 +12345 +50"),
            ("1,5", "1,5 +1 +5"),
            ("U.S.A. e.g. a.m.", "usa eg am"),
            // NFKC, accents, case.
            ("cafe\u{301} café", "café ~cafe café ~cafe"),
            ("ＵＡ１２３", "ua123 +ua +123"),
            ("ﬁnal ①", "final 1"),
            ("Málaga", "málaga ~malaga"),
            ("Straße STRASSE", "straße ~strass strass =strasse"),
            ("ΟΔΟΣ οδός οδος", "οδοσ οδόσ οδοσ"),
            ("İstanbul ISTANBUL", "istanbul istanbul"),
            ("co\u{ad}operate", "cooper =cooperate"),
            // Other scripts.
            ("Москва живёт", "москва живёт"),
            ("東京", "東 京 *東京"),
            ("カタカナです", "カタカナ で す *です"),
            ("서울 여행", "서울 여행"),
            ("שלום עולם", "שלום עולם"),
            ("مرحبا بالعالم", "مرحبا بالعالم"),
            ("नमस्ते दुनिया", "नमस्ते दुनिया"),
            // Nothing.
            ("", ""),
            (" \t\n … — !?", ""),
            ("🙂 ok", "ok"),
            ("=\u{610} \u{a51}", ""),
        ];
        let wrong: Vec<String> = table
            .iter()
            .map(|(text, terms)| (text, terms, shown(Analyzer::default(), text)))
            .filter(|(_, terms, found)| found != *terms)
            .map(|(text, terms, found)| format!("{text:?}\n  wanted {terms}\n  found  {found}"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn without_stemming_words_stay() {
        let none = Analyzer::new(Stemming::None);
        assert_eq!(shown(none, "Running Caroline's e-mails UA123"), "running caroline e mails *emails ua123 +ua +123");
        assert_ne!(none.id(), Analyzer::new(Stemming::English).id());
        assert_eq!(none.id().to_string(), "analyser 1 (none)");
    }

    #[test]
    fn long_words_are_cut_and_long_compounds_end() {
        let long = "é".repeat(100);
        let terms = Analyzer::default().analyze(&long);
        assert!(terms.iter().all(|(key, _)| key.len() <= MAX_TERM_LEN));
        let compound = vec!["ab"; 40].join("-");
        let terms = Analyzer::default().analyze(&compound);
        assert_eq!(terms.iter().filter(|(_, role)| *role == Role::Word).count(), 40);
        assert_eq!(terms.iter().filter(|(_, role)| *role == Role::Whole).count(), 3);
    }

    #[test]
    fn windows_do_not_cut_words() {
        let text = "alpha beta-7 gamma ".repeat(10_000);
        let terms = Analyzer::default().analyze(&text);
        for key in ["alpha", "beta", "7", "beta-7", "gamma"] {
            assert_eq!(terms.iter().filter(|(term, _)| term == key).count(), 10_000, "{key}");
        }
    }
}
