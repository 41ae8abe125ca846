//! The fuzzer's entry to [`holotype_fuzz::columns`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::columns::target(data));
