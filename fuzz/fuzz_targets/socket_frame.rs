//! Feeds `sockets::socket_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::sockets::socket_frame(data));
