//! Benchmarks of Holotype beside its peers.
fn main() {}
