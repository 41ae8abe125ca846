//! The constants of the paper (Table 5) and the switches of its ablation.

use super::error::{CreditError, Refusal};

/// Which standard deviation eqs. 3, 8 and 17 divide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deviation {
    /// Divides by n.
    #[default]
    Population,
    /// Divides by n - 1, as VeRL does; 0 for a single value.
    Sample,
}

/// Constants and switches of [`credit`](super::credit()).
#[derive(Debug, Clone, PartialEq)]
pub struct CreditOptions {
    /// `lambda_M`: the weight of memory credit on the tokens of a write (eq. 15). Default 1.
    pub lambda: f64,
    /// `tau_rho`: the threshold of the gate (eq. 11). Default 0.
    pub tau_rho: f64,
    /// `C_min, C_max`: the range `rho` is clipped to (A.4). Default 0.1 to 10.
    pub rho_range: (f64, f64),
    /// `c` of eq. 17. Default 1.39, as printed; `4f64.ln()` is what it approximates.
    pub calibration: f64,
    /// `beta_min, beta_max` of eq. 17. Default 0.5 to 20.
    pub beta_range: (f64, f64),
    /// Takes the deviation of eq. 17 before clipping `log rho`; only then can `beta` come near 0.5. Default false.
    pub beta_before_clipping: bool,
    /// `alpha` of eq. 14; `None` leaves credit where it arose. Default 0.5.
    pub smoothing: Option<f64>,
    /// `tau_succ` of eq. 13; `None` keeps negative credit in successful rollouts. Default 1.
    pub success: Option<f64>,
    /// Multiplies by the gate of eq. 11; without it the gate is 1. Default true.
    pub gate: bool,
    /// The number that is added to a deviation before dividing by it. Default 1e-6.
    pub epsilon: f64,
    /// Population or sample deviation. Default population.
    pub deviation: Deviation,
}

impl Default for CreditOptions {
    fn default() -> Self {
        CreditOptions {
            lambda: 1.0,
            tau_rho: 0.0,
            rho_range: (0.1, 10.0),
            calibration: 1.39,
            beta_range: (0.5, 20.0),
            beta_before_clipping: false,
            smoothing: Some(0.5),
            success: Some(1.0),
            gate: true,
            epsilon: 1e-6,
            deviation: Deviation::Population,
        }
    }
}

impl CreditOptions {
    pub(super) fn check(&self) -> Result<(), CreditError> {
        let refuse = |option, expected| Err(CreditError::of_options(Refusal::Option { option, expected }));
        let (low, high) = self.rho_range;
        if !(low > 0.0 && low <= 1.0 && high >= 1.0 && high.is_finite()) {
            return refuse("rho_range", "two numbers, the first above 0 and at most 1, the second at least 1");
        }
        let (low, high) = self.beta_range;
        if !(low >= 0.0 && low <= high && high.is_finite()) {
            return refuse("beta_range", "two numbers of at least 0, the first at most the second");
        }
        if !(self.calibration > 0.0 && self.calibration.is_finite()) {
            return refuse("calibration", "a number above 0");
        }
        if !(self.epsilon >= 0.0 && self.epsilon.is_finite()) {
            return refuse("epsilon", "a number of at least 0");
        }
        if self.smoothing.is_some_and(|alpha| !(0.0..=1.0).contains(&alpha)) {
            return refuse("smoothing", "a number from 0 to 1");
        }
        if self.success.is_some_and(f64::is_nan) {
            return refuse("success", "a number");
        }
        if !self.lambda.is_finite() {
            return refuse("lambda", "a finite number");
        }
        if !self.tau_rho.is_finite() {
            return refuse("tau_rho", "a finite number");
        }
        Ok(())
    }
}
