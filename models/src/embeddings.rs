//! Vectors of texts. An answer is taken if each text has exactly one vector of the right length, by its index.

use crate::client::Client;
use crate::failure::Failure;
use holotype::embed::{EmbedError, Embedder};
use serde_json::{Map, Value, json};

const PATH: &str = "embeddings";

/// A model of embeddings with the length of its vectors.
#[derive(Debug, Clone)]
pub struct Embeddings {
    client: Client,
    dimension: usize,
    prefix: String,
    query_prefix: Option<String>,
}

impl Embeddings {
    /// The model behind a client, whose vectors have this many dimensions.
    pub fn new(client: Client, dimension: usize) -> Embeddings {
        Embeddings { client, dimension, prefix: String::new(), query_prefix: None }
    }

    /// Puts words before each text: many models tell passages and questions apart by them, such as `query: `.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Embeddings {
        self.prefix = prefix.into();
        self
    }

    /// Puts other words before each question than before passages.
    pub fn query_prefix(mut self, prefix: impl Into<String>) -> Embeddings {
        self.query_prefix = Some(prefix.into());
        self
    }

    /// The vector of a text.
    ///
    /// # Errors
    /// As [`Embeddings::vectors`].
    pub fn vector(&self, text: &str) -> Result<Vec<f32>, Failure> {
        let vectors = self.vectors(&[text])?;
        vectors.into_iter().next().ok_or_else(|| self.client.wrong(PATH, "has no vector"))
    }

    /// The vectors of texts, in their order; one call for each `batch` of them.
    ///
    /// # Errors
    /// [`Failure::Answer`] where the answer does not give each text one vector of the dimension, of finite numbers that
    /// are not all 0; otherwise as a call fails. Vectors of earlier batches are dropped with it.
    pub fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        self.prefixed(&self.prefix, texts)
    }

    fn prefixed(&self, prefix: &str, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.client.limits().batch) {
            let input: Vec<String> = batch.iter().map(|text| format!("{prefix}{text}")).collect();
            let model = self.client.endpoint().model();
            let request = json!({"model": model, "input": input, "encoding_format": "float"});
            let answer = self.client.call(PATH, &request)?;
            vectors.extend(read(&answer, batch.len(), self.dimension).map_err(|why| self.client.wrong(PATH, why))?);
        }
        Ok(vectors)
    }
}

impl Embedder for Embeddings {
    /// The model's name, the dimension and the prefix: all that the client knows of the model.
    fn fingerprint(&self) -> String {
        let (model, dimension) = (self.client.endpoint().model(), self.dimension);
        match (self.prefix.as_str(), self.query_prefix.as_deref()) {
            ("", None) => format!("{model} x {dimension}"),
            (prefix, None) => format!("{model} x {dimension}, prefix {prefix:?}"),
            (prefix, Some(query)) => format!("{model} x {dimension}, prefixes {prefix:?} and {query:?}"),
        }
    }

    fn dimensions(&self) -> usize {
        self.dimension
    }

    fn name(&self) -> String {
        self.client.endpoint().model().to_owned()
    }

    /// `None` for a text without a letter or digit, about which a model is not asked.
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.asked(&self.prefix, texts)
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        let prefix = self.query_prefix.as_deref().unwrap_or(&self.prefix);
        Ok(self.asked(prefix, &[text])?.into_iter().next().flatten())
    }
}

impl Embeddings {
    /// The vectors of those texts that say something.
    fn asked(&self, prefix: &str, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let says = |text: &&str| text.contains(char::is_alphanumeric);
        let asked: Vec<&str> = texts.iter().copied().filter(|text| says(text)).collect();
        let found = self.prefixed(prefix, &asked).map_err(|failure| EmbedError::new(failure.to_string()))?;
        let mut found = found.into_iter();
        Ok(texts.iter().map(|text| if says(text) { found.next() } else { None }).collect())
    }
}

/// The vectors of an answer in the order of the texts, whatever order the answer has, or what is wrong.
fn read(answer: &Map<String, Value>, count: usize, dimension: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = answer.get("data").and_then(Value::as_array).ok_or("has no list `data`")?;
    if data.len() != count {
        return Err(format!("has {} vectors for {count} texts", data.len()));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for entry in data {
        let index = entry.get("index").and_then(Value::as_u64).ok_or("has a vector without an `index`")?;
        let place = usize::try_from(index).ok().and_then(|index| vectors.get_mut(index));
        let place = place.ok_or_else(|| format!("has a vector for text {index} of {count}"))?;
        if place.is_some() {
            return Err(format!("has two vectors for text {index}"));
        }
        let numbers = entry.get("embedding").and_then(Value::as_array).ok_or("has an `embedding` that is no list")?;
        if numbers.len() != dimension {
            return Err(format!("has a vector of {} dimensions, and {dimension} were expected", numbers.len()));
        }
        let vector: Option<Vec<f32>> = numbers.iter().map(|number| Some(number.as_f64()? as f32)).collect();
        let vector = vector.filter(|vector| vector.iter().all(|number| number.is_finite()));
        let vector = vector.ok_or_else(|| format!("has a vector for text {index} with what is no finite number"))?;
        if vector.iter().all(|number| *number == 0.0) {
            return Err(format!("has a vector of zeros for text {index}"));
        }
        *place = Some(vector);
    }
    // As many entries as places, none twice: each place is taken.
    Ok(vectors.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::read;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        /// Nothing that a server writes makes the reading panic, and what is taken has the form that was asked for.
        #[test]
        fn any_answer_is_read_or_refused(
            indices in prop::collection::vec(0_i64..4, 0..4),
            lengths in prop::collection::vec(0_usize..4, 4),
            odd in 0_usize..6,
        ) {
            let values = [json!(1.5), json!(0), json!("1"), json!(null), json!(1e300), json!(-2)];
            let entry = |nth: usize, index: &i64, length: usize| {
                let numbers: Vec<_> = (0..length).map(|at| values[(odd + at * nth) % 6].clone()).collect();
                json!({"index": index - 1, "embedding": numbers})
            };
            let pairs = indices.iter().zip(&lengths).enumerate();
            let data: Vec<_> = pairs.map(|(nth, (index, length))| entry(nth, index, *length)).collect();
            let answer = json!({"data": data});
            if let Ok(vectors) = read(answer.as_object().unwrap(), 2, 2) {
                prop_assert_eq!(vectors.len(), 2);
                prop_assert!(vectors.iter().all(|vector| vector.len() == 2));
                prop_assert!(vectors.iter().flatten().all(|number| number.is_finite()));
            }
        }
    }
}
