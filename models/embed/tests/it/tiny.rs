//! Tiny models with random weights, written as sentence-transformers writes them, and a plain computation of their
//! vectors in f64: a text at a time, a sum at a time, with no code of the crate.

use half::{bf16, f16};
use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(crate) const HIDDEN: usize = 12;
const INNER: usize = 20;
const LAYERS: usize = 2;
const HEADS: usize = 3;
const POSITIONS: usize = 18;

/// How a model differs from another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) family: &'static str,
    pub(crate) pooling: &'static str,
    pub(crate) normalize: bool,
    pub(crate) form: Dtype,
    pub(crate) activation: &'static str,
}

pub(crate) const BERT: Kind =
    Kind { family: "bert", pooling: "mean", normalize: true, form: Dtype::F32, activation: "gelu" };

/// A model: its tensors, as the file's form rounds them.
pub(crate) struct Tiny {
    kind: Kind,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
}

/// WordPiece with the marks of BERT.
pub(crate) const WORD_PIECES: [&str; 14] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "night", "train", "to", "lis", "##bon", "leave", "##s", "late", "!"];
/// Unigram with the marks of XLM-RoBERTa, and the logarithm of the probability of each.
pub(crate) const UNIGRAMS: [(&str, f64); 12] = [
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    ("▁der", -2.0),
    ("▁Zug", -3.0),
    ("▁nach", -2.5),
    ("▁", -4.0),
    ("Lissabon", -5.0),
    ("Liss", -6.0),
    ("abon", -6.5),
    ("▁Lissabon", -12.0),
];

impl Tiny {
    /// A model of this kind with weights that depend on nothing else.
    pub(crate) fn new(kind: Kind) -> Tiny {
        let mut model = Tiny { kind, tensors: BTreeMap::new() };
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let (words, types) = (model.vocabulary(), model.types());
        let mut add = |name: String, shape: &[usize], base: f64| {
            let numbers = (0..shape.iter().product()).map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let unit = (seed >> 40) as f64 / f64::from(1 << 24) - 0.5;
                rounded(kind.form, base + unit * 0.8)
            });
            model.tensors.insert(name, (shape.to_vec(), numbers.collect()));
        };
        add("embeddings.word_embeddings.weight".to_owned(), &[words, HIDDEN], 0.0);
        add("embeddings.position_embeddings.weight".to_owned(), &[POSITIONS, HIDDEN], 0.0);
        if types > 0 {
            add("embeddings.token_type_embeddings.weight".to_owned(), &[types, HIDDEN], 0.0);
        }
        let norm = |add: &mut dyn FnMut(String, &[usize], f64), name: &str| {
            add(format!("{name}.weight"), &[HIDDEN], 1.0);
            add(format!("{name}.bias"), &[HIDDEN], 0.0);
        };
        norm(&mut add, "embeddings.LayerNorm");
        for number in 0..LAYERS {
            let [query, key, value, output, inner, outer, first, second] = names(kind, number);
            for (name, to, from) in [
                (query, HIDDEN, HIDDEN),
                (key, HIDDEN, HIDDEN),
                (value, HIDDEN, HIDDEN),
                (output, HIDDEN, HIDDEN),
                (inner, INNER, HIDDEN),
                (outer, HIDDEN, INNER),
            ] {
                add(format!("{name}.weight"), &[to, from], 0.0);
                add(format!("{name}.bias"), &[to], 0.0);
            }
            norm(&mut add, &first);
            norm(&mut add, &second);
        }
        model
    }

    fn vocabulary(&self) -> usize {
        if self.kind.family == "xlm-roberta" { UNIGRAMS.len() } else { WORD_PIECES.len() }
    }

    fn types(&self) -> usize {
        match self.kind.family {
            "distilbert" => 0,
            "xlm-roberta" => 1,
            _ => 2,
        }
    }

    /// Writes the folder of the model.
    pub(crate) fn write(&self, folder: &Path) {
        let save = |name: &str, value: &Value| fs::write(folder.join(name), value.to_string()).unwrap();
        fs::create_dir_all(folder.join("1_Pooling")).unwrap();
        save("config.json", &self.config());
        save("tokenizer.json", &self.tokenizer());
        let mut modules = vec![
            json!({"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}),
            json!({"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}),
        ];
        if self.kind.normalize {
            let module = json!({"idx": 2, "name": "2", "path": "2_Normalize",
                "type": "sentence_transformers.models.Normalize"});
            modules.push(module);
        }
        save("modules.json", &Value::Array(modules));
        let cls = self.kind.pooling == "cls";
        let pooling = json!({"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": cls,
            "pooling_mode_mean_tokens": !cls, "pooling_mode_max_tokens": false});
        save("1_Pooling/config.json", &pooling);
        let bytes: BTreeMap<&str, Vec<u8>> =
            self.tensors.iter().map(|(name, (_, numbers))| (name.as_str(), written(self.kind.form, numbers))).collect();
        let views = self.tensors.iter().map(|(name, (shape, _))| {
            (name.clone(), TensorView::new(self.kind.form, shape.clone(), &bytes[name.as_str()]).unwrap())
        });
        fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    fn config(&self) -> Value {
        let Kind { family, activation, .. } = self.kind;
        let mut config = if family == "distilbert" {
            json!({"dim": HIDDEN, "hidden_dim": INNER, "n_layers": LAYERS, "n_heads": HEADS, "activation": activation})
        } else {
            json!({"hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS, "hidden_act": activation, "type_vocab_size": self.types(),
                "layer_norm_eps": 1e-5})
        };
        config["model_type"] = json!(family);
        config["vocab_size"] = json!(self.vocabulary());
        config["max_position_embeddings"] = json!(POSITIONS);
        config["pad_token_id"] = json!(u8::from(family == "xlm-roberta"));
        config
    }

    fn tokenizer(&self) -> Value {
        let marks = |marks: [(&str, usize); 2]| {
            let [(begin, first), (end, last)] = marks;
            json!({"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": end, "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {begin: {"id": begin, "ids": [first], "tokens": [begin]},
                    end: {"id": end, "ids": [last], "tokens": [end]}}})
        };
        let special = |id: usize, content: &str| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        };
        if self.kind.family == "xlm-roberta" {
            let added: Vec<Value> = UNIGRAMS[..4].iter().enumerate().map(|(id, (word, _))| special(id, word)).collect();
            return json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
                "normalizer": null,
                "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
                "post_processor": marks([("<s>", 0), ("</s>", 2)]), "decoder": null,
                "model": {"type": "Unigram", "unk_id": 3, "vocab": UNIGRAMS, "byte_fallback": false}});
        }
        let vocabulary: BTreeMap<&str, usize> = WORD_PIECES.iter().enumerate().map(|(id, word)| (*word, id)).collect();
        let added: Vec<Value> = WORD_PIECES[..4].iter().enumerate().map(|(id, word)| special(id, word)).collect();
        // As published files have it: inputs are padded and cut, which the crate must not take over.
        json!({"version": "1.0",
            "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                "pad_type_id": 0, "pad_token": "[PAD]"},
            "added_tokens": added,
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": marks([("[CLS]", 2), ("[SEP]", 3)]), "decoder": null,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocabulary}})
    }

    /// The vector of an input, given as the ids of its tokens.
    pub(crate) fn vector(&self, tokens: &[u32]) -> Vec<f64> {
        let first = if self.kind.family == "xlm-roberta" { 2 } else { 0 };
        let row = |name: &str, at: usize| {
            let numbers = &self.tensors[name].1;
            numbers[at * HIDDEN..(at + 1) * HIDDEN].to_vec()
        };
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for (place, id) in tokens.iter().enumerate() {
            let word = row("embeddings.word_embeddings.weight", *id as usize);
            let position = row("embeddings.position_embeddings.weight", first + place);
            let mut sum: Vec<f64> = word.iter().zip(position).map(|(left, right)| left + right).collect();
            if self.types() > 0 {
                let kind = row("embeddings.token_type_embeddings.weight", 0);
                sum.iter_mut().zip(kind).for_each(|(left, right)| *left += right);
            }
            rows.push(self.norm("embeddings.LayerNorm", &sum));
        }
        for number in 0..LAYERS {
            rows = self.layer(number, &rows);
        }
        let pooled = if self.kind.pooling == "cls" { &rows[..1] } else { &rows[..] };
        let mut vector: Vec<f64> =
            (0..HIDDEN).map(|at| pooled.iter().map(|row| row[at]).sum::<f64>() / pooled.len() as f64).collect();
        if self.kind.normalize {
            let length = vector.iter().map(|number| number * number).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|number| *number /= length);
        }
        vector
    }

    fn layer(&self, number: usize, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let [query, key, value, output, inner, outer, first, second] = names(self.kind, number);
        let all = |name: &str| rows.iter().map(|row| self.dense(name, row)).collect::<Vec<_>>();
        let (queries, keys, values) = (all(&query), all(&key), all(&value));
        let width = HIDDEN / HEADS;
        let mut next = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let mut context = vec![0.0; HIDDEN];
            for head in 0..HEADS {
                let part = head * width..(head + 1) * width;
                let product = |other: &Vec<f64>| {
                    part.clone().map(|place| queries[at][place] * other[place]).sum::<f64>() / (width as f64).sqrt()
                };
                let powers: Vec<f64> = keys.iter().map(|key| product(key).exp()).collect();
                let whole: f64 = powers.iter().sum();
                for (power, value) in powers.iter().zip(&values) {
                    part.clone().for_each(|place| context[place] += power / whole * value[place]);
                }
            }
            let attended = self.norm(&first, &added(row, &self.dense(&output, &context)));
            let active: Vec<f64> = self.dense(&inner, &attended).into_iter().map(|x| self.activate(x)).collect();
            next.push(self.norm(&second, &added(&attended, &self.dense(&outer, &active))));
        }
        next
    }

    fn dense(&self, name: &str, row: &[f64]) -> Vec<f64> {
        let (weight, bias) = (&self.tensors[&format!("{name}.weight")].1, &self.tensors[&format!("{name}.bias")].1);
        let rows = weight.chunks_exact(row.len());
        rows.zip(bias).map(|(weights, bias)| bias + weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>()).collect()
    }

    fn norm(&self, name: &str, row: &[f64]) -> Vec<f64> {
        // DistilBERT's layers have an epsilon of their own, which its configuration does not state.
        let epsilon = if self.kind.family == "distilbert" { 1e-12 } else { 1e-5 };
        let (scale, shift) = (&self.tensors[&format!("{name}.weight")].1, &self.tensors[&format!("{name}.bias")].1);
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
        let scaled = row.iter().map(|x| (x - mean) / (variance + epsilon).sqrt());
        scaled.zip(scale.iter().zip(shift)).map(|(x, (scale, shift))| x * scale + shift).collect()
    }

    fn activate(&self, x: f64) -> f64 {
        match self.kind.activation {
            "relu" => x.max(0.0),
            "gelu_new" => 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3))).tanh()),
            _ => 0.5 * x * (1.0 + error_function(x / std::f64::consts::SQRT_2)),
        }
    }
}

/// The names of a layer's products (query, key, value, output, inner, outer) and of its two norms.
fn names(kind: Kind, number: usize) -> [String; 8] {
    let of_distilbert = [
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "attention.out_lin",
        "ffn.lin1",
        "ffn.lin2",
        "sa_layer_norm",
        "output_layer_norm",
    ];
    let of_bert = [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
        "attention.output.LayerNorm",
        "output.LayerNorm",
    ];
    let (at, parts) = match kind.family {
        "distilbert" => ("transformer.layer", of_distilbert),
        _ => ("encoder.layer", of_bert),
    };
    parts.map(|part| format!("{at}.{number}.{part}"))
}

fn added(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(left, right)| left + right).collect()
}

/// The error function by its series, which converges everywhere and is exact here for arguments below 5.
fn error_function(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn rounded(form: Dtype, number: f64) -> f64 {
    match form {
        Dtype::F16 => f16::from_f64(number).to_f64(),
        Dtype::BF16 => bf16::from_f64(number).to_f64(),
        _ => f64::from(number as f32),
    }
}

fn written(form: Dtype, numbers: &[f64]) -> Vec<u8> {
    match form {
        Dtype::F16 => numbers.iter().flat_map(|number| f16::from_f64(*number).to_le_bytes()).collect(),
        Dtype::BF16 => numbers.iter().flat_map(|number| bf16::from_f64(*number).to_le_bytes()).collect(),
        _ => numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect(),
    }
}
