//! One call that always gives a scorer that works.

use crate::device::{Device, Unavailable};
use holotype_index::scorer::{BatchScorer, CpuScorer};

/// A scorer, and why it is not a GPU's.
#[derive(Debug)]
pub struct Choice {
    /// What scores.
    pub scorer: Box<dyn BatchScorer>,
    /// Why it is the processor that scores; nothing when a GPU does. For the caller's one line of log.
    pub reason: Option<Unavailable>,
}

/// The best scorer of this machine: in this version the processor's, with the reason.
pub fn scorer() -> Choice {
    let reason = match Device::open() {
        Ok(device) => Unavailable::NoKernels { device: device.name().to_owned() },
        Err(reason) => reason,
    };
    Choice { scorer: Box::new(CpuScorer), reason: Some(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_index::{Encoding, Metric, VectorSpec};

    #[test]
    fn there_is_always_a_scorer_and_it_says_whose_it_is() {
        let Choice { scorer, reason } = scorer();
        assert_eq!(scorer.name().starts_with("cpu"), reason.is_some());
        let spec = VectorSpec::new(2, Metric::Dot, Encoding::F32).unwrap();
        let best = scorer.top_k(&spec, &[1.0, 0.0], &[0.0, 1.0, 3.0, 0.0, 2.0, 0.0], 2).unwrap();
        let ids: Vec<u32> = best[0].iter().map(|hit| hit.id).collect();
        assert_eq!(ids, [1, 2]);
    }
}
