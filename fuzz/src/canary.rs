//! A target that must fail, which proves that a fuzzer run can find defects.
//!
//! The bytes are compared one by one, so that only a coverage-guided fuzzer reaches the end.

/// Panics for inputs that begin with `HOLO`.
///
/// # Panics
/// That is its purpose.
pub fn target(data: &[u8]) {
    if let [b'H', rest @ ..] = data
        && let [b'O', rest @ ..] = rest
        && let [b'L', rest @ ..] = rest
        && let [b'O', ..] = rest
    {
        panic!("the canary was found, as it must be");
    }
}
