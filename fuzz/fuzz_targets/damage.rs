//! The fuzzer's entry to [`holotype_fuzz::damage`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::damage::target(data));
