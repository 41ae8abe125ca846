//! The fuzzer's entry to [`holotype_fuzz::operations`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::operations::target(data));
