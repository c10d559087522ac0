//! Feeds `proto::grpc_answer_03`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::proto::grpc_answer_03(data));
