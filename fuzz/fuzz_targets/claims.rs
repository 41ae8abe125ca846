//! The fuzzer's entry to [`holotype_fuzz::claims`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::claims::target(data));
