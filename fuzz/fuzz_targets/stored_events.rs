//! Feeds `journal::stored_events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::journal::stored_events(data));
