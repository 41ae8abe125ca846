//! A transformer in a folder as an embedder: its tokens, its batches, its fingerprint.

use crate::encoder::Encoder;
use crate::settings::{Fault, Pooling, Settings};
use crate::weights::Weights;
use holotype::embed::{EmbedError, Embedder};
use holotype::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tokenizers::Tokenizer;
use tokenizers::utils::truncation::{TruncationParams, TruncationStrategy};

/// The version of the arithmetic: another one may give vectors that differ by more than rounding.
const CODE: &str = "holotype-embed-1";
/// Tokens of one pass, about: more would fall out of the caches.
const PASS_TOKENS: usize = 512;
/// Questions whose vectors are kept.
const KEPT_QUERIES: usize = 64;

/// A transformer embedding model; [`open`](crate::open) chooses it for a folder that has one.
///
/// ```no_run
/// use holotype::{Holotype, Options};
/// use holotype_embed::Transformer;
///
/// let embedder = Transformer::open("models/all-MiniLM-L6-v2")?;
/// let database = Holotype::create("memory.holo", Options::default().embedder(embedder))?;
/// # Ok::<(), holotype::Error>(())
/// ```
pub struct Transformer {
    name: String,
    fingerprint: String,
    tokenizer: Tokenizer,
    encoder: Encoder,
    /// The vectors of the last questions, the newest last.
    queries: Mutex<VecDeque<(String, Option<Vec<f32>>)>>,
    /// True once an input was longer than the model reads, and once that was said.
    cut: AtomicBool,
    told: AtomicBool,
}

impl Transformer {
    /// Reads the model of a folder: `config.json`, `tokenizer.json`, `model.safetensors` and what sentence-transformers
    /// puts beside them.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is missing or cannot be read; [`Error::Invalid`] for one that does not fit the
    /// others, or is of a kind that is not supported.
    pub fn open(folder: impl AsRef<Path>) -> Result<Transformer> {
        let folder = folder.as_ref();
        let fault = |(name, what): Fault| Error::Invalid(format!("{}: {what}", folder.join(name).display()));
        let settings = Settings::read(folder).map_err(fault)?;
        let file = |name: &str| {
            let path = folder.join(name);
            move |source: io::Error| Error::File { path, source: explained(source) }
        };
        let config = fs::read(folder.join("config.json")).map_err(file("config.json"))?;
        let json = fs::read(folder.join("tokenizer.json")).map_err(file("tokenizer.json"))?;
        let mut weights = Weights::read(&folder.join("model.safetensors")).map_err(file("model.safetensors"))?;
        // The vocabulary is parsed while the weights are hashed.
        let (tokenizer, fingerprint) = std::thread::scope(|scope| {
            let parsing = scope.spawn(|| tokenizer(&json, &settings));
            let fingerprint = fingerprint(&config, &json, weights.bytes(), &settings);
            (parsing.join().unwrap_or_else(|_| Err("its parser failed".to_owned())), fingerprint)
        });
        let tokenizer = tokenizer.map_err(|what| fault(("tokenizer.json".to_owned(), what)))?;
        let of_weights = |what| fault(("model.safetensors".to_owned(), what));
        weights.find().map_err(of_weights)?;
        let encoder = Encoder::new(weights, settings).map_err(of_weights)?;
        let tokens = tokenizer.get_vocab_size(true);
        if tokens > encoder.vocabulary() {
            let what = format!("it has {tokens} tokens, and the model {}; both are of one model", encoder.vocabulary());
            return Err(fault(("tokenizer.json".to_owned(), what)));
        }
        Ok(Transformer {
            name: name_of(folder),
            fingerprint,
            tokenizer,
            encoder,
            queries: Mutex::default(),
            cut: AtomicBool::new(false),
            told: AtomicBool::new(false),
        })
    }

    /// The most tokens of an input, its marks included; the rest of a longer one is left out.
    pub fn most_tokens(&self) -> usize {
        self.encoder.settings().most_tokens
    }

    /// Its kind, dimension, longest input, pooling and prefixes, as names and values.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let settings = self.encoder.settings();
        let pooling = match settings.pooling {
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
        };
        let scaled = if settings.normalize { ", scaled to length 1" } else { "" };
        vec![
            ("kind", format!("transformer, {} layers, {}", settings.layers, self.encoder.form())),
            ("dimension", settings.hidden.to_string()),
            ("longest input", format!("{} tokens", settings.most_tokens)),
            ("pooling", format!("{pooling}{scaled}")),
            ("before questions", format!("{:?}", settings.query_prefix)),
            ("before passages", format!("{:?}", settings.passage_prefix)),
        ]
    }

    /// The ids of a text's tokens, with the marks of the model.
    ///
    /// # Errors
    /// [`EmbedError`] if the tokenizer fails.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let lowered = self.encoder.settings().lowers.then(|| text.to_lowercase());
        let encoding = self.tokenizer.encode_fast(lowered.as_deref().unwrap_or(text), true);
        let encoding = encoding.map_err(|error| EmbedError::new(format!("the tokenizer of {}: {error}", self.name)))?;
        if !encoding.get_overflowing().is_empty() {
            self.cut.store(true, Ordering::Relaxed);
        }
        Ok(encoding.get_ids().to_vec())
    }

    /// The vectors of texts as they are, without words before them. A blank text has one, too: that of its marks.
    ///
    /// # Errors
    /// [`EmbedError`] if the tokenizer fails.
    pub fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let tokens = texts.iter().map(|text| self.tokens(text)).collect::<Result<Vec<_>, _>>()?;
        let mut order: Vec<usize> = (0..tokens.len()).filter(|at| !tokens[*at].is_empty()).collect();
        order.sort_by_key(|at| tokens[*at].len());
        let passes = passes(&order, &tokens);
        let (next, made) = (AtomicUsize::new(0), Mutex::new(vec![vec![0.0; self.dimensions()]; texts.len()]));
        let work = || {
            while let Some(pass) = passes.get(next.fetch_add(1, Ordering::Relaxed)) {
                let inputs: Vec<&[u32]> = pass.iter().map(|at| tokens[*at].as_slice()).collect();
                let vectors = self.encoder.encode(&inputs);
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                pass.iter().zip(vectors).for_each(|(at, vector)| made[*at] = vector);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(passes.len());
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn embed(&self, prefix: &str, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let said: Vec<&&str> = texts.iter().filter(|text| !text.trim().is_empty()).collect();
        let prefixed: Vec<String> = said.iter().map(|text| format!("{prefix}{text}")).collect();
        let given: Vec<&str> = prefixed.iter().map(String::as_str).collect();
        let mut vectors = self.vectors(&given)?.into_iter();
        let of = |text: &&str| if text.trim().is_empty() { None } else { vectors.next() };
        Ok(texts.iter().map(of).collect())
    }
}

/// The texts of each pass: of similar length, and together about [`PASS_TOKENS`].
fn passes(order: &[usize], tokens: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let mut passes: Vec<Vec<usize>> = Vec::new();
    let mut count = 0;
    for at in order {
        let len = tokens[*at].len();
        match passes.last_mut().filter(|_| count + len <= PASS_TOKENS) {
            Some(pass) => pass.push(*at),
            None => {
                passes.push(vec![*at]);
                count = 0;
            }
        }
        count += len;
    }
    passes
}

impl Embedder for Transformer {
    /// The name of the code and a hash of the model's files, its pooling and its prefixes.
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn dimensions(&self) -> usize {
        self.encoder.settings().hidden
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.embed(&self.encoder.settings().passage_prefix, texts)
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        let kept = || self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, vector)) = kept().iter().find(|(known, _)| known == text) {
            return Ok(vector.clone());
        }
        let vector = self.embed(&self.encoder.settings().query_prefix, &[text])?.pop().flatten();
        let mut queries = kept();
        if queries.len() == KEPT_QUERIES {
            queries.pop_front();
        }
        queries.push_back((text.to_owned(), vector.clone()));
        Ok(vector)
    }

    /// The name of the folder.
    fn name(&self) -> String {
        self.name.clone()
    }

    fn take_note(&self) -> Option<String> {
        let is_new = self.cut.load(Ordering::Relaxed) && !self.told.swap(true, Ordering::Relaxed);
        is_new.then(|| {
            let (name, most) = (&self.name, self.most_tokens());
            format!("{name} reads {most} tokens: of longer texts, the vector is that of the beginning")
        })
    }
}

impl fmt::Debug for Transformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transformer { name, fingerprint, .. } = self;
        f.debug_struct("Transformer").field("name", name).field("fingerprint", fingerprint).finish_non_exhaustive()
    }
}

/// The tokenizer of a file, which cuts inputs by tokens and pads none.
fn tokenizer(json: &[u8], settings: &Settings) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::from_bytes(json).map_err(|error| error.to_string())?;
    tokenizer.with_padding(None);
    let truncation = TruncationParams {
        max_length: settings.most_tokens,
        strategy: TruncationStrategy::LongestFirst,
        ..TruncationParams::default()
    };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| error.to_string())?;
    Ok(tokenizer)
}

fn fingerprint(config: &[u8], tokenizer: &[u8], weights: &[u8], settings: &Settings) -> String {
    let mut hasher = blake3::Hasher::new();
    let Settings { pooling, normalize, most_tokens, lowers, query_prefix, passage_prefix, .. } = settings;
    let stated = format!("{pooling:?} {normalize} {most_tokens} {lowers} {query_prefix:?} {passage_prefix:?}");
    for part in [config, tokenizer, weights, stated.as_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    format!("{CODE}:{}", hasher.finalize().to_hex())
}

fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), "it is missing; a folder as sentence-transformers saves it is expected")
        }
        _ => error,
    }
}

/// The name of a folder, cut to what the name of a space may be.
fn name_of(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.floor_char_boundary(512) {
        0 => "transformer".to_owned(),
        end => name[..end].to_owned(),
    }
}
