//! The fuzzer's entry to [`holotype_fuzz::proof`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::proof::target(data));
