//! The targets of cargo-fuzz: one for each entry point, and none besides.

use flotilla_fuzz::ENTRIES;
use std::path::Path;

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn every_entry_point_has_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let expected = sorted(ENTRIES.iter().map(|entry| entry.name.to_owned()).collect());
    let files = std::fs::read_dir(root.join("fuzz_targets")).unwrap().map(|file| file.unwrap().path());
    let files = files.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned());
    assert_eq!(sorted(files.collect()), expected);
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let bins = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
    assert_eq!(sorted(bins.map(str::to_owned).collect()), expected);
}

#[test]
fn every_target_calls_its_own_entry_point() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for entry in ENTRIES {
        let text = std::fs::read_to_string(targets.join(format!("{}.rs", entry.name))).unwrap();
        assert!(text.contains(&format!("::{}(data)", entry.name)), "{} calls something else", entry.name);
    }
}
