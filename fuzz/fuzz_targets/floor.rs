//! The fuzzer's entry to [`holotype_fuzz::floor`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::floor::target(data));
