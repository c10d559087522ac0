//! Feeds `bindings::parameters`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::parameters(data));
