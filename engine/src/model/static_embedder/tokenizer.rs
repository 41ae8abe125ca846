//! The tokenizer of BERT, read from a `tokenizer.json` of Hugging Face: normaliser, words, WordPiece.
//!
//! ```text
//! text -> added tokens cut out -> cleaned, CJK spaced, accents stripped, lower case -> words and punctuation
//!      -> each word: the longest piece of the vocabulary, again and again; `##` before all but the first
//! ```
//!
//! Other tokenizers are refused: their ids would name other rows of the model.

use serde_json::Value;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Text to numbers of tokens.
#[derive(Debug)]
pub(super) struct Tokenizer {
    steps: Vec<Step>,
    /// Tokens by the text that begins a word.
    first: HashMap<String, u32>,
    /// Tokens by the text that continues a word, without the prefix.
    later: HashMap<String, u32>,
    /// The longest token in bytes.
    longest: usize,
    most_chars: usize,
    unknown: u32,
    /// Tokens that are found in the text as they are.
    added: Vec<(String, u32)>,
    /// One more than the highest token.
    size: usize,
    /// The median length of the tokens, in characters.
    median: usize,
}

/// One step of the normaliser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Clean,
    SpaceCjk,
    StripAccents,
    Lowercase,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// What is wrong with it, or which part is not supported.
    pub(super) fn read(json: &[u8]) -> Result<Tokenizer, String> {
        let json: Value = serde_json::from_slice(json).map_err(|error| format!("it is no JSON: {error}"))?;
        let steps = normaliser(&json["normalizer"])?;
        only_type(&json["pre_tokenizer"], "pre_tokenizer", "BertPreTokenizer")?;
        let model = &json["model"];
        only_type(model, "model", "WordPiece")?;
        let vocabulary = model["vocab"].as_object().ok_or("its model has no `vocab`")?;
        let prefix = model["continuing_subword_prefix"].as_str().unwrap_or("##");
        let (mut first, mut later, mut lens) = (HashMap::new(), HashMap::new(), Vec::new());
        let (mut longest, mut size) = (0, 0);
        for (token, number) in vocabulary {
            let number = number.as_u64().and_then(|number| u32::try_from(number).ok());
            let number = number.ok_or_else(|| format!("token {token:?} of its vocabulary has no number"))?;
            lens.push(token.chars().count());
            longest = longest.max(token.len());
            size = size.max(number as usize + 1);
            if let Some(rest) = token.strip_prefix(prefix) {
                later.insert(rest.to_owned(), number);
            }
            first.insert(token.clone(), number);
        }
        let unknown = model["unk_token"].as_str().unwrap_or("[UNK]");
        let unknown = *first.get(unknown).ok_or_else(|| format!("its unknown token {unknown:?} is not in `vocab`"))?;
        let mut added = Vec::new();
        for token in json["added_tokens"].as_array().into_iter().flatten() {
            let (Some(text), Some(number)) = (token["content"].as_str(), token["id"].as_u64()) else {
                return Err("an entry of `added_tokens` lacks `content` or `id`".to_owned());
            };
            let number = u32::try_from(number).map_err(|_| format!("added token {text:?} has the number {number}"))?;
            if !vocabulary.contains_key(text) {
                lens.push(text.chars().count());
            }
            size = size.max(number as usize + 1);
            if !text.is_empty() {
                added.push((text.to_owned(), number));
            }
        }
        let most_chars = model["max_input_chars_per_word"].as_u64().unwrap_or(100) as usize;
        let median = median(&mut lens);
        Ok(Tokenizer { steps, first, later, longest, most_chars, unknown, added, size, median })
    }

    /// One more than the highest token.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The known tokens of a text in `tokens`, at most `most`; what no token fits is left out. Like model2vec it looks
    /// at no more characters than `most` times the median length of a token.
    pub(super) fn tokens(&self, text: &str, most: usize, tokens: &mut Vec<u32>) {
        tokens.clear();
        let limit = most.saturating_mul(self.median);
        let text = if text.len() <= limit {
            text
        } else {
            text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
        };
        let mut rest = text;
        while let Some((start, len, token)) = self.next_added(rest) {
            self.part(&rest[..start], tokens);
            tokens.push(token);
            rest = &rest[start + len..];
        }
        self.part(rest, tokens);
        tokens.retain(|token| *token != self.unknown);
        tokens.truncate(most);
    }

    /// The first added token in a text: its place, its length and its number; of two at one place the longer.
    fn next_added(&self, text: &str) -> Option<(usize, usize, u32)> {
        let found = self.added.iter().filter_map(|(added, token)| Some((text.find(added)?, added.len(), *token)));
        found.min_by_key(|(start, len, _)| (*start, std::cmp::Reverse(*len)))
    }

    fn part(&self, text: &str, tokens: &mut Vec<u32>) {
        if text.is_ascii() {
            let lower;
            let text = if self.steps.contains(&Step::Lowercase) {
                lower = text.to_ascii_lowercase();
                lower.as_str()
            } else {
                text
            };
            return match self.steps.contains(&Step::Clean) && text.bytes().any(|byte| byte.is_ascii_control()) {
                true => self.words(&clean(text), tokens),
                false => self.words(text, tokens),
            };
        }
        let mut text = text.to_owned();
        for step in &self.steps {
            text = match step {
                Step::Clean => clean(&text),
                Step::SpaceCjk => space_cjk(&text),
                Step::StripAccents => text.nfd().filter(|c| !is_nonspacing(*c)).collect(),
                Step::Lowercase => text.chars().flat_map(char::to_lowercase).collect(),
            };
        }
        self.words(&text, tokens);
    }

    /// Splits at white space, and before and after each punctuation character.
    fn words(&self, text: &str, tokens: &mut Vec<u32>) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let is_mark = is_punctuation(c);
            if is_mark || c.is_whitespace() {
                self.word(&text[start..at], tokens);
                start = at + c.len_utf8();
                if is_mark {
                    self.word(&text[at..start], tokens);
                }
            }
        }
        self.word(&text[start..], tokens);
    }

    /// Cuts a word into the longest pieces of the vocabulary; one unknown token if that does not work out.
    fn word(&self, word: &str, tokens: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        if word.len() > self.most_chars && word.chars().count() > self.most_chars {
            return tokens.push(self.unknown);
        }
        let (before, mut rest, mut pieces) = (tokens.len(), word, &self.first);
        while !rest.is_empty() {
            let mut end = rest.floor_char_boundary(rest.len().min(self.longest));
            let found = loop {
                match pieces.get(&rest[..end]) {
                    Some(token) => break Some(*token),
                    None => match rest[..end].char_indices().next_back() {
                        Some((shorter, _)) if shorter > 0 => end = shorter,
                        _ => break None,
                    },
                }
            };
            let Some(token) = found else {
                tokens.truncate(before);
                return tokens.push(self.unknown);
            };
            tokens.push(token);
            (rest, pieces) = (&rest[end..], &self.later);
        }
    }
}

/// The steps of a normaliser.
fn normaliser(json: &Value) -> Result<Vec<Step>, String> {
    let flag = |name: &str| json[name].as_bool();
    match json["type"].as_str() {
        None if json.is_null() => Ok(Vec::new()),
        Some("BertNormalizer") => {
            let lowercase = flag("lowercase").unwrap_or(true);
            let steps = [
                (flag("clean_text").unwrap_or(true), Step::Clean),
                (flag("handle_chinese_chars").unwrap_or(true), Step::SpaceCjk),
                (flag("strip_accents").unwrap_or(lowercase), Step::StripAccents),
                (lowercase, Step::Lowercase),
            ];
            Ok(steps.into_iter().filter(|(on, _)| *on).map(|(_, step)| step).collect())
        }
        Some("Lowercase") => Ok(vec![Step::Lowercase]),
        Some("StripAccents") => Ok(vec![Step::StripAccents]),
        Some("Sequence") => {
            let steps = json["normalizers"].as_array().ok_or("its normaliser has no `normalizers`")?;
            Ok(steps.iter().map(normaliser).collect::<Result<Vec<_>, _>>()?.concat())
        }
        other => Err(unsupported("normalizer", other.unwrap_or("without a type"), "BertNormalizer")),
    }
}

/// Refuses a part of another type, in a sequence of one as well.
fn only_type(json: &Value, part: &str, expected: &str) -> Result<(), String> {
    match json["type"].as_str() {
        Some(found) if found == expected => Ok(()),
        found => Err(unsupported(part, found.unwrap_or("without a type"), expected)),
    }
}

fn unsupported(part: &str, found: &str, expected: &str) -> String {
    format!("its {part} is {found}, and {expected} is supported; use a model with the tokenizer of BERT")
}

/// The median of lengths, rounded down; 1 at least.
fn median(lens: &mut [usize]) -> usize {
    lens.sort_unstable();
    let middle = lens.len() / 2;
    let upper = lens.get(middle).copied().unwrap_or(1);
    let lower =
        if lens.len().is_multiple_of(2) { lens.get(middle.wrapping_sub(1)).copied().unwrap_or(1) } else { upper };
    ((lower + upper) / 2).max(1)
}

/// Removes control characters, and writes each white space as a blank.
fn clean(text: &str) -> String {
    let is_removed = |c: char| c == '\0' || c == '\u{fffd}' || (!matches!(c, '\t' | '\n' | '\r') && is_other(c));
    text.chars().filter(|c| !is_removed(*c)).map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}

/// Puts blanks around CJK ideographs, so that each is a word.
fn space_cjk(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars() {
        if is_cjk(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced
}

/// The blocks that BERT takes for CJK ideographs.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f
        | 0x2b920..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

fn is_punctuation(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_punctuation(),
        false => c.general_category_group() == GeneralCategoryGroup::Punctuation,
    }
}

fn is_nonspacing(c: char) -> bool {
    !c.is_ascii() && c.general_category() == GeneralCategory::NonspacingMark
}

fn is_other(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_control(),
        false => c.general_category_group() == GeneralCategoryGroup::Other,
    }
}
