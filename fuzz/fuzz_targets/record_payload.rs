//! The fuzzer's entry to [`holotype_fuzz::record_payload`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::record_payload::target(data));
