//! The fuzzer's entry to [`holotype_fuzz::log_open`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::log_open::target(data));
