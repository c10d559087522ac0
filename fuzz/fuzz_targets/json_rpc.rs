//! Feeds `bindings::json_rpc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::json_rpc(data));
