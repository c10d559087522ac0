//! Feeds `proto::proto_json_03`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::proto::proto_json_03(data));
