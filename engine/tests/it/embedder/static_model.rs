//! Static models: vectors as of model2vec, tiny models made here, and broken folders.

use holotype::embed::{Embedder, StaticEmbedder};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/embedder/static_model").join(name)
}

/// The vectors were made by model2vec 0.10.0, as `static_model/make.py` says; model2vec-rs 0.4.0 makes the same ones,
/// as `static_model/oracle.rs.txt` shows.
#[test]
fn vectors_are_those_of_model2vec() {
    for name in ["plain", "quantized"] {
        let embedder = StaticEmbedder::open(fixture(name)).unwrap();
        assert_eq!(embedder.name(), name);
        let lines = fs::read_to_string(fixture(&format!("{name}.jsonl"))).unwrap();
        assert_eq!(lines.lines().count(), 17);
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let text = case["text"].as_str().unwrap();
            let expected: Vec<f32> =
                case["vector"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect();
            let found = embedder.embed(text).unwrap_or_else(|| vec![0.0; embedder.dimensions()]);
            let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(found.len() == expected.len() && far < 1e-5, "{name} {text:?}: {found:?}, not {expected:?}");
        }
    }
}

/// The parts of a tiny model.
struct Model {
    config: Value,
    tokenizer: Value,
    tensors: Vec<(&'static str, &'static str, Vec<usize>, Vec<u8>)>,
}

fn f32s(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Model {
    /// Tokens `[UNK] big cat ##s`, with rows (9, 9), (1, 0), (0, 2), (2, 2).
    fn tiny() -> Model {
        let vocabulary = json!({"[UNK]": 0, "big": 1, "cat": 2, "##s": 3});
        let rows = f32s(&[9.0, 9.0, 1.0, 0.0, 0.0, 2.0, 2.0, 2.0]);
        Model {
            config: json!({"normalize": false}),
            tokenizer: json!({
                "added_tokens": [], "normalizer": {"type": "BertNormalizer", "lowercase": true},
                "pre_tokenizer": {"type": "BertPreTokenizer"},
                "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary},
            }),
            tensors: vec![("embeddings", "F32", vec![4, 2], rows)],
        }
    }

    fn save(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        fs::write(folder.join("tokenizer.json"), self.tokenizer.to_string()).unwrap();
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, form, shape, bytes) in &self.tensors {
            let offsets = [data.len(), data.len() + bytes.len()];
            header.insert((*name).to_owned(), json!({"dtype": form, "shape": shape, "data_offsets": offsets}));
            data.extend_from_slice(bytes);
        }
        let header = Value::Object(header).to_string();
        let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
        fs::write(folder.join("model.safetensors"), file).unwrap();
    }

    fn open(&self) -> Result<StaticEmbedder, String> {
        let dir = tempfile::tempdir().unwrap();
        self.save(&dir.path().join("tiny"));
        StaticEmbedder::open(dir.path().join("tiny")).map_err(|error| error.to_string())
    }
}

#[test]
fn a_vector_is_the_weighted_mean_of_the_rows() {
    let mut model = Model::tiny();
    let embedder = model.open().unwrap();
    // (1, 0) and (0, 2) and (2, 2), over 3; an unknown word counts for nothing.
    assert_eq!(embedder.embed("Big cats, zebra"), Some(vec![1.0, 4.0 / 3.0]));
    assert_eq!(embedder.embed("zebra!"), None);
    assert_eq!((embedder.dimensions(), embedder.name().as_str()), (2, "tiny"));

    model.config = json!({"normalize": true});
    assert_eq!(model.open().unwrap().embed("Big cats"), Some(vec![0.6, 0.8]));

    // Token n times weights[n], and row mapping[n].
    model.config = json!({"normalize": false});
    model.tensors.push(("weights", "F32", vec![4], f32s(&[1.0, 2.0, 0.5, 1.0])));
    let mapping: Vec<u8> = [0_i64, 3, 2, 1].iter().flat_map(|row| row.to_le_bytes()).collect();
    model.tensors.push(("mapping", "I64", vec![4], mapping));
    // big: 2 x (2, 2); cat: 0.5 x (0, 2).
    assert_eq!(model.open().unwrap().embed("big cat"), Some(vec![2.0, 2.5]));

    // One token, and three characters, which is the median length of tokens.
    model.config = json!({"normalize": false, "max_length": 1});
    assert_eq!(model.open().unwrap().embed("big cat"), Some(vec![4.0, 4.0]));
}

#[test]
fn the_fingerprint_is_that_of_the_files() {
    let fingerprint = |model: &Model| model.open().unwrap().fingerprint();
    let first = fingerprint(&Model::tiny());
    assert!(first.starts_with("blake3:") && first.len() == 71, "{first}");
    assert_eq!(first, fingerprint(&Model::tiny()));
    let mut other = Model::tiny();
    other.tensors[0].3[0] ^= 1;
    assert_ne!(first, fingerprint(&other));
    let mut other = Model::tiny();
    other.config["normalize"] = json!(true);
    assert_ne!(first, fingerprint(&other));
}

#[test]
fn broken_folders_are_refused_with_the_file_and_the_fault() {
    type Break = fn(&mut Model);
    let cases: [(Break, &str); 12] = [
        (|model| model.config = json!({"normalize": "yes"}), "config.json: `normalize` is \"yes\"; true or false"),
        (|model| model.config = json!({"max_length": 0}), "config.json: `max_length` is 0"),
        (|model| model.tokenizer["model"]["type"] = json!("Unigram"), "model is Unigram, and WordPiece is supported"),
        (|model| model.tokenizer["pre_tokenizer"]["type"] = json!("Metaspace"), "pre_tokenizer is Metaspace"),
        (|model| model.tokenizer["normalizer"]["type"] = json!("NFKC"), "normalizer is NFKC"),
        (|model| model.tokenizer["model"]["unk_token"] = json!("<unk>"), "unknown token \"<unk>\" is not in `vocab`"),
        (|model| model.tokenizer["model"]["vocab"]["dog"] = json!(-4), "token \"dog\" of its vocabulary has no number"),
        (|model| model.tokenizer["model"]["vocab"]["dog"] = json!(4), "rows for 4 tokens, and the tokenizer has 5"),
        (|model| model.tensors[0].0 = "rows", "no tensor `embeddings`, but [\"rows\"]"),
        (|model| model.tensors[0].2 = vec![4, 3], "its shape [4, 3] does not fit its 8 numbers"),
        (|model| model.tensors[0].1 = "U8", "numbers of type U8"),
        (|model| model.tensors[0].3[2..4].copy_from_slice(&[0xc0, 0x7f]), "`embeddings` holds NaN in row 0"),
    ];
    for (broken, told) in cases {
        let mut model = Model::tiny();
        broken(&mut model);
        let error = model.open().unwrap_err();
        assert!(error.contains(told) && error.contains("tiny"), "{told}: {error}");
    }
    for (mapping, weights, told) in [
        (vec![0_i64, 1, 2, 4], 4, "`mapping` names row 4, and `embeddings` has 4"),
        (vec![0, 1, -2, 3], 4, "`mapping` names row -2"),
        (vec![0, 1, 2], 4, "rows for 3 tokens"),
        (vec![0, 1, 2, 3], 3, "`weights` holds 3 numbers"),
    ] {
        let mut model = Model::tiny();
        let bytes = mapping.iter().flat_map(|row| row.to_le_bytes()).collect();
        model.tensors.push(("mapping", "I64", vec![mapping.len()], bytes));
        model.tensors.push(("weights", "F32", vec![weights], f32s(&vec![1.0; weights])));
        let error = model.open().unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn missing_and_cut_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let folder = dir.path().join(name);
        Model::tiny().save(&folder);
        let whole = fs::read(folder.join(name)).unwrap();
        fs::remove_file(folder.join(name)).unwrap();
        let error = StaticEmbedder::open(&folder).unwrap_err();
        assert!(error.code() == "not-found" && error.to_string().contains(name), "{error}");
        // Every beginning of a file is refused or a model, never a panic.
        for len in 0..whole.len() {
            fs::write(folder.join(name), &whole[..len]).unwrap();
            let error = StaticEmbedder::open(&folder).unwrap_err().to_string();
            assert!(error.contains(name), "{len}: {error}");
        }
    }
    let error = StaticEmbedder::open(dir.path().join("nothing")).unwrap_err().to_string();
    assert!(error.contains("config.json, model.safetensors, tokenizer.json"), "{error}");
}
