//! Feeds `old::old_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::old::old_request(data));
