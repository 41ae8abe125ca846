//! The alignment of two texts: the ranges of tokens in which they differ.
//!
//! The common beginning and the common end are stripped. The middles are aligned by their longest common subsequence
//! up to 24 x 24 tokens, and beyond that by runs of tokens of which the other text has fewer.
//!
//! With `lo` the shorter of both lengths and `shared` the number of tokens outside of the differences, two texts are
//! aligned if
//!
//! - `shared` is at least 2 (1 if `lo` is at most 3), no difference is longer than 12 tokens, and `shared` is at least
//!   0.4 `lo` with one difference, 0.6 `lo` with several; or
//! - `lo` is at least 30 and half of the longer length, and `shared` is at least 0.8 `lo`.

use crate::memory::frames::tokens::{FrameText, MAX_TOKENS, Token};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::ops::Range;

/// Tokens from which a text is long: a record, or running text.
pub(crate) const LONG: usize = 30;
/// The longest middle that is aligned by a table.
const MAX_TABLE: usize = 24;
/// The longest difference of short texts, in tokens.
const MAX_DIFFERENCE: usize = 12;
/// Least share of the shorter text that is shared, with one difference, with several, and in long texts.
const SHARED_BY_ONE: f64 = 0.4;
const SHARED_BY_SEVERAL: f64 = 0.6;
const SHARED_BY_LONG: f64 = 0.8;
/// Least share of the smaller set of distinct words that both texts have, where beginning and end tell too little.
const COMMON_WORDS: f64 = 0.54;
/// Least length of the shorter text, as a share of the longer one, where texts are long.
const LENGTH_SHARE: f64 = 0.5;

/// A difference: the ranges of tokens of the first and of the second text. One of them may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) first: Range<usize>,
    pub(crate) second: Range<usize>,
}

/// Two aligned texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Alignment {
    /// All tokens are equal.
    Equal,
    /// They differ in these ranges, in order.
    Differing(Vec<Difference>),
}

/// Aligns two texts; `None` if they are of different frames.
pub(crate) fn align(a: &FrameText, b: &FrameText) -> Option<Alignment> {
    if a.is_equal(b) {
        return Some(Alignment::Equal);
    }
    let (n, m) = (a.tokens.len(), b.tokens.len());
    let (lo, hi) = (n.min(m), n.max(m));
    if lo < 2 {
        return None;
    }
    let is_same = |(a, b): &(&Token, &Token)| a.word == b.word;
    let start = a.tokens.iter().zip(&*b.tokens).take_while(is_same).count();
    let end = a.tokens.iter().rev().zip(b.tokens.iter().rev()).take_while(is_same).count().min(lo - start);
    let is_short_of_long = (lo as f64) < LENGTH_SHARE * hi as f64;
    if ((start + end) as f64) < SHARED_BY_ONE * lo as f64
        && ((lo >= LONG && is_short_of_long) || !a.common_words(b, COMMON_WORDS))
    {
        return None;
    }
    if hi - start - end > MAX_TOKENS / 4 && is_short_of_long {
        return None;
    }
    let differences = differences(&a.tokens, &b.tokens, start..n - end, start..m - end);
    let shared = n - differences.iter().map(|difference| difference.first.len()).sum::<usize>();
    let share = |least: f64| shared as f64 >= least * lo as f64;
    if lo >= LONG && share(SHARED_BY_LONG) && !is_short_of_long {
        return Some(Alignment::Differing(differences));
    }
    let longest = differences.iter().map(|difference| difference.first.len().max(difference.second.len())).max();
    let is_aligned = shared >= if lo <= 3 { 1 } else { 2 }
        && longest.unwrap_or(0) <= MAX_DIFFERENCE
        && share(if differences.len() <= 1 { SHARED_BY_ONE } else { SHARED_BY_SEVERAL });
    is_aligned.then_some(Alignment::Differing(differences))
}

/// The differences of two middles.
fn differences(a: &[Token], b: &[Token], first: Range<usize>, second: Range<usize>) -> Vec<Difference> {
    if first.is_empty() || second.is_empty() {
        return match first.is_empty() && second.is_empty() {
            true => Vec::new(),
            false => vec![Difference { first, second }],
        };
    }
    match first.len() <= MAX_TABLE && second.len() <= MAX_TABLE {
        true => by_subsequence(a, b, first, second),
        false => by_runs(a, b, first, second),
    }
}

/// The differences beside the longest common subsequence.
fn by_subsequence(a: &[Token], b: &[Token], first: Range<usize>, second: Range<usize>) -> Vec<Difference> {
    const WIDTH: usize = MAX_TABLE + 1;
    let (n, m) = (first.len(), second.len());
    let equal = |i: usize, j: usize| a[first.start + i].word == b[second.start + j].word;
    let mut lengths = [0_u8; WIDTH * WIDTH];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            lengths[i * WIDTH + j] = match equal(i, j) {
                true => 1 + lengths[(i + 1) * WIDTH + j + 1],
                false => lengths[(i + 1) * WIDTH + j].max(lengths[i * WIDTH + j + 1]),
            };
        }
    }
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    let (mut from_i, mut from_j) = (0, 0);
    let mut add = |i: Range<usize>, j: Range<usize>| {
        if !i.is_empty() || !j.is_empty() {
            found.push(Difference {
                first: first.start + i.start..first.start + i.end,
                second: second.start + j.start..second.start + j.end,
            });
        }
    };
    while i < n || j < m {
        if i < n && j < m && equal(i, j) {
            add(from_i..i, from_j..j);
            (i, j) = (i + 1, j + 1);
            (from_i, from_j) = (i, j);
        } else if j == m || (i < n && lengths[(i + 1) * WIDTH + j] >= lengths[i * WIDTH + j + 1]) {
            i += 1;
        } else {
            j += 1;
        }
    }
    add(from_i..n, from_j..m);
    found
}

/// The runs of tokens of each text that the other has fewer of, paired in order.
fn by_runs(a: &[Token], b: &[Token], first: Range<usize>, second: Range<usize>) -> Vec<Difference> {
    let runs = |of: &[Token], range: &Range<usize>, other: &[Token]| {
        let mut left: HashMap<u32, u32, RandomState> = HashMap::default();
        for token in other {
            *left.entry(token.word).or_default() += 1;
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in range.clone() {
            match left.get_mut(&of[at].word).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => match runs.last_mut().filter(|run| run.end == at) {
                    Some(run) => run.end = at + 1,
                    None => runs.push(at..at + 1),
                },
            }
        }
        runs
    };
    let mut of_first = runs(a, &first, &b[second.clone()]);
    let mut of_second = runs(b, &second, &a[first.clone()]);
    let most = of_first.len().max(of_second.len());
    of_first.resize(most, first.end..first.end);
    of_second.resize(most, second.end..second.end);
    of_first.into_iter().zip(of_second).map(|(first, second)| Difference { first, second }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aligned(a: &str, b: &str) -> Option<Alignment> {
        align(&FrameText::new(a), &FrameText::new(b))
    }

    #[track_caller]
    fn assert_differences(a: &str, b: &str, expected: &[(Range<usize>, Range<usize>)]) {
        let Some(Alignment::Differing(found)) = aligned(a, b) else { panic!("{a:?} and {b:?} are not aligned") };
        let found: Vec<_> = found.into_iter().map(|difference| (difference.first, difference.second)).collect();
        assert_eq!(found, expected, "{a:?}, {b:?}");
    }

    #[test]
    fn one_value_two_slots_and_insertions() {
        assert_differences("The rent is $850.", "The rent is $900.", &[(3..4, 3..4)]);
        assert_differences("Mary went to the kitchen.", "Mary went to the hall.", &[(4..5, 4..5)]);
        assert_differences("The rent is $900.", "Suppose the rent were $900.", &[(0..0, 0..1), (2..3, 3..4)]);
        assert_eq!(aligned("The rent is $900.", "the rent: is 900"), Some(Alignment::Equal));
    }

    #[test]
    fn other_texts_are_not_aligned() {
        assert_eq!(aligned("The rent is $850.", "Ann likes green tea."), None);
        assert_eq!(aligned("yes", "no"), None);
        assert_eq!(aligned("a b c d e f g h i j", "a x y z u v w r s t"), None);
    }

    #[test]
    fn long_records_differ_in_a_value() {
        let record = |value: &str| {
            let members: Vec<String> = (0..40).map(|nth| format!("field{nth} value{nth}")).collect();
            format!("{} status {value} {}", members[..20].join(" "), members[20..].join(" "))
        };
        assert_differences(&record("open"), &record("closed"), &[(41..42, 41..42)]);
    }

    proptest! {
        /// Outside of the differences both texts have the same tokens, in the same order.
        #[test]
        fn the_rest_is_common(a in "[a-e]( [a-e]){1,20}", b in "[a-e]( [a-e]){1,20}") {
            let (a, b) = (FrameText::new(&a), FrameText::new(&b));
            if let Some(Alignment::Differing(found)) = align(&a, &b) {
                let rest = |text: &FrameText, of: &dyn Fn(&Difference) -> Range<usize>| -> Vec<u32> {
                    let outside = (0..text.tokens.len()).filter(|at| !found.iter().any(|found| of(found).contains(at)));
                    outside.map(|at| text.tokens[at].word).collect()
                };
                prop_assert_eq!(rest(&a, &|found| found.first.clone()), rest(&b, &|found| found.second.clone()));
            }
        }
    }
}
