//! The built-in hashing embedder: text to a vector with no model, no network and no state.
//!
//! 1. Words are the runs of letters and digits, in lower case (when there is none, the runs of anything but white
//!    space, so that `👍` has a vector too).
//! 2. A word counts as much as `damp · sqrt(tf)`: `tf` is how often it stands in the text; `damp` is 0.1, 0.15, 0.4
//!    and 0.75 for words of one to four ASCII letters, which in English are mostly grammar, and 1 for all others: `of`
//!    says little, `7b` and `日本` do not.
//! 3. A word adds itself, and its character n-grams of 3 to 5 letters, cut from `<word>` with its brackets but never
//!    the whole of it; each of `g` n-grams adds the word's weight over `sqrt(g)`, so that together they are as long as
//!    the word. So `booking`, `bookings` and `boking` are near each other.
//! 4. Each of these features is hashed to one dimension and a sign, summed, and the sum scaled to length 1.
//!
//! The hash is FNV-1a of 64 bits over one byte of kind (`w` a word, `n` an n-gram) and the UTF-8 bytes, then
//! MurmurHash3's 64-bit finalizer; the dimension is `(hash · dim) >> 64`, the sign its lowest bit. Everything after it
//! is sums, products, quotients and square roots in double precision in a fixed order, which IEEE 754 rounds alike
//! everywhere: the same text has the same vector on every machine, for ever, and a test pins one. A change of any of
//! this is another space: `hashing-v2-…`.
//!
//! Weighted bag of hashed features: Weinberger et al. 2009; n-grams in brackets: Bojanowski et al. 2017. Good enough
//! to try everything; a model trained on language is much better at meaning.

use crate::model::embed::{EmbedError, Embedder};
use std::collections::HashMap;

/// Dimension of [`HashingEmbedder::default`].
pub const DEFAULT_DIM: usize = 256;

/// Weight of a word of ASCII letters by its length; longer ones and all others weigh 1.
const DAMP: [f64; 5] = [0.0, 0.1, 0.15, 0.4, 0.75];

const NGRAM_LENS: std::ops::RangeInclusive<usize> = 3..=5;

/// Hashes words and their parts into a fixed number of dimensions; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashingEmbedder {
    dim: usize,
}

impl Default for HashingEmbedder {
    fn default() -> Self {
        HashingEmbedder { dim: DEFAULT_DIM }
    }
}

impl HashingEmbedder {
    /// An embedder into `dim` dimensions.
    ///
    /// # Panics
    ///
    /// When `dim` is 0.
    pub fn new(dim: usize) -> Self {
        assert!(dim > 0, "a vector has at least one dimension");
        HashingEmbedder { dim }
    }

    /// The embedder of a space by the model name that [`HashingEmbedder::name`] gives; `None` for other models.
    pub fn from_name(name: &str) -> Option<Self> {
        let digits = name.strip_prefix("hashing-v1-")?;
        let embedder = HashingEmbedder { dim: digits.parse().ok().filter(|dim| *dim > 0)? };
        (embedder.name() == name).then_some(embedder)
    }

    /// The name of the model: `hashing-v1-256`.
    pub fn name(&self) -> String {
        format!("hashing-v1-{}", self.dim)
    }

    /// The number of dimensions.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The vector of a text, of length 1; `None` when the text is blank (or, what takes very few dimensions, all its
    /// features cancel), since a vector of length 0 says nothing.
    pub fn embed(&self, text: &str) -> Option<Vec<f32>> {
        let lower = text.to_lowercase();
        let mut sum = vec![0.0_f64; self.dim];
        for (word, count) in words(&lower) {
            let weight = damp(word) * f64::from(count).sqrt();
            self.add(&mut sum, b'w', word, weight);
            let bracketed = format!("<{word}>");
            let ngrams = ngrams(&bracketed);
            let share = weight / (ngrams.clone().count().max(1) as f64).sqrt();
            for ngram in ngrams {
                self.add(&mut sum, b'n', ngram, share);
            }
        }
        let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        (length > 0.0).then(|| sum.iter().map(|x| (x / length) as f32).collect())
    }

    fn add(&self, sum: &mut [f64], kind: u8, feature: &str, weight: f64) {
        let hash = hash(kind, feature);
        let dimension = (u128::from(hash) * self.dim as u128) >> 64;
        // The product's high half is below `dim`.
        let place = usize::try_from(dimension).ok().and_then(|dimension| sum.get_mut(dimension));
        if let Some(place) = place {
            *place += if hash & 1 == 0 { weight } else { -weight };
        }
    }
}

impl Embedder for HashingEmbedder {
    /// The name of the model, which says all there is to say: `hashing-v1-256`.
    fn fingerprint(&self) -> String {
        self.name()
    }

    fn dimensions(&self) -> usize {
        self.dim
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        Ok(texts.iter().map(|text| self.embed(text)).collect())
    }
}

/// Distinct words in the order in which they first stand, with how often they do.
fn words(lower: &str) -> Vec<(&str, u32)> {
    let mut counted: Vec<(&str, u32)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut count = |word| {
        let place = *places.entry(word).or_insert(counted.len());
        match counted.get_mut(place) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => counted.push((word, 1)),
        }
    };
    let mut any = false;
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        any = true;
        count(word);
    }
    if !any {
        lower.split_whitespace().for_each(count);
    }
    counted
}

fn damp(word: &str) -> f64 {
    if word.bytes().all(|byte| byte.is_ascii_alphabetic()) { DAMP.get(word.len()).copied().unwrap_or(1.0) } else { 1.0 }
}

/// Runs of 3 to 5 characters, by where they begin and then by length, shorter than the whole.
fn ngrams(bracketed: &str) -> impl Iterator<Item = &str> + Clone {
    bracketed.char_indices().flat_map(move |(start, _)| {
        let rest = bracketed.get(start..).unwrap_or_default();
        // The ends of the first characters of `rest`, the first of them being its first character's end.
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).enumerate();
        ends.take(*NGRAM_LENS.end())
            .filter(|(nth, _)| NGRAM_LENS.contains(&(nth + 1)))
            .filter_map(move |(_, end)| rest.get(..end))
            .filter(move |ngram| ngram.len() < bracketed.len())
    })
}

fn hash(kind: u8, feature: &str) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = std::iter::once(kind).chain(feature.bytes());
    let fnv = bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    // FNV-1a leaves the high bits of short texts poorly mixed, and the dimension comes from them.
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embed(text: &str) -> Vec<f32> {
        HashingEmbedder::default().embed(text).expect(text)
    }

    fn cosine(a: &str, b: &str) -> f32 {
        embed(a).iter().zip(embed(b)).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn features_are_what_the_module_says() {
        assert_eq!(words("the cat, the 2 cats"), [("the", 2), ("cat", 1), ("2", 1), ("cats", 1)]);
        assert_eq!(words("👍 !! 👍"), [("👍", 2), ("!!", 1)]);
        assert_eq!(
            ngrams("<cats>").collect::<Vec<_>>(),
            ["<ca", "<cat", "<cats", "cat", "cats", "cats>", "ats", "ats>", "ts>"]
        );
        assert_eq!(ngrams("<é>").count(), 0);
        assert_eq!([damp("of"), damp("7b"), damp("日本"), damp("flight")], [DAMP[2], 1.0, 1.0, 1.0]);
    }

    /// These vectors are stored in databases under the name of the model, and may never change.
    #[test]
    fn the_vector_of_a_text_is_pinned() {
        let vector = embed("Hello, world: 42 flights to Lisbon");
        let first = [
            0.032982655,
            0.0,
            0.0,
            -0.122750066,
            0.080290414,
            -0.080290414,
            0.0,
            0.080290414,
            -0.07329478,
            -0.07329478,
            0.0,
            0.046644516,
        ];
        assert_eq!(vector[..first.len()], first);
        let bits = vector.iter().fold(0_u64, |bits, x| bits.rotate_left(5) ^ u64::from(x.to_bits()));
        assert_eq!(bits, 9_638_702_594_813_045_296);
    }

    #[test]
    fn the_name_says_the_dimension() {
        assert_eq!(HashingEmbedder::default().name(), "hashing-v1-256");
        assert_eq!(HashingEmbedder::from_name("hashing-v1-64"), Some(HashingEmbedder::new(64)));
        for other in ["all-MiniLM-L6-v2", "hashing-v1-0", "hashing-v1-064", "hashing-v1-", "hashing-v2-256"] {
            assert_eq!(HashingEmbedder::from_name(other), None, "{other}");
        }
    }

    #[test]
    fn vectors_have_length_one_and_blank_text_has_none() {
        for text in ["a", "Hello, world", "日本語", "👍", "7", "x".repeat(10_000).as_str()] {
            let length: f32 = embed(text).iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((length - 1.0).abs() < 1e-6, "{text}: {length}");
        }
        for text in ["", " \n\t", "\u{3000}"] {
            assert_eq!(HashingEmbedder::default().embed(text), None);
        }
        assert_eq!(HashingEmbedder::new(7).embed("seven").map(|vector| vector.len()), Some(7));
    }

    #[test]
    fn near_duplicates_are_near_and_strangers_are_not() {
        let question = "What does the night train to Lisbon cost?";
        let answer = "The night train to Lisbon costs 89 euros.";
        let stranger = "Our cat sleeps on the warm keyboard all afternoon.";
        assert!(cosine(question, answer) > 0.6, "{}", cosine(question, answer));
        assert!(cosine(question, stranger).abs() < 0.25, "{}", cosine(question, stranger));
        assert!(cosine("Book the hotel", "BOOK the hotel!") > 0.999);
    }

    #[test]
    fn typos_and_endings_stay_near() {
        for (right, wrong) in [("reservation", "resevration"), ("booking", "bookings"), ("Barcelona", "Barcelonna")] {
            let (near, far) = (cosine(right, wrong), cosine(right, "umbrella"));
            assert!(near > 0.2 && near > far + 0.15, "{right} {wrong}: {near}, {far}");
        }
    }

    #[test]
    fn short_words_of_english_say_little() {
        let shared = cosine("it is on the way to us", "it is on the house for us");
        let grammar = cosine("the train is on the track", "the cheese is on the plate");
        let topic = cosine("the train is on the track", "a train by our track");
        assert!(topic > grammar + 0.2, "{topic} {grammar} {shared}");
    }
}
