//! Feeds `targets::webhook_url`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::targets::webhook_url(data));
