//! Feeds `lineage::lineage`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flotilla_fuzz::lineage::lineage(data));
