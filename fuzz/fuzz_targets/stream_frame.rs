//! Feeds `peers::stream_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::peers::stream_frame(data));
