//! The fuzzer's entry to [`holotype_fuzz::vector_segment`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::vector_segment::target(data));
