//! Parts of a set of vectors: Lloyd's k-means, begun by k-means++ (Arthur and Vassilvitskii, 2007).
//!
//! The same vectors in the same order give the same parts on every run. Cost: vectors · parts · dimension for each of
//! at most [`ROUNDS`] passes.

/// Passes over the vectors, at most; most sets stand still before.
const ROUNDS: usize = 10;

/// Vectors of one dimension, one after another.
pub(super) struct Rows<'v> {
    pub(super) numbers: &'v [f32],
    pub(super) dim: usize,
}

impl<'v> Rows<'v> {
    fn len(&self) -> usize {
        self.numbers.len() / self.dim.max(1)
    }

    fn get(&self, row: usize) -> &'v [f32] {
        self.numbers.get(row * self.dim..(row + 1) * self.dim).unwrap_or_default()
    }
}

/// The part that each vector belongs to, from 0; parts are at most as many as asked for, and none is empty.
pub(super) fn parts(rows: &Rows<'_>, most: usize) -> Vec<usize> {
    let count = rows.len();
    let most = most.min(count);
    if most <= 1 {
        return vec![0; count];
    }
    let mut centres = first_centres(rows, most);
    let mut parts = vec![0; count];
    for _ in 0..ROUNDS {
        let assigned = assign(rows, &centres);
        let is_still = assigned == parts;
        parts = assigned;
        if is_still {
            break;
        }
        centres = means(rows, &parts, centres.len() / rows.dim);
    }
    renumbered(&parts)
}

/// Vectors far from each other: the first, and then each with a chance that grows with its squared distance.
fn first_centres(rows: &Rows<'_>, most: usize) -> Vec<f32> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut centres = rows.get(0).to_vec();
    let mut apart: Vec<f32> = vec![f32::INFINITY; rows.len()];
    while centres.len() < most * rows.dim {
        let newest = centres.get(centres.len() - rows.dim..).unwrap_or_default();
        for (row, apart) in apart.iter_mut().enumerate() {
            *apart = apart.min(distance(rows.get(row), newest));
        }
        let sum: f64 = apart.iter().map(|apart| f64::from(*apart)).sum();
        if sum <= 0.0 {
            break;
        }
        // xorshift64*, Vigna 2016.
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        let mut left = (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64 * sum;
        let chosen = apart.iter().position(|apart| {
            left -= f64::from(*apart);
            left < 0.0 && *apart > 0.0
        });
        let farthest = || apart.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(row, _)| row);
        centres.extend_from_slice(rows.get(chosen.unwrap_or_else(farthest)));
    }
    centres
}

/// The nearest centre of each vector.
fn assign(rows: &Rows<'_>, centres: &[f32]) -> Vec<usize> {
    // |x - c|² orders as |c|² / 2 - x·c does.
    let halves: Vec<f32> = centres.chunks_exact(rows.dim).map(|centre| dot(centre, centre) / 2.0).collect();
    let nearest = |row: usize| {
        let vector = rows.get(row);
        let (mut nearest, mut least) = (0, f32::INFINITY);
        for (place, (centre, half)) in centres.chunks_exact(rows.dim).zip(&halves).enumerate() {
            let distance = half - dot(vector, centre);
            if distance < least {
                (nearest, least) = (place, distance);
            }
        }
        nearest
    };
    (0..rows.len()).map(nearest).collect()
}

/// The mean of each part; an empty one is left out.
fn means(rows: &Rows<'_>, parts: &[usize], count: usize) -> Vec<f32> {
    let mut sums = vec![0f32; count * rows.dim];
    let mut counts = vec![0u32; count];
    for (row, part) in parts.iter().enumerate() {
        let sum = sums.get_mut(part * rows.dim..(part + 1) * rows.dim).unwrap_or_default();
        sum.iter_mut().zip(rows.get(row)).for_each(|(sum, number)| *sum += number);
        counts[*part] += 1;
    }
    let of_part = sums.chunks_exact(rows.dim).zip(counts).filter(|(_, count)| *count > 0);
    of_part.flat_map(|(sum, count)| sum.iter().map(move |number| number / count as f32)).collect()
}

/// The same parts, numbered in the order in which they first occur.
fn renumbered(parts: &[usize]) -> Vec<usize> {
    let mut numbers: Vec<Option<usize>> = vec![None; parts.len().max(parts.iter().max().map_or(0, |most| most + 1))];
    let mut next = 0;
    let number = |part: &usize| {
        *numbers[*part].get_or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    parts.iter().map(number).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The product, in eight sums that the compiler computes side by side.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_eights, a_rest) = a.as_chunks::<8>();
    let (b_eights, b_rest) = b.as_chunks::<8>();
    let mut sums = [0f32; 8];
    for (a, b) in a_eights.iter().zip(b_eights) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_that_lie_apart_are_the_parts() {
        let numbers = [0.0, 0.0, 0.1, 0.0, 9.0, 9.0, 0.0, 0.1, 9.1, 9.0, -9.0, 9.0];
        assert_eq!(parts(&Rows { numbers: &numbers, dim: 2 }, 3), [0, 0, 1, 0, 1, 2]);
        assert_eq!(parts(&Rows { numbers: &numbers, dim: 2 }, 1), [0; 6]);
        assert_eq!(parts(&Rows { numbers: &[1.0; 12], dim: 2 }, 3), [0; 6], "equal vectors are one part");
        assert!(parts(&Rows { numbers: &[], dim: 2 }, 3).is_empty());
    }

    proptest! {
        #[test]
        fn there_are_as_many_as_asked_at_most_and_none_is_empty(
            numbers in proptest::collection::vec(-3..4_i8, 0..120),
            most in 1..9_usize,
        ) {
            let numbers: Vec<f32> = numbers.chunks_exact(3).flatten().map(|number| f32::from(*number)).collect();
            let parts = parts(&Rows { numbers: &numbers, dim: 3 }, most);
            prop_assert_eq!(parts.len(), numbers.len() / 3);
            let count = parts.iter().max().map_or(0, |part| part + 1);
            prop_assert!(count <= most);
            prop_assert!((0..count).all(|part| parts.contains(&part)));
        }
    }
}
