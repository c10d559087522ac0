//! Feeds `targets::address_shown`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::targets::address_shown(data));
