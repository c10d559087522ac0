//! Feeds `bindings::wire_values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::wire_values(data));
