//! The fuzzer's entry to [`holotype_fuzz::npy`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holotype_fuzz::npy::target(data));
