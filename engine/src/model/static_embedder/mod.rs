//! A static embedding model in a folder, as model2vec distils them: potion-base-8M, potion-retrieval-32M and others.
//!
//! | file | content |
//! |---|---|
//! | `tokenizer.json` | a WordPiece tokenizer with the normaliser of BERT |
//! | `model.safetensors` | `embeddings` [rows, dimensions]; `weights` [tokens] and `mapping` [tokens] if it has them |
//! | `config.json` | `normalize`, and `max_length` in tokens where it is not 512 |
//!
//! The vector of a text is the mean of the rows of its tokens, each times its weight, scaled to length 1 if the model
//! is normalised (model2vec's `StaticModel.encode`). There is no network of layers to run, so one core embeds tens of
//! thousands of short texts in a second. The fingerprint is the BLAKE3 of the three files.

mod tensors;
mod tokenizer;

use crate::model::embed::{EmbedError, Embedder};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::{fmt, io};
use tensors::Tensors;
use tokenizer::Tokenizer;

/// Tokens of a text that count, at most, where the model states no `max_length`.
const MOST_TOKENS: usize = 512;
/// The files of a model, in the order in which they are hashed.
const FILES: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];

/// A static embedding model; see the [module](crate::embed) for the others.
///
/// ```no_run
/// use holotype::embed::StaticEmbedder;
/// use holotype::{Holotype, Options};
///
/// let embedder = StaticEmbedder::open("models/potion-base-8M")?;
/// let database = Holotype::create("memory.holo", Options::default().embedder(embedder))?;
/// # Ok::<(), holotype::Error>(())
/// ```
pub struct StaticEmbedder {
    name: String,
    fingerprint: String,
    dim: usize,
    tokenizer: Tokenizer,
    /// The rows, one after the other.
    rows: Vec<f32>,
    /// The weight of each token; empty if each counts 1.
    weights: Vec<f32>,
    /// The row of each token; empty if token n has row n.
    mapping: Vec<u32>,
    config: Config,
}

/// The content of `config.json`.
#[derive(Debug, Clone, Copy)]
struct Config {
    /// Vectors have length 1.
    normalize: bool,
    /// Tokens of a text that count, at most.
    most_tokens: usize,
}

impl StaticEmbedder {
    /// Reads the model of a folder.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is missing or cannot be read; [`Error::Invalid`] for one that does not fit the
    /// others, or is of a kind that is not supported.
    pub fn open(folder: impl AsRef<Path>) -> Result<StaticEmbedder> {
        let folder = folder.as_ref();
        let [config, model, tokenizer] = FILES.map(|name| read(folder.join(name)));
        let (config, model, tokenizer) = (config?, model?, tokenizer?);
        let mut hasher = blake3::Hasher::new();
        for (name, bytes) in FILES.iter().zip([&config, &model, &tokenizer]) {
            hasher.update(name.as_bytes()).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        let fault = |name: &str, what: String| Error::Invalid(format!("{}: {what}", folder.join(name).display()));
        let mut embedder = StaticEmbedder {
            name: name_of(folder),
            fingerprint: format!("blake3:{}", hasher.finalize().to_hex()),
            dim: 0,
            tokenizer: Tokenizer::read(&tokenizer).map_err(|what| fault("tokenizer.json", what))?,
            rows: Vec::new(),
            weights: Vec::new(),
            mapping: Vec::new(),
            config: Config::read(&config).map_err(|what| fault("config.json", what))?,
        };
        embedder.take(&model).map_err(|what| fault("model.safetensors", what))?;
        Ok(embedder)
    }

    /// Takes the tensors, if they fit each other and the tokenizer.
    fn take(&mut self, file: &[u8]) -> Result<(), String> {
        let tensors = Tensors::read(file)?;
        let rows = tensors.get("embeddings")?.ok_or_else(|| {
            format!("it has no tensor `embeddings`, but {:?}; a model2vec folder is expected", tensors.names())
        })?;
        let [count, dim] = rows.shape[..] else {
            return Err(format!("`embeddings` has the shape {:?}; [rows, dimensions] is expected", rows.shape));
        };
        if count == 0 || dim == 0 || dim > holotype_index::spec::MAX_DIM {
            return Err(format!("`embeddings` has {count} rows of {dim} numbers"));
        }
        if let Some(at) = rows.numbers.iter().position(|number| !number.is_finite()) {
            return Err(format!("`embeddings` holds {} in row {}", rows.numbers[at], at / dim));
        }
        let tokens = self.tokenizer.size();
        if let Some(weights) = tensors.get("weights")? {
            if weights.numbers.len() < tokens || weights.numbers.iter().any(|weight| !weight.is_finite()) {
                let found = weights.numbers.len();
                return Err(format!(
                    "`weights` holds {found} numbers; a finite one for each of {tokens} tokens is expected"
                ));
            }
            self.weights = weights.numbers;
        }
        let mapped = match tensors.get("mapping")? {
            Some(mapping) => {
                self.mapping = mapping.numbers.iter().map(|row| row.max(0.0) as u32).collect();
                if let Some(row) = mapping.numbers.iter().find(|row| !(0.0..count as f32).contains(*row)) {
                    return Err(format!("`mapping` names row {row}, and `embeddings` has {count}"));
                }
                self.mapping.len()
            }
            None => count,
        };
        if mapped < tokens {
            return Err(format!(
                "it has rows for {mapped} tokens, and the tokenizer has {tokens}; both are of one model"
            ));
        }
        (self.dim, self.rows) = (dim, rows.numbers);
        Ok(())
    }

    /// The vector of a text, of the model's dimension; `None` if no token of the vocabulary is in it, or its tokens
    /// cancel.
    pub fn embed(&self, text: &str) -> Option<Vec<f32>> {
        self.mean(text, &mut Vec::new())
    }

    /// Its kind, dimension, longest input and pooling, as names and values.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let scaled = if self.config.normalize { ", scaled to length 1" } else { "" };
        let longest = match self.config.most_tokens {
            usize::MAX => "any".to_owned(),
            most => format!("{most} tokens"),
        };
        vec![
            ("kind", format!("static, {} tokens", self.tokenizer.size())),
            ("dimension", self.dim.to_string()),
            ("longest input", longest),
            ("pooling", format!("mean{scaled}")),
            ("before questions", "\"\"".to_owned()),
            ("before passages", "\"\"".to_owned()),
        ]
    }

    /// The mean of the rows of a text's tokens.
    fn mean(&self, text: &str, tokens: &mut Vec<u32>) -> Option<Vec<f32>> {
        self.tokenizer.tokens(text, self.config.most_tokens, tokens);
        let mut sum = vec![0.0_f32; self.dim];
        for token in tokens.iter().map(|token| *token as usize) {
            let row = self.mapping.get(token).map_or(token, |row| *row as usize);
            let row = self.rows.get(row * self.dim..(row + 1) * self.dim)?;
            match self.weights.get(token) {
                Some(weight) => sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number * weight),
                None => sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number),
            }
        }
        let mut divisor = tokens.len() as f32;
        let length = sum.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
        if self.config.normalize {
            divisor = length as f32;
        }
        if length == 0.0 {
            return None;
        }
        sum.iter_mut().for_each(|number| *number /= divisor);
        Some(sum)
    }
}

impl Embedder for StaticEmbedder {
    /// `blake3:` and the hash of the files.
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn dimensions(&self) -> usize {
        self.dim
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let mut tokens = Vec::new();
        Ok(texts.iter().map(|text| self.mean(text, &mut tokens)).collect())
    }

    /// The name of the folder.
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl fmt::Debug for StaticEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StaticEmbedder { name, fingerprint, dim, .. } = self;
        f.debug_struct("StaticEmbedder")
            .field("name", name)
            .field("dim", dim)
            .field("fingerprint", fingerprint)
            .finish_non_exhaustive()
    }
}

fn read(path: PathBuf) -> Result<Vec<u8>> {
    std::fs::read(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            let source = io::Error::new(
                source.kind(),
                format!("it is missing; a folder with {} is expected, as model2vec saves it", FILES.join(", ")),
            );
            Error::File { path, source }
        }
        _ => Error::File { path, source },
    })
}

/// The name of a folder, cut to what the name of a space may be.
fn name_of(folder: &Path) -> String {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.floor_char_boundary(512) {
        0 => "static".to_owned(),
        end => name[..end].to_owned(),
    }
}

impl Config {
    fn read(json: &[u8]) -> Result<Config, String> {
        let json: serde_json::Value =
            serde_json::from_slice(json).map_err(|error| format!("it is no JSON: {error}"))?;
        let normalize = match json.get("normalize") {
            None => false,
            Some(stated) => {
                stated.as_bool().ok_or_else(|| format!("`normalize` is {stated}; true or false is expected"))?
            }
        };
        let most_tokens = match json.get("max_length") {
            None => MOST_TOKENS,
            Some(serde_json::Value::Null) => usize::MAX,
            Some(stated) => {
                let length = stated.as_u64().filter(|length| *length > 0).map(|length| length as usize);
                length.ok_or_else(|| format!("`max_length` is {stated}; a number of tokens above 0 is expected"))?
            }
        };
        Ok(Config { normalize, most_tokens })
    }
}
