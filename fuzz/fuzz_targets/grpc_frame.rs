//! Feeds `bindings::grpc_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::grpc_frame(data));
