//! Static embedder: short texts a second on one core.
//!
//! Without `--model` the model is made here, of the size of potion-base-8M: 29,528 tokens, 256 dimensions, f32. Texts
//! have `--words` words, most of them in the vocabulary and every eighth cut into pieces.

use crate::Result;
use crate::measure::{round, thread_cpu_time};
use crate::random::Random;
use holotype::embed::{Embedder, StaticEmbedder};
use serde_json::{Map, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

const TOKENS: usize = 29_528;
const DIM: usize = 256;
/// Texts of one call.
const BATCH: usize = 256;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a model2vec model; one is made otherwise
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// The number of texts
    #[arg(long, default_value_t = 100_000)]
    texts: usize,
    /// Words of a text
    #[arg(long, default_value_t = 12)]
    words: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let folder = match &arguments.model {
        Some(folder) => folder.clone(),
        None => {
            make(dir.path())?;
            dir.path().to_owned()
        }
    };
    let opening = Instant::now();
    let embedder = StaticEmbedder::open(&folder)?;
    let opened = opening.elapsed();
    let texts = texts(arguments);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let start = thread_cpu_time();
    let mut without = 0;
    for batch in texts.chunks(BATCH) {
        without += embedder.embed_passages(batch)?.iter().filter(|vector| vector.is_none()).count();
    }
    let seconds = (thread_cpu_time() - start).as_secs_f64();
    println!(
        "{}",
        json!({
            "bench": "embed",
            "texts": texts.len(),
            "words": arguments.words,
            "dimensions": embedder.dimensions(),
            "without_vector": without,
            "open_ms": opened.as_secs_f64() * 1e3,
            "texts_per_s": round(texts.len() as f64 / seconds, 0),
        })
    );
    Ok(())
}

/// The word of a number: letters by base 20, so that no word is a piece of another one's beginning alone.
fn word(number: usize) -> String {
    const LETTERS: &[u8; 20] = b"abcdefghiklmnoprstuv";
    let mut letters = String::new();
    let mut rest = number + 400;
    while rest > 0 {
        letters.push(char::from(LETTERS[rest % 20]));
        rest /= 20;
    }
    letters
}

fn texts(arguments: &Arguments) -> Vec<String> {
    let mut random = Random(22);
    let mut text = || {
        let words: Vec<String> = (0..arguments.words)
            .map(|at| {
                let chosen = word(random.below(TOKENS / 2));
                if at % 8 == 7 { format!("{chosen}{}", word(random.below(400))) } else { chosen }
            })
            .collect();
        format!("{}.", words.join(" "))
    };
    (0..arguments.texts).map(|_| text()).collect()
}

/// Writes a model of random rows.
fn make(folder: &Path) -> Result<()> {
    let mut random = Random(8);
    let mut vocabulary = Map::new();
    vocabulary.insert("[UNK]".to_owned(), json!(0));
    for number in 0..TOKENS / 2 {
        vocabulary.insert(word(number), json!(vocabulary.len()));
    }
    let mut piece = 0;
    while vocabulary.len() < TOKENS {
        vocabulary.insert(format!("##{}", word(piece)), json!(vocabulary.len()));
        piece += 1;
    }
    let tokenizer = json!({
        "added_tokens": [], "normalizer": {"type": "BertNormalizer", "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary},
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string())?;
    std::fs::write(folder.join("config.json"), "{\"normalize\": true}")?;
    let bytes = TOKENS * DIM * 4;
    let header =
        json!({"embeddings": {"dtype": "F32", "shape": [TOKENS, DIM], "data_offsets": [0, bytes]}}).to_string();
    let mut file = Vec::with_capacity(bytes + header.len() + 8);
    file.extend_from_slice(&(header.len() as u64).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    for _ in 0..TOKENS * DIM {
        file.extend_from_slice(&random.normal().to_le_bytes());
    }
    Ok(std::fs::write(folder.join("model.safetensors"), file)?)
}
