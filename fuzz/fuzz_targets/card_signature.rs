//! Feeds `peers::card_signature`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::peers::card_signature(data));
