//! Feeds `peers::grpc_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::peers::grpc_answer(data));
