//! Feeds `head::cursor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::head::cursor(data));
