//! The transformer: tokens of several texts in one pass, packed without padding.
//!
//! ```text
//! x = norm(word + position + type)                             one row a token, texts after each other
//! for each layer
//!     a = softmax(q k' / sqrt(d)) v                            text by text and head by head
//!     x = norm(x + a W + b)
//!     x = norm(x + act(x W1 + b1) W2 + b2)                     all rows at once
//! ```
//!
//! (Devlin et al. 2019, section 3; Sanh et al. 2019 for DistilBERT, which has no types.) All products but those of the
//! attention take all rows, so that short texts cost as much a token as long ones.

use crate::arithmetic::{activate, normalize_rows, softmax};
use crate::matrix::{Matrix, Right, multiply};
use crate::settings::{Family, Pooling, Settings};
use crate::weights::Weights;

/// The names of a product's tensors: `NAME.weight` and `NAME.bias`.
type Names = String;

/// The tensors of a layer.
struct Layer {
    query: Names,
    key: Names,
    value: Names,
    output: Names,
    output_norm: (String, String),
    inner: Names,
    outer: Names,
    outer_norm: (String, String),
}

/// A transformer over its weights.
pub(crate) struct Encoder {
    weights: Weights,
    words: String,
    positions: String,
    types: Option<String>,
    norm: (String, String),
    layers: Vec<Layer>,
    settings: Settings,
}

impl Encoder {
    /// The transformer of these weights, all of which are checked.
    ///
    /// # Errors
    /// What the file lacks, or what does not fit the settings.
    pub(crate) fn new(weights: Weights, settings: Settings) -> Result<Encoder, String> {
        let prefixes = ["", "bert.", "distilbert.", "roberta.", "model."];
        let words = "embeddings.word_embeddings.weight";
        let Some(prefix) = prefixes.into_iter().find(|prefix| weights.has(&format!("{prefix}{words}"))) else {
            return Err(format!("it has no tensor `{words}`"));
        };
        let norm = |name: &str| {
            let old = weights.has(&format!("{name}.gamma"));
            let [scale, shift] = if old { ["gamma", "beta"] } else { ["weight", "bias"] };
            (format!("{name}.{scale}"), format!("{name}.{shift}"))
        };
        let layer = |number: usize| match settings.family {
            Family::DistilBert => {
                let at = format!("{prefix}transformer.layer.{number}");
                Layer {
                    query: format!("{at}.attention.q_lin"),
                    key: format!("{at}.attention.k_lin"),
                    value: format!("{at}.attention.v_lin"),
                    output: format!("{at}.attention.out_lin"),
                    output_norm: norm(&format!("{at}.sa_layer_norm")),
                    inner: format!("{at}.ffn.lin1"),
                    outer: format!("{at}.ffn.lin2"),
                    outer_norm: norm(&format!("{at}.output_layer_norm")),
                }
            }
            Family::Bert | Family::Roberta => {
                let at = format!("{prefix}encoder.layer.{number}");
                Layer {
                    query: format!("{at}.attention.self.query"),
                    key: format!("{at}.attention.self.key"),
                    value: format!("{at}.attention.self.value"),
                    output: format!("{at}.attention.output.dense"),
                    output_norm: norm(&format!("{at}.attention.output.LayerNorm")),
                    inner: format!("{at}.intermediate.dense"),
                    outer: format!("{at}.output.dense"),
                    outer_norm: norm(&format!("{at}.output.LayerNorm")),
                }
            }
        };
        let encoder = Encoder {
            words: format!("{prefix}{words}"),
            positions: format!("{prefix}embeddings.position_embeddings.weight"),
            types: (settings.types > 0).then(|| format!("{prefix}embeddings.token_type_embeddings.weight")),
            norm: norm(&format!("{prefix}embeddings.LayerNorm")),
            layers: (0..settings.layers).map(layer).collect(),
            weights,
            settings,
        };
        encoder.check()?;
        Ok(encoder)
    }

    fn check(&self) -> Result<(), String> {
        let Settings { hidden, inner, positions, types, vocabulary, .. } = self.settings;
        let weights = &self.weights;
        weights.check(&self.words, &[vocabulary, hidden])?;
        weights.check(&self.positions, &[positions, hidden])?;
        self.types.iter().try_for_each(|name| weights.check(name, &[types, hidden]))?;
        let norm = |(scale, shift): &(String, String)| {
            weights.check(scale, &[hidden]).and_then(|()| weights.check(shift, &[hidden]))
        };
        norm(&self.norm)?;
        let dense = |name: &str, to: usize, from: usize| {
            weights.check(&format!("{name}.weight"), &[to, from])?;
            weights.check(&format!("{name}.bias"), &[to])
        };
        for layer in &self.layers {
            for name in [&layer.query, &layer.key, &layer.value, &layer.output] {
                dense(name, hidden, hidden)?;
            }
            dense(&layer.inner, inner, hidden)?;
            dense(&layer.outer, hidden, inner)?;
            norm(&layer.output_norm)?;
            norm(&layer.outer_norm)?;
        }
        Ok(())
    }

    /// The form of the numbers of the weights.
    pub(crate) fn form(&self) -> &'static str {
        self.weights.form_of(&self.words)
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of tokens that have a row of weights.
    pub(crate) fn vocabulary(&self) -> usize {
        self.weights.shape(&self.words).first().copied().unwrap_or_default()
    }

    /// The vectors of texts, given as the ids of their tokens; each text has one or more.
    pub(crate) fn encode(&self, texts: &[&[u32]]) -> Vec<Vec<f32>> {
        let hidden = self.settings.hidden;
        let count = texts.iter().map(|text| text.len()).sum::<usize>();
        let mut rows = vec![0.0_f32; count * hidden];
        let tokens = texts.iter().flat_map(|text| text.iter().enumerate());
        for (row, (place, id)) in rows.chunks_exact_mut(hidden).zip(tokens) {
            self.weights.add_row(&self.words, *id as usize, row);
            self.weights.add_row(&self.positions, self.settings.first_position + place, row);
            self.types.iter().for_each(|types| self.weights.add_row(types, 0, row));
        }
        self.norm(&self.norm, &mut rows);
        let mut work = Work::default();
        self.layers.iter().for_each(|layer| self.layer(layer, texts, &mut rows, &mut work));
        let mut rest = rows.as_slice();
        let pooled = texts.iter().map(|text| {
            let (own, others) = rest.split_at(text.len() * hidden);
            rest = others;
            self.pool(own)
        });
        pooled.collect()
    }

    fn layer(&self, layer: &Layer, texts: &[&[u32]], rows: &mut [f32], work: &mut Work) {
        let Settings { hidden, inner, .. } = self.settings;
        self.dense(&layer.query, rows, hidden, &mut work.query);
        self.dense(&layer.key, rows, hidden, &mut work.key);
        self.dense(&layer.value, rows, hidden, &mut work.value);
        self.attend(texts, work);
        self.dense(&layer.output, &work.context, hidden, &mut work.query);
        rows.iter_mut().zip(&work.query).for_each(|(row, more)| *row += more);
        self.norm(&layer.output_norm, rows);
        self.dense(&layer.inner, rows, inner, &mut work.inner);
        activate(self.settings.activation, &mut work.inner);
        self.dense(&layer.outer, &work.inner, hidden, &mut work.query);
        rows.iter_mut().zip(&work.query).for_each(|(row, more)| *row += more);
        self.norm(&layer.outer_norm, rows);
    }

    /// `out = rows W' + b`, for rows of any width.
    fn dense(&self, name: &str, rows: &[f32], to: usize, out: &mut Vec<f32>) {
        let weight = self.weights.numbers(&format!("{name}.weight"));
        let bias = self.weights.numbers(&format!("{name}.bias"));
        let from = weight.len() / to;
        let count = rows.len() / from;
        out.clear();
        (0..count).for_each(|_| out.extend_from_slice(&bias));
        multiply(
            Matrix::dense(rows, count, from),
            (Matrix::dense(&weight, to, from), Right::Transposed),
            out,
            to,
            true,
        );
    }

    /// The attention of each text among its own tokens.
    fn attend(&self, texts: &[&[u32]], work: &mut Work) {
        let Settings { hidden, heads, .. } = self.settings;
        let width = hidden / heads;
        let scale = 1.0 / (width as f32).sqrt();
        work.context.clear();
        work.context.resize(work.query.len(), 0.0);
        let mut from = 0;
        for text in texts {
            let len = text.len();
            for head in 0..heads {
                let at = from * hidden + head * width;
                let part = |numbers| Matrix { numbers, rows: len, columns: width, stride: hidden };
                work.scores.clear();
                work.scores.resize(len * len, 0.0);
                let (query, key) = (part(&work.query[at..]), part(&work.key[at..]));
                multiply(query, (key, Right::Transposed), &mut work.scores, len, false);
                softmax(&mut work.scores, len, scale);
                let scores = Matrix::dense(&work.scores, len, len);
                let value = part(&work.value[at..]);
                multiply(scores, (value, Right::Plain), &mut work.context[at..], hidden, false);
            }
            from += len;
        }
    }

    fn norm(&self, (scale, shift): &(String, String), rows: &mut [f32]) {
        let (scale, shift) = (self.weights.numbers(scale), self.weights.numbers(shift));
        normalize_rows(rows, &scale, &shift, self.settings.epsilon);
    }

    /// The vector of a text from the rows of its tokens.
    fn pool(&self, rows: &[f32]) -> Vec<f32> {
        let hidden = self.settings.hidden;
        let mut vector = vec![0.0_f32; hidden];
        let pooled = if self.settings.pooling == Pooling::Cls { 1 } else { rows.len() / hidden };
        for row in rows.chunks_exact(hidden).take(pooled) {
            vector.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        let mut divisor = pooled as f32;
        if self.settings.normalize {
            let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt() as f32;
            divisor = length.max(1e-12);
        }
        vector.iter_mut().for_each(|number| *number /= divisor);
        vector
    }
}

/// Memory of a pass, used again in each layer.
#[derive(Default)]
struct Work {
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    context: Vec<f32>,
    scores: Vec<f32>,
    inner: Vec<f32>,
}
