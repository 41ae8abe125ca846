//! The fuzzer's entry to [`holotype_fuzz::canary`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::canary::target(data));
