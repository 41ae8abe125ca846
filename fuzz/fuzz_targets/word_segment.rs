//! The fuzzer's entry to [`holotype_fuzz::word_segment`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::word_segment::target(data));
