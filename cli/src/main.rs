//! The holotype command line.
fn main() {}
