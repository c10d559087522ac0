//! Feeds `peers::grpc_status`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::peers::grpc_status(data));
