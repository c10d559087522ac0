//! Feeds `sockets::gopherhole_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::sockets::gopherhole_request(data));
