//! A target that must fail: it proves that a fuzzer that finds nothing would have found something.
//!
//! The bytes are guarded one by one, so that only a fuzzer that sees which branches an input reached gets to the end.

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
