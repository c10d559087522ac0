//! Feeds `head::page_token`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::head::page_token(data));
