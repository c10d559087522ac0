//! Feeds `targets::webhook_credentials`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::targets::webhook_credentials(data));
