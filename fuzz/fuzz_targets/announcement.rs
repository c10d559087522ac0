//! Feeds `bindings::announcement`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::announcement(data));
