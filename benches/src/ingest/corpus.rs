//! Items made from a seed: every text and every vector is different, and equal seeds give equal items.
//!
//! A vector is a linear image of a point in a space of fewer dimensions, as embeddings of texts are: the point lies
//! around one of many centres. Vectors are kept in half precision, which is what the database stores of them.

use crate::append::text;
use crate::random::Random;
use half::f16;
use half::slice::HalfFloatSliceExt as _;

/// Dimensions in which points lie before they are mapped.
const LATENT: usize = 48;
const CENTRES: usize = 500;
/// The spread of points around a centre, where centres are spread by one.
const SPREAD: f32 = 0.7;
/// Words of a question.
const QUESTION_WORDS: usize = 4;

/// All items of a run, and the questions asked about them.
pub(super) struct Corpus {
    pub(super) dim: usize,
    pub(super) texts: Vec<String>,
    vectors: Vec<f16>,
    pub(super) questions: Vec<Question>,
}

/// A text and a vector near, but not of, the items.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) vector: Vec<f32>,
}

impl Corpus {
    pub(super) fn new(items: usize, dim: usize, text_len: usize, questions: usize) -> Self {
        let mut random = Random(0x5eed);
        let map: Vec<f32> = (0..dim * LATENT).map(|_| random.normal()).collect();
        let centres: Vec<f32> = (0..CENTRES * LATENT).map(|_| random.normal()).collect();
        let mut point = [0.0; LATENT];
        let mut vector = vec![0.0; dim];
        let mut draw = |random: &mut Random, vector: &mut [f32]| {
            let centre = random.below(CENTRES) * LATENT;
            for (x, c) in point.iter_mut().zip(&centres[centre..]) {
                *x = c + SPREAD * random.normal();
            }
            for (x, row) in vector.iter_mut().zip(map.chunks_exact(LATENT)) {
                *x = row.iter().zip(&point).map(|(a, b)| a * b).sum();
            }
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= length);
        };
        let mut vectors = vec![f16::ZERO; items * dim];
        let mut texts = Vec::with_capacity(items);
        for halves in vectors.chunks_exact_mut(dim) {
            draw(&mut random, &mut vector);
            halves.convert_from_f32_slice(&vector);
            texts.push(text(text_len, &mut random));
        }
        let mut asked = Vec::with_capacity(questions);
        for _ in 0..questions {
            draw(&mut random, &mut vector);
            let of = texts.get(random.below(items.max(1))).map_or("", String::as_str);
            let words: Vec<&str> = of.split(' ').skip(3).take(QUESTION_WORDS).collect();
            asked.push(Question { text: words.join(" "), vector: vector.clone() });
        }
        Self { dim, texts, vectors, questions: asked }
    }

    /// The vector of an item.
    pub(super) fn vector(&self, item: usize) -> Vec<f32> {
        self.vectors[item * self.dim..][..self.dim].to_f32_vec()
    }

    /// The vector of an item as it is kept.
    #[cfg(feature = "sqlite")]
    pub(super) fn halves(&self, item: usize) -> &[f16] {
        &self.vectors[item * self.dim..][..self.dim]
    }

    /// The `k` of the first `count` items that are nearest to `query` by cosine.
    pub(super) fn nearest(&self, query: &[f32], count: usize, k: usize) -> Vec<u32> {
        let mut vector = vec![0.0; self.dim];
        let mut scored: Vec<(f32, u32)> = Vec::with_capacity(count);
        for (item, halves) in (0..).zip(self.vectors.chunks_exact(self.dim).take(count)) {
            halves.convert_to_f32_slice(&mut vector);
            scored.push((vector.iter().zip(query).map(|(a, b)| a * b).sum(), item));
        }
        let k = k.min(scored.len());
        if k < scored.len() {
            scored.select_nth_unstable_by(k, |a, b| b.0.total_cmp(&a.0));
        }
        scored[..k].iter().map(|(_, item)| *item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_items_and_no_two_are_alike() {
        let (a, b) = (Corpus::new(50, 16, 60, 3), Corpus::new(50, 16, 60, 3));
        assert_eq!((&a.texts, &a.vectors), (&b.texts, &b.vectors));
        let different = |all: &[String]| all.iter().collect::<std::collections::HashSet<_>>().len();
        assert_eq!(different(&a.texts), 50);
        assert_eq!(a.nearest(&a.vector(7), 50, 1), [7]);
        assert_eq!(a.nearest(&a.vector(7), 5, 10).len(), 5);
        assert_eq!(a.questions[0].text.split(' ').count(), QUESTION_WORDS);
    }
}
