//! The fuzzer's entry to [`holotype_fuzz::statement`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::statement::target(data));
