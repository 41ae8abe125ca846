//! The fuzzer's entry to [`holotype_fuzz::interchange_line`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::interchange_line::target(data));
