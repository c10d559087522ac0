//! Feeds `bindings::catalog_search`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::catalog_search(data));
