//! The fuzzer's entry to [`holotype_fuzz::time`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::time::target(data));
