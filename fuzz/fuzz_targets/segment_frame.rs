//! The fuzzer's entry to [`holotype_fuzz::segment_frame`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::segment_frame::target(data));
