//! The fuzzer's entry to [`holotype_fuzz::query_parse`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::query_parse::target(data));
