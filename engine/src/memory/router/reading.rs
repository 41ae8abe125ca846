//! How much raw traces promise, per token: the estimate behind "the cheapest evidence that suffices" (TierMem 1, 3.2).
//!
//! ```text
//! d_i     = exp(-(LAG + LAG_RANK * r_i) * (S_1 - S_i) - (RANK - asks) * r_i) * (LEARNED if i is learned)
//! r_i     = ln(1 + place of i, from 0)         asks: MANY, TIME and JUDGEMENT, where the question asks so
//! share_i = d_i / sum over j of  tokens_j * d_j
//! ```
//!
//! `share_i` is the share of all expected evidence that one token of trace i holds. Under a budget of B tokens an even
//! spread gives each token 1 / B. A trace is read while `share_i * B >= THRIFT`: a larger budget says that evidence is
//! worth more, so it reads deeper.
//!
//! The weights are those of a conditional logit of the place of the evidence of 760 questions about five conversations,
//! rounded. LEARNED is a guess; THRIFT was chosen on the same questions. So a figure of those conversations is of the
//! data that it was fitted on.

/// Weight of the distance of S from the best.
const LAG: f32 = 3.5;
/// Weight of that distance further down the ranking.
const LAG_RANK: f32 = 0.4;
/// Weight of the place.
const RANK: f32 = 0.35;
/// Less weight of the place where several things are asked for.
const MANY: f32 = 0.25;
/// More where a time is.
const TIME: f32 = -0.25;
/// Less where a judgement is.
const JUDGEMENT: f32 = 0.2;
/// The factor of a trace that was evidence before and was written back.
const LEARNED: f32 = 3.0;
/// The least part of an even spread that a token must promise to be read.
const THRIFT: f32 = 0.18;

/// A ranked trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    /// Its S.
    pub(crate) score: f32,
    /// Its tokens.
    pub(crate) tokens: u32,
    /// True if a finding that rests on it was written back.
    pub(crate) learned: bool,
}

/// The share of all expected evidence in one token of each candidate, best candidate first. `asks` is what
/// [`super::asks`] tells of the question.
pub(crate) fn shares(ranked: &[Candidate], asks: (bool, bool, bool)) -> Vec<f32> {
    let best = ranked.first().map_or(0.0, |first| first.score);
    let flag = |is: bool, weight: f32| if is { weight } else { 0.0 };
    let asks = flag(asks.0, MANY) + flag(asks.1, TIME) + flag(asks.2, JUDGEMENT);
    let density = |(place, candidate): (usize, &Candidate)| {
        let rank = (place as f32).ln_1p();
        let lag = (best - candidate.score).max(0.0);
        let learned = if candidate.learned { LEARNED } else { 1.0 };
        (-(LAG + LAG_RANK * rank) * lag - (RANK - asks) * rank).exp() * learned
    };
    let mut shares: Vec<f32> = ranked.iter().enumerate().map(density).collect();
    let all: f32 = shares.iter().zip(ranked).map(|(density, candidate)| density * candidate.tokens as f32).sum();
    shares.iter_mut().for_each(|share| *share = if all > 0.0 { *share / all } else { 0.0 });
    shares
}

/// True if a token with this share of the evidence is worth reading under a budget.
pub(crate) fn is_worth(share: f32, budget: u64) -> bool {
    share * budget as f32 >= THRIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(scores: &[f32]) -> Vec<Candidate> {
        scores.iter().map(|score| Candidate { score: *score, tokens: 40, learned: false }).collect()
    }

    #[test]
    fn shares_fall_with_the_score_and_sum_to_one() {
        let ranked = ranked(&[1.2, 1.0, 1.0, 0.4]);
        let shares = shares(&ranked, (false, false, false));
        assert!(shares.windows(2).all(|pair| pair[0] > pair[1]), "{shares:?}");
        assert!((shares.iter().sum::<f32>() * 40.0 - 1.0).abs() < 1e-5);
        assert!(super::shares(&[], (true, true, true)).is_empty());
    }

    #[test]
    fn a_clear_winner_leaves_less_to_read_and_a_larger_budget_more() {
        let count = |scores: &[f32], budget: u64| {
            let shares = shares(&ranked(scores), (false, false, false));
            shares.into_iter().filter(|share| is_worth(*share, budget)).count()
        };
        let (clear, even) = ([1.5, 0.5, 0.5, 0.5, 0.5, 0.5], [0.6, 0.55, 0.5, 0.5, 0.5, 0.5]);
        assert!(count(&clear, 100) < count(&even, 100));
        assert!(count(&clear, 100) < count(&clear, 100_000));
    }

    #[test]
    fn a_trace_that_was_evidence_before_takes_from_the_others() {
        let mut ranked = ranked(&[1.0, 0.9, 0.8]);
        let before = shares(&ranked, (false, false, false));
        ranked[1].learned = true;
        let after = shares(&ranked, (false, false, false));
        assert!(after[1] > before[1] && after[0] < before[0] && after[2] < before[2]);
    }
}
