//! Feeds `bindings::grpc_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::bindings::grpc_request(data));
