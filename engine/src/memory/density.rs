//! Information density: how many bits of decision per token of memory (PlugMem, appendix D).
//!
//! A case is one decision: the probability of the right action with and without memory, and the tokens of that memory.
//!
//! | quantity | definition | field |
//! |---|---|---|
//! | PMI | `log2((P_mem + e) / (P_base + e))` | [`CaseDensity::pmi`] |
//! | `rho` | sum PMI / sum tokens over cases with tokens > 0 (eq. 3, D.1.5) | [`Density::density`] |
//! | `rho_final` | the same where `P_base` is below 0.8, too (D.1.5) | [`Density::active_density`] |
//! | recall rate | the share of cases with tokens > 0 (D.1.5) | [`Density::recall_rate`] |
//! | `dH` | `H(base) - H(mem)` in bits (D.3.1) | [`CaseDensity::entropy_drop`] |
//! | `rho_phi` | `sgn(PMI) abs(dH) / tokens` (D.3.3) | [`CaseDensity::validity_adjusted`] |
//! | KL gain | `KL(Q, base) - KL(Q, mem)` for an oracle `Q` (D.4.1) | [`CaseDensity::kl_gain`] |
//!
//! Choices that the paper leaves open: `e` is 1 % of the base rate, the mean `P_base` over all cases, so that a
//! probability of 0 has a finite PMI; a base rate of 0 takes 0.01 of the mean `P_mem` instead ([`DensityOptions`]
//! states another `e`, such as one from the base rate of a whole benchmark). An oracle without probabilities is one-hot
//! on the right action, and its KL gain is the PMI. The same `e` is added to both sides of a KL term.

/// Share of the base rate that is added to probabilities.
const SMOOTHING: f64 = 0.01;

/// Constants of the measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DensityOptions {
    /// Cases with at least this prior confidence are left out of [`Density::active_density`] (D.1.5: 0.8 or 0.9).
    pub confident: f64,
    /// `e`; `None` for 1 % of the base rate of these cases.
    pub epsilon: Option<f64>,
}

impl Default for DensityOptions {
    fn default() -> Self {
        DensityOptions { confident: 0.8, epsilon: None }
    }
}

/// Distance from 1 that the sum of a distribution may have.
const SUM_TOLERANCE: f64 = 1e-6;

/// One decision, with and without memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Case {
    /// `P_base`: probability of the right action without memory.
    pub base: f64,
    /// `P_mem`: probability of the right action with memory.
    pub mem: f64,
    /// Tokens of memory that were read.
    pub tokens: u64,
    /// All actions, if their probabilities are known.
    pub actions: Option<Actions>,
}

/// Probabilities of all actions of a decision, in one order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Actions {
    /// Without memory.
    pub base: Vec<f64>,
    /// With memory.
    pub mem: Vec<f64>,
    /// Of the oracle; empty if it is one-hot on the right action.
    pub oracle: Vec<f64>,
}

/// The effect of memory on a decision (D.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quadrant {
    /// I: sharper and right.
    EfficientReasoning,
    /// II: less certain, and right in that.
    CorrectiveCalibration,
    /// III: less certain, and wrong in that.
    DestructiveNoise,
    /// IV: sharper and wrong.
    HallucinationTrap,
}

/// The measures of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseDensity {
    /// Bits gained about the right action.
    pub pmi: f64,
    /// PMI per token; `None` without tokens.
    pub density: Option<f64>,
    /// Bits of uncertainty removed; `None` without the probabilities of all actions.
    pub entropy_drop: Option<f64>,
    /// `rho_phi`, bits per token.
    pub validity_adjusted: Option<f64>,
    /// The quadrant; `None` if PMI or `dH` is 0 or unknown.
    pub quadrant: Option<Quadrant>,
    /// Bits by which memory brought the policy nearer to the oracle.
    pub kl_gain: f64,
}

/// The measures of a set of cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Density {
    /// One per case, in the order given.
    pub cases: Vec<CaseDensity>,
    /// Bits per token over cases with a memory; `None` without tokens.
    pub density: Option<f64>,
    /// The share of cases with a memory.
    pub recall_rate: f64,
    /// Bits per token over cases with something to gain; `None` without tokens among them.
    pub active_density: Option<f64>,
    /// The number of those cases.
    pub active_count: usize,
    /// Cases per quadrant, I to IV.
    pub quadrants: [usize; 4],
    /// The mean point of the utility-cost plane (D.2): tokens and bits of a case. Points of several budgets make its
    /// curve.
    pub point: (f64, f64),
}

/// Why a density was refused: the case, counted from 1, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("case {case}: `{field}` {problem}")]
pub struct DensityError {
    /// The case, counted from 1.
    pub case: usize,
    /// The field.
    pub field: &'static str,
    /// The fault and the expected value.
    pub problem: &'static str,
}

/// Computes the information density of memory over cases.
///
/// ```
/// use holotype::density::{Case, density};
///
/// let case = |base, mem, tokens| Case { base, mem, tokens, actions: None };
/// let found = density(&[case(0.25, 1.0, 20), case(0.5, 0.5, 80)])?;
/// assert!((found.density.unwrap() - 0.0198).abs() < 1e-4);
/// # Ok::<(), holotype::density::DensityError>(())
/// ```
///
/// # Errors
///
/// The first case with a number that is no probability, or with distributions that differ in length or do not sum to 1.
pub fn density(cases: &[Case]) -> Result<Density, DensityError> {
    density_with(cases, &DensityOptions::default())
}

/// [`density`] with other constants.
///
/// # Errors
///
/// As [`density`]; case 0 for an option that is no number from 0 to 1.
pub fn density_with(cases: &[Case], options: &DensityOptions) -> Result<Density, DensityError> {
    for (field, value) in [("confident", options.confident), ("epsilon", options.epsilon.unwrap_or(0.0))] {
        if !(0.0..=1.0).contains(&value) {
            return Err(DensityError { case: 0, field, problem: "is out of range; a number from 0 to 1 is expected" });
        }
    }
    for (index, case) in cases.iter().enumerate() {
        check(case).map_err(|(field, problem)| DensityError { case: index + 1, field, problem })?;
    }
    let epsilon = options.epsilon.unwrap_or_else(|| epsilon_of(cases));
    let measured: Vec<CaseDensity> = cases.iter().map(|case| measure(case, epsilon)).collect();
    let over = |wanted: &dyn Fn(&Case) -> bool| {
        let chosen = cases.iter().zip(&measured).filter(|(case, _)| wanted(case));
        chosen.fold((0.0, 0_u64, 0), |(bits, tokens, count), (case, found)| {
            (bits + found.pmi, tokens.saturating_add(case.tokens), count + 1)
        })
    };
    let ratio = |bits: f64, tokens: u64| (tokens > 0).then(|| bits / tokens as f64);
    let (bits, tokens, count) = over(&|_| true);
    // The bits of a case without a memory are nobody's.
    let (own_bits, _, own_count) = over(&|case| case.tokens > 0);
    let (active_bits, active_tokens, active_count) = over(&|case| case.base < options.confident && case.tokens > 0);
    let mut quadrants = [0; 4];
    for quadrant in measured.iter().filter_map(|case| case.quadrant) {
        quadrants[quadrant as usize] += 1;
    }
    let mean = |sum: f64| sum / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX));
    Ok(Density {
        density: ratio(own_bits, tokens),
        recall_rate: mean(f64::from(u32::try_from(own_count).unwrap_or(u32::MAX))),
        active_density: ratio(active_bits, active_tokens),
        active_count,
        quadrants,
        point: (mean(tokens as f64), mean(bits)),
        cases: measured,
    })
}

fn epsilon_of(cases: &[Case]) -> f64 {
    let mean = |of: fn(&Case) -> f64| cases.iter().map(of).sum::<f64>() / cases.len().max(1) as f64;
    let base = mean(|case| case.base);
    SMOOTHING * if base > 0.0 { base } else { mean(|case| case.mem) }
}

fn measure(case: &Case, epsilon: f64) -> CaseDensity {
    let pmi = log_ratio(case.mem, case.base, epsilon);
    let entropy_drop = case.actions.as_ref().map(|actions| entropy(&actions.base) - entropy(&actions.mem));
    let kl_gain = match &case.actions {
        Some(actions) if !actions.oracle.is_empty() => {
            let terms = actions.oracle.iter().zip(actions.mem.iter().zip(&actions.base));
            terms.map(|(oracle, (mem, base))| oracle * log_ratio(*mem, *base, epsilon)).sum()
        }
        _ => pmi,
    };
    let tokens = (case.tokens > 0).then_some(case.tokens as f64);
    let sign = if pmi == 0.0 { 0.0 } else { pmi.signum() };
    CaseDensity {
        pmi,
        density: tokens.map(|tokens| pmi / tokens),
        entropy_drop,
        validity_adjusted: tokens.zip(entropy_drop).map(|(tokens, drop)| sign * drop.abs() / tokens),
        quadrant: entropy_drop.and_then(|drop| quadrant_of(drop, pmi)),
        kl_gain,
    }
}

fn quadrant_of(entropy_drop: f64, pmi: f64) -> Option<Quadrant> {
    if entropy_drop == 0.0 || pmi == 0.0 {
        return None;
    }
    Some(match (entropy_drop > 0.0, pmi > 0.0) {
        (true, true) => Quadrant::EfficientReasoning,
        (false, true) => Quadrant::CorrectiveCalibration,
        (false, false) => Quadrant::DestructiveNoise,
        (true, false) => Quadrant::HallucinationTrap,
    })
}

/// `log2((p + e) / (q + e))`, and 0 if both are 0.
fn log_ratio(p: f64, q: f64, epsilon: f64) -> f64 {
    if p == q { 0.0 } else { ((p + epsilon) / (q + epsilon)).log2() }
}

/// Shannon entropy in bits.
fn entropy(distribution: &[f64]) -> f64 {
    -distribution.iter().filter(|p| **p > 0.0).map(|p| p * p.log2()).sum::<f64>()
}

fn check(case: &Case) -> Result<(), (&'static str, &'static str)> {
    for (field, value) in [("base", case.base), ("mem", case.mem)] {
        if !(0.0..=1.0).contains(&value) {
            return Err((field, "is no probability; a number from 0 to 1 is expected"));
        }
    }
    let Some(actions) = &case.actions else { return Ok(()) };
    let oracle = (!actions.oracle.is_empty()).then_some(("actions.oracle", &actions.oracle));
    for (field, distribution) in
        [("actions.base", &actions.base), ("actions.mem", &actions.mem)].into_iter().chain(oracle)
    {
        if distribution.len() != actions.base.len() {
            return Err((field, "differs in length from `actions.base`; one probability per action is expected"));
        }
        if distribution.iter().any(|p| !(0.0..=1.0).contains(p)) {
            return Err((field, "has a number that is no probability; numbers from 0 to 1 are expected"));
        }
        if (distribution.iter().sum::<f64>() - 1.0).abs() > SUM_TOLERANCE {
            return Err((field, "does not sum to 1; probabilities of all actions are expected"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0..5_u32, 4).prop_map(|counts| {
            let sum: u32 = counts.iter().sum();
            counts.iter().map(|n| if sum == 0 { 0.25 } else { f64::from(*n) / f64::from(sum) }).collect()
        })
    }

    fn case() -> impl Strategy<Value = Case> {
        let actions = (distribution(), distribution(), distribution(), any::<bool>());
        (0..3_u64, prop::option::of(actions), 0.0..=1.0, 0.0..=1.0).prop_map(|(tokens, actions, base, mem)| {
            let actions = actions.map(|(base, mem, oracle, soft)| {
                let oracle = if soft { oracle } else { Vec::new() };
                Actions { base, mem, oracle }
            });
            let (base, mem) = actions.as_ref().map_or((base, mem), |actions| (actions.base[0], actions.mem[0]));
            Case { base, mem, tokens: tokens * 7, actions }
        })
    }

    /// `sum_a Q(a) log2((Q(a) + e) / (P(a) + e))`, the smoothed divergence from the oracle.
    fn divergence(oracle: &[f64], policy: &[f64], e: f64) -> f64 {
        oracle.iter().zip(policy).map(|(q, p)| q * ((q + e).log2() - (p + e).log2())).sum()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definitions(cases in prop::collection::vec(case(), 1..20)) {
            let found = density(&cases).unwrap();
            let mut rate = cases.iter().map(|c| c.base).sum::<f64>() / cases.len() as f64;
            if rate == 0.0 {
                rate = cases.iter().map(|c| c.mem).sum::<f64>() / cases.len() as f64;
            }
            let e = 0.01 * rate;
            prop_assume!(e > 0.0);
            let pmi = |c: &Case| (c.mem + e).log2() - (c.base + e).log2();
            let (mut all, mut bits, mut tokens, mut active) = (0.0, 0.0, 0, (0.0, 0));
            for (case, found) in cases.iter().zip(&found.cases) {
                prop_assert!(close(found.pmi, pmi(case)));
                bits += if case.tokens > 0 { pmi(case) } else { 0.0 };
                tokens += case.tokens;
                all += pmi(case);
                if case.tokens > 0 && case.base < 0.8 {
                    active = (active.0 + pmi(case), active.1 + case.tokens);
                }
                if let Some(actions) = &case.actions {
                    let bits = |p: &f64| if *p == 0.0 { 0.0 } else { -p * p.ln() / 2_f64.ln() };
                    let h = |d: &[f64]| d.iter().map(bits).sum::<f64>();
                    let drop = h(&actions.base) - h(&actions.mem);
                    prop_assert!(close(found.entropy_drop.unwrap(), drop));
                    let one_hot = vec![1.0, 0.0, 0.0, 0.0];
                    let right = if actions.oracle.is_empty() { one_hot } else { actions.oracle.clone() };
                    let gain = divergence(&right, &actions.base, e) - divergence(&right, &actions.mem, e);
                    prop_assert!(close(found.kl_gain, gain), "{} for {}", found.kl_gain, gain);
                    if let Some(phi) = found.validity_adjusted {
                        let expected = if found.pmi == 0.0 { 0.0 } else { found.pmi.signum() * drop.abs() };
                        prop_assert!(close(phi, expected / case.tokens as f64));
                    }
                }
            }
            prop_assert_eq!(found.density.is_some(), tokens > 0);
            prop_assert!(found.density.is_none_or(|density| close(density, bits / tokens as f64)));
            prop_assert!(found.active_density.is_none_or(|density| close(density, active.0 / active.1 as f64)));
            prop_assert!(close(found.point.1, all / cases.len() as f64));
        }
    }

    /// Two decisions, one without any memory: its bits are not those of the other's tokens.
    #[test]
    fn empty_memories_are_excluded_and_counted() {
        let case = |base, mem, tokens| Case { base, mem, tokens, actions: None };
        let cases = [case(0.5, 0.51, 20), case(0.01, 0.99, 0)];
        let found = density(&cases).unwrap();
        let own = found.cases[0].pmi / 20.0;
        assert!(close(found.density.unwrap(), own) && close(found.recall_rate, 0.5), "{found:?}");
        let options = DensityOptions { confident: 0.4, epsilon: Some(0.001) };
        let found = density_with(&cases, &options).unwrap();
        assert_eq!((found.active_count, found.active_density), (0, None));
        assert!(close(found.cases[0].pmi, (0.511_f64 / 0.501).log2()));
        assert!(density_with(&cases, &DensityOptions { epsilon: Some(-1.0), ..options }).is_err());
    }

    #[test]
    fn the_four_quadrants() {
        let sharp = vec![1.0, 0.0];
        let flat = vec![0.5, 0.5];
        let wrong = vec![0.0, 1.0];
        let case = |base: &[f64], mem: &[f64]| Case {
            base: base[0],
            mem: mem[0],
            tokens: 10,
            actions: Some(Actions { base: base.to_vec(), mem: mem.to_vec(), oracle: Vec::new() }),
        };
        let cases =
            [case(&flat, &sharp), case(&wrong, &flat), case(&sharp, &flat), case(&flat, &wrong), case(&flat, &flat)];
        let found = density(&cases).unwrap();
        assert_eq!(found.quadrants, [1, 1, 1, 1]);
        let phi: Vec<f64> = found.cases.iter().filter_map(|case| case.validity_adjusted).collect();
        assert_eq!(phi, [0.1, 0.1, -0.1, -0.1, 0.0]);
    }

    #[test]
    fn each_refusal_names_its_case() {
        let good = Case { base: 0.5, mem: 0.5, tokens: 1, actions: None };
        let actions =
            |base: &[f64], mem: &[f64]| Some(Actions { base: base.to_vec(), mem: mem.to_vec(), oracle: vec![] });
        for (case, told) in [
            (Case { base: 1.5, ..good.clone() }, "case 2: `base` is no probability"),
            (Case { mem: f64::NAN, ..good.clone() }, "case 2: `mem` is no probability"),
            (Case { actions: actions(&[0.5, 0.5], &[1.0]), ..good.clone() }, "case 2: `actions.mem` differs in length"),
            (
                Case { actions: actions(&[0.5, 0.4], &[1.0, 0.0]), ..good.clone() },
                "case 2: `actions.base` does not sum",
            ),
            (
                Case { actions: actions(&[1.0, 0.0], &[2.0, -1.0]), ..good.clone() },
                "case 2: `actions.mem` has a number",
            ),
        ] {
            let error = density(&[good.clone(), case]).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn no_cases_have_no_density() {
        let found = density(&[]).unwrap();
        assert_eq!((found.density, found.active_density, found.point), (None, None, (0.0, 0.0)));
    }
}
