//! Feeds `bindings::http_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::http_json(data));
