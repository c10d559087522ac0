//! Feeds `peers::agent_card`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::peers::agent_card(data));
