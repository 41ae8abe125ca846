//! Fitting the linear router from labels (TierMem D.2): penalised logistic regression by Newton's method.
//!
//! A label says whether the first tier sufficed (`c_S`) and whether the raw path did (`c_R`). What both failed says
//! nothing about routing and is left out, as in the paper. The loss is the mean log loss plus `RIDGE / 2 * |w|^2` (the
//! bias is free), which is strictly convex: the result does not depend on the order of the labels beyond rounding.

use super::{Action, LinearRouter, Reward, Signals};
use crate::{Error, Result};
use serde_json::Value;

/// The weight of the penalty, a label.
const RIDGE: f64 = 0.02;
/// Newton steps at most; it converges in a few.
const STEPS: usize = 50;
/// A threshold that no estimate reaches.
const NEVER: f32 = 2.0;
const SIZE: usize = Signals::COUNT + 1;

/// The outcome of both paths for one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// The signals of its first tier.
    pub signals: Signals,
    /// `c_S`: the first tier sufficed.
    pub summaries_suffice: bool,
    /// `c_R`: the raw path sufficed.
    pub raw_suffices: bool,
}

impl Label {
    /// A label from its JSON: `signals` by name, `c_s`, `c_r`. Other members pass; a signal that is not named is 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything but finite signals under known names and two truth values.
    pub fn from_json(text: &str) -> Result<Label> {
        let wrong = |what: &str| Error::Invalid(format!("a label of a router: {what}"));
        let object: serde_json::Map<String, Value> =
            serde_json::from_str(text).map_err(|error| wrong(&format!("expected an object: {error}")))?;
        let Some(Value::Object(named)) = object.get("signals") else {
            return Err(wrong("`signals` must be an object of numbers by name"));
        };
        if let Some(name) = named.keys().find(|name| !Signals::NAMES.contains(&name.as_str())) {
            return Err(wrong(&format!("unknown signal {name:?}; expected {}", Signals::NAMES.join(", "))));
        }
        let mut values = [0.0; Signals::COUNT];
        for (value, name) in values.iter_mut().zip(Signals::NAMES) {
            let Some(given) = named.get(*name) else { continue };
            *value = given.as_f64().ok_or_else(|| wrong(&format!("signal {name:?} must be a number")))? as f32;
        }
        let flag = |name: &str| {
            object.get(name).and_then(Value::as_bool).ok_or_else(|| wrong(&format!("`{name}` must be true or false")))
        };
        let signals = Signals::from_values(values);
        Ok(Label { signals, summaries_suffice: flag("c_s")?, raw_suffices: flag("c_r")? })
    }
}

impl LinearRouter {
    /// The same router with the threshold that gives labels the greatest mean reward (TierMem D.7); of equal ones the
    /// one that escalates most.
    pub fn with_best_threshold(self, labels: &[Label], reward: &Reward) -> LinearRouter {
        let mut estimates: Vec<(f32, &Label)> =
            labels.iter().map(|label| (self.estimate(&label.signals), label)).collect();
        estimates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let of = |label: &Label, action| reward.of(Some(action), label.summaries_suffice, label.raw_suffices);
        // All escalate, then one more answers from the first tier at each step.
        let mut sum: f64 = labels.iter().map(|label| of(label, Action::Escalate)).sum();
        let mut best = (sum, 1.0);
        for (at, (estimate, label)) in estimates.iter().enumerate() {
            sum += of(label, Action::Answer) - of(label, Action::Escalate);
            let is_last_of_equals = estimates.get(at + 1).is_none_or(|next| next.0 < *estimate);
            if is_last_of_equals && sum > best.0 + 1e-9 {
                best = (sum, *estimate);
            }
        }
        LinearRouter { threshold: best.1, ..self }
    }

    /// The same router with the least threshold that keeps false cache hits, answers from a first tier that lacks what
    /// raw pages have, below a share of all questions, by conformal risk control (Angelopoulos et al., 2024):
    ///
    /// ```text
    /// (k(t) + 1) / (n + 1) <= bound      k(t): false hits at threshold t among n labels
    /// ```
    ///
    /// For a next question that comes like the labels, the probability of a false hit is at most `bound`, whatever the
    /// router; the labels must not be those it was fitted to. With too few labels for the bound all escalate.
    pub fn with_bounded_threshold(self, labels: &[Label], bound: f64) -> LinearRouter {
        let is_false_hit = |label: &&Label| !label.summaries_suffice && label.raw_suffices;
        let mut estimates: Vec<f32> =
            labels.iter().filter(is_false_hit).map(|label| self.estimate(&label.signals)).collect();
        estimates.sort_by(|a, b| b.total_cmp(a));
        // The most false hits that may be, of those with the greatest estimates.
        let allowed = (bound * (labels.len() + 1) as f64 - 1.0 + 1e-9).floor();
        if allowed < 0.0 {
            return LinearRouter { threshold: NEVER, ..self };
        }
        let threshold = match estimates.get(allowed as usize) {
            // Just above the first false hit too many.
            Some(estimate) => estimate.next_up(),
            None => 0.0,
        };
        LinearRouter { threshold, ..self }
    }

    /// Fits bias and weights to labels; the threshold is given.
    ///
    /// # Errors
    /// [`Error::Invalid`] without labels of both sorts, or with a signal that is not finite.
    pub fn fit(labels: &[Label], threshold: f32) -> Result<LinearRouter> {
        let told: Vec<&Label> = labels.iter().filter(|label| label.summaries_suffice || label.raw_suffices).collect();
        let sufficed = told.iter().filter(|label| label.summaries_suffice).count();
        if sufficed == 0 || sufficed == told.len() {
            return Err(Error::Invalid(format!(
                "a router needs labels of both sorts; {sufficed} of {} say that summaries suffice",
                told.len()
            )));
        }
        if told.iter().any(|label| label.signals.values().iter().any(|value| !value.is_finite())) {
            return Err(Error::Invalid("a router needs finite signals".to_owned()));
        }
        let mut beta = [0.0; SIZE];
        for _ in 0..STEPS {
            let step = newton_step(&told, &beta);
            beta.iter_mut().zip(step).for_each(|(beta, step)| *beta += step);
            if step.iter().all(|step| step.abs() < 1e-9) {
                break;
            }
        }
        let mut weights = [0.0; Signals::COUNT];
        weights.iter_mut().zip(&beta[1..]).for_each(|(weight, beta)| *weight = *beta as f32);
        Ok(LinearRouter { bias: beta[0] as f32, weights: Signals::from_values(weights), threshold })
    }
}

/// The step to the minimum of the loss's second-order model.
fn newton_step(labels: &[&Label], beta: &[f64; SIZE]) -> [f64; SIZE] {
    let count = labels.len() as f64;
    let mut gradient = [0.0; SIZE];
    let mut hessian = [[0.0; SIZE]; SIZE];
    for label in labels {
        let x = row(&label.signals);
        let z: f64 = x.iter().zip(beta).map(|(x, beta)| x * beta).sum();
        let p = 1.0 / (1.0 + (-z).exp());
        let error = p - f64::from(u8::from(label.summaries_suffice));
        let curvature = (p * (1.0 - p)).max(1e-9);
        for i in 0..SIZE {
            gradient[i] += error * x[i] / count;
            for j in 0..SIZE {
                hessian[i][j] += curvature * x[i] * x[j] / count;
            }
        }
    }
    for i in 1..SIZE {
        gradient[i] += RIDGE * beta[i];
        hessian[i][i] += RIDGE;
    }
    solve(hessian, gradient.map(|slope| -slope))
}

fn row(signals: &Signals) -> [f64; SIZE] {
    let mut row = [1.0; SIZE];
    row[1..].iter_mut().zip(signals.values()).for_each(|(cell, value)| *cell = f64::from(value));
    row
}

/// Solves a symmetric positive definite system by elimination with pivots.
fn solve(mut a: [[f64; SIZE]; SIZE], mut b: [f64; SIZE]) -> [f64; SIZE] {
    for column in 0..SIZE {
        let pivot = (column..SIZE).max_by(|i, j| a[*i][column].abs().total_cmp(&a[*j][column].abs())).unwrap_or(column);
        a.swap(column, pivot);
        b.swap(column, pivot);
        let diagonal = a[column][column];
        if diagonal.abs() < 1e-12 {
            continue;
        }
        for below in column + 1..SIZE {
            let factor = a[below][column] / diagonal;
            let pivot = a[column];
            a[below].iter_mut().zip(pivot).for_each(|(cell, pivot)| *cell -= factor * pivot);
            b[below] -= factor * b[column];
        }
    }
    let mut x = [0.0; SIZE];
    for row in (0..SIZE).rev() {
        let known: f64 = (row + 1..SIZE).map(|column| a[row][column] * x[column]).sum();
        if a[row][row].abs() >= 1e-12 {
            x[row] = (b[row] - known) / a[row][row];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(agreement: f32, terms: f32, summaries_suffice: bool) -> Label {
        let signals = Signals { agreement, terms, ..Signals::default() };
        Label { signals, summaries_suffice, raw_suffices: true }
    }

    #[test]
    fn a_fitted_router_tells_what_its_labels_tell_in_any_order() {
        let mut labels: Vec<Label> =
            (0..40).map(|n| label(n as f32 / 40.0, (n % 7) as f32 / 7.0, n % 10 != 3 && n > 18)).collect();
        let router = LinearRouter::fit(&labels, 0.5).unwrap();
        assert!(router.weights.agreement > 1.0, "{router:?}");
        assert!(router.weights.agreement > router.weights.terms.abs());
        assert_eq!(router.weights.names, 0.0, "a signal that is always 0 has no weight");
        labels.reverse();
        let again = LinearRouter::fit(&labels, 0.5).unwrap();
        assert!((again.bias - router.bias).abs() < 1e-4);
    }

    /// At the minimum the gradient is 0, computed here once more without the code above.
    #[test]
    fn the_loss_is_at_its_minimum() {
        let labels: Vec<Label> =
            (0..30).map(|n| label((n % 5) as f32 / 5.0, (n % 3) as f32 / 3.0, n % 4 < 2)).collect();
        let router = LinearRouter::fit(&labels, 0.5).unwrap();
        let loss = |router: &LinearRouter| -> f64 {
            let of = |label: &Label| {
                let p = f64::from(router.estimate(&label.signals));
                if label.summaries_suffice { -p.ln() } else { -(1.0 - p).ln() }
            };
            let penalty: f64 = router.weights.values().iter().map(|w| f64::from(*w).powi(2)).sum::<f64>() * RIDGE / 2.0;
            labels.iter().map(of).sum::<f64>() / labels.len() as f64 + penalty
        };
        let least = loss(&router);
        for change in [-0.05f32, 0.05] {
            let moved = LinearRouter { bias: router.bias + change, ..router };
            assert!(loss(&moved) > least);
            let weights = Signals { terms: router.weights.terms + change, ..router.weights };
            assert!(loss(&LinearRouter { weights, ..router }) > least);
        }
    }

    #[test]
    fn labels_of_one_sort_are_refused() {
        assert!(LinearRouter::fit(&[label(1.0, 1.0, true)], 0.5).is_err());
        let both_failed = Label { raw_suffices: false, ..label(0.0, 0.0, false) };
        assert!(LinearRouter::fit(&[both_failed, label(1.0, 1.0, true)], 0.5).is_err());
    }

    /// Calibrated on some questions, the share of false hits among others stays below the bound on average.
    #[test]
    fn a_bound_on_false_hits_holds_on_questions_that_were_held_out() {
        let mut seed = 7_u64;
        let mut random = move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
        };
        let mut label = || {
            let terms = random();
            let summaries_suffice = random() < terms * terms;
            let signals = Signals { terms, ..Signals::default() };
            Label { signals, summaries_suffice, raw_suffices: summaries_suffice || random() < 0.9 }
        };
        let router = LinearRouter::fit(&(0..400).map(|_| label()).collect::<Vec<_>>(), 0.5).unwrap();
        for bound in [0.02, 0.05, 0.2] {
            let (mut false_hits, mut answered, mut all) = (0.0, 0.0, 0.0);
            for _ in 0..100 {
                let labels: Vec<Label> = (0..200).map(|_| label()).collect();
                let bounded = router.with_bounded_threshold(&labels, bound);
                for held_out in (0..200).map(|_| label()) {
                    let answers = bounded.estimate(&held_out.signals) >= bounded.threshold;
                    answered += f64::from(u8::from(answers));
                    let is_false = answers && !held_out.summaries_suffice && held_out.raw_suffices;
                    false_hits += f64::from(u8::from(is_false));
                    all += 1.0;
                }
            }
            assert!(false_hits / all <= bound * 1.1, "{bound}: {}", false_hits / all);
            assert!(answered / all > bound, "{bound}: it answers more than it may get wrong: {}", answered / all);
        }
        assert!(router.with_bounded_threshold(&[], 0.05).threshold > 1.0, "without labels all escalate");
    }
}
