//! Feeds `head::grpc_deadline`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::head::grpc_deadline(data));
