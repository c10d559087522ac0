//! Feeds `old::old_result`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::old::old_result(data));
