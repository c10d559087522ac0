//! Feeds `targets::key_set`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::targets::key_set(data));
