//! Feeds `journal::journal_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::journal::journal_entry(data));
