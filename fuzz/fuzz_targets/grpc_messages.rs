//! Feeds `peers::grpc_messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::peers::grpc_messages(data));
