//! The largest difference between the rank of a kernel and that of the CPU, and the candidates to keep.
//!
//! Let x be the true dot product (or minus the squared distance) of a query q and a stored vector v, r the rank that a
//! kernel computes and s the one that the CPU computes. With u = 2^-24, n components, and M = abs(q) abs(v) for dot
//! products or (abs(q) + abs(v))^2 for distances, any order of summation in single precision gives
//!
//! ```text
//! abs(s - x) <= (n + 8) u M          the CPU
//! abs(r - x) <= c (n + 18) 2^-21 M                        kernel `few`; c = 2 for distances, else 1
//! abs(r - x) <= c (2^-10 + 2^-20 + (n + 16) 2^-21) M      kernels `many`
//! ```
//!
//! where the last covers queries and vectors rounded to sixteen bits, and tensor cores that cut off instead of
//! rounding: 17 terms for 16 components, each by 2^-23 of the largest. The one before covers queries, and vectors of
//! f32, that are the sums of two halves, which leaves out 2^-22 of a component and 2^-38 of the largest, the product
//! of the lower halves, 2^-22, and three times 17 terms for 16 components. Both sides get 10^-30 more for what
//! underflows. E is the sum of the CPU's bound and the kernel's.
//!
//! The score is f(s) with f rounded but monotone: a clamp to [-1, 1] for cosine, 1 / (1 + sqrt(-s)) for distances.
//! Let t be the k-th best rank of a kernel. At least k vectors have s >= t - E, so the k-th best score is at least
//! f(t - E). A vector among the best k has f(s) >= f(t - E). If f were injective, then s >= t - E and r >= t - 2 E.
//! It is not: different s may give one score, and ties are decided by id.
//!
//! - dot: f is the identity.
//! - cosine: f is injective between -1 and 1. If t - E < 1, then s >= t - E as before, unless t - E <= -1, where all
//!   vectors may have the score -1. Otherwise f(s) = 1, so s >= 1 and r >= 1 - E. Either way r >= min(t, 1) - 2 E.
//! - distances: two roots a < b of one rounded score differ by less than (1 + b) e with e = 2^-20, since f has a
//!   relative error below 2^-21; so f(y) >= f(z) implies y >= z - d, where d = (D + (1 + D) e)^2 - D^2 with
//!   D = abs(q) + abs(v), the largest distance.
//!
//! **Every vector of the CPU's best k has r >= min(t, c) - 2 E - d**, where c is 1 for cosine and infinite otherwise,
//! and d is 0 but for distances; all vectors may be among them if t - 2 E - d < -c. The host keeps those candidates and
//! scores them with the CPU's kernels, so that ids and scores are the CPU's.

use holotype_index::Metric;

/// The precision of the CPU, or of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// The CPU: single precision.
    Single,
    /// Kernel `few`: components as sums of two halves, with sums in single precision.
    Split,
    /// Kernels `many`: sixteen bits with sums in single precision.
    Half,
}

/// The most that a sum loses by underflow.
const UNDERFLOW: f64 = 1e-30;

/// Scores with a relative difference below this may be one number.
const SCORE_STEP: f64 = 1.0 / (1 << 20) as f64;

/// The lengths that bound the rounding of ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    /// Components, with padding.
    pub(crate) dim: usize,
    /// The length of the query.
    pub(crate) query: f64,
    /// The length of the longest vector.
    pub(crate) longest: f64,
}

impl Lengths {
    /// M of the module.
    fn magnitude(&self, metric: Metric) -> f64 {
        match metric {
            Metric::L2 => (self.query + self.longest).powi(2),
            Metric::Cosine | Metric::Dot => self.query * self.longest,
        }
    }

    /// The most that a kernel's rank is off.
    pub(crate) fn kernel_error(&self, metric: Metric, precision: Precision) -> f64 {
        let n = self.dim as f64;
        let part = match (precision, metric) {
            (Precision::Single, _) => (n + 8.0) * 2f64.powi(-24),
            (Precision::Split, Metric::L2) => 2.0 * (n + 18.0) * 2f64.powi(-21),
            (Precision::Split, _) => (n + 18.0) * 2f64.powi(-21),
            (Precision::Half, Metric::L2) => 2.0 * coarse(n),
            (Precision::Half, _) => coarse(n),
        };
        part * self.magnitude(metric) + UNDERFLOW
    }

    /// The largest distance below the k-th best rank of a vector that may belong to the best k.
    pub(crate) fn margin(&self, metric: Metric, precision: Precision) -> f64 {
        let error = self.kernel_error(metric, precision) + self.kernel_error(metric, Precision::Single);
        let slack = match metric {
            Metric::Dot | Metric::Cosine => 0.0,
            Metric::L2 => {
                let furthest = self.query + self.longest;
                (furthest + (1.0 + furthest) * SCORE_STEP).powi(2) - furthest.powi(2)
            }
        };
        // This arithmetic rounds too, and that of a kernel in single precision.
        (2.0 * error + slack) * (1.0 + 1e-6) + self.magnitude(metric) * 2f64.powi(-22)
    }

    /// The least rank of a vector that may belong to the best k if the k-th best rank is `kth`.
    pub(crate) fn least(&self, metric: Metric, precision: Precision, kth: f64) -> f64 {
        let (margin, ceiling) = (self.margin(metric, precision), ceiling(metric));
        if kth - margin < -ceiling { f64::NEG_INFINITY } else { kth.min(ceiling) - margin }
    }
}

/// The largest rank that scores tell from larger ones; the smallest is minus that.
pub(crate) fn ceiling(metric: Metric) -> f64 {
    match metric {
        Metric::Cosine => 1.0,
        Metric::Dot | Metric::L2 => f64::INFINITY,
    }
}

fn coarse(n: f64) -> f64 {
    2f64.powi(-10) + 2f64.powi(-20) + (n + 16.0) * 2f64.powi(-21)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_index::{Encoding, VectorSpec};
    use proptest::prelude::*;

    proptest! {
        /// The slack covers every pair of raw answers with scores in the wrong order or equal.
        #[test]
        fn equal_scores_are_within_the_slack(
            metric in prop_oneof![Just(Metric::Cosine), Just(Metric::Dot), Just(Metric::L2)],
            raw in 0f64..4.0, apart in -1e-6f64..1e-6, power in -12i32..0,
        ) {
            let spec = VectorSpec::new(8, metric, Encoding::F32).unwrap();
            let raw = raw * 10f64.powi(power);
            let other = raw + apart * raw;
            let (raw, other) = (raw as f32, other as f32);
            let lengths = Lengths { dim: 8, query: 1.0, longest: 1.0 };
            let slack = lengths.margin(metric, Precision::Single)
                - 4.0 * lengths.kernel_error(metric, Precision::Single);
            // Ranks: larger is better.
            let sign = if metric == Metric::L2 { -1.0 } else { 1.0 };
            let in_range = metric == Metric::L2 || f64::from(raw.max(other)) <= 1.0;
            if in_range && spec.score(raw) >= spec.score(other) {
                let least = sign * f64::from(other) - slack.max(0.0) - 1e-12;
                prop_assert!(sign * f64::from(raw) >= least, "{raw} {other}");
            }
        }
    }

    #[test]
    fn the_coarse_bound_is_the_wider_and_grows_with_lengths() {
        let lengths = Lengths { dim: 384, query: 1.0, longest: 1.0 };
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            let of = [Precision::Single, Precision::Split, Precision::Half].map(|of| lengths.margin(metric, of));
            let [few, split, many] = of;
            assert!(few > 0.0 && few < split && split < many && many < 0.02, "{of:?}");
            let longer = Lengths { longest: 3.0, ..lengths };
            assert!(longer.margin(metric, Precision::Single) > few);
        }
    }
}
