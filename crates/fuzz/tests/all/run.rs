//! Each entry point as a test of its own. A failure shows the input; it belongs into `fuzz/seeds` with the fix.

use flotilla_fuzz::mutate::{Numbers, mutate};
use flotilla_fuzz::{ENTRIES, Entry};
use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

/// As many inputs as fit into the time, up to this: a slow machine tries fewer, never others.
const INPUTS: usize = 20_000;
const TIME: Duration = Duration::from_secs(1);

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a readable input")).collect()
}

fn attempt(entry: &Entry, input: &[u8]) {
    let run = entry.run;
    if catch_unwind(|| run(input)).is_err() {
        let digits: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!(
            "{} fails on {digits}\n(as text: {})\nkeep the input: echo {digits} | xxd -r -p > fuzz/seeds/{}/NAME",
            entry.name,
            String::from_utf8_lossy(input),
            entry.name
        );
    }
}

fn drive(name: &str) {
    let entry = ENTRIES.iter().find(|entry| entry.name == name).expect("an entry point of this name");
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "fuzz/seeds/{name} is empty");
    attempt(entry, &[]);
    seeds.iter().for_each(|seed| attempt(entry, seed));
    let mut numbers = Numbers::new(0x5eed);
    let started = Instant::now();
    for _ in 0..INPUTS {
        attempt(entry, &mutate(&seeds, &mut numbers));
        if started.elapsed() > TIME {
            return;
        }
    }
}

macro_rules! fuzz {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { drive(stringify!($name)); })*

        #[test]
        fn every_entry_point_is_run() {
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

fuzz! {
    json_rpc, parameters, http_json, grpc_request, grpc_frame, wire_values, catalog_search, announcement, config, credential,
    cursor, page_token,
    grpc_deadline, proxy, journal_file, journal_entry, stored_events, lineage, old_request, old_result, old_card,
    grpc_request_03, grpc_answer_03, proto_json_03, answer_03, agent_card, card_signature, sse, stream_frame, grpc_answer,
    grpc_messages, grpc_status, oauth, socket_frame, gopherhole_request, webhook_url, address_shown, ranges,
    webhook_secret, webhook_credentials, webhook_headers, key_set,
}
