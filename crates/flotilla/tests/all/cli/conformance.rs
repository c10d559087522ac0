//! `conformance`: how the official kit is run and read; a script stands in for it.

use super::program::Place;
use crate::cast::hub;

/// Leaves what it was asked, and a report as the kit writes it.
const KIT: &str = r#"
echo "$@" > asked
echo "kit says hello"
mkdir -p reports
cat > reports/compatibility.json <<'END'
{"summary": {}, "per_requirement": {
  "A-1": {"level": "MUST", "status": "PASS", "errors": []},
  "A-2": {"level": "MUST", "status": "FAIL", "errors": ["expected 404\nmore"]},
  "B-1": {"level": "SHOULD", "status": "SKIPPED", "errors": []}}}
END
exit 1
"#;

#[test]
fn the_kit_is_run_over_the_declared_bindings_and_its_report_told() {
    let hub = hub();
    let place = Place::at(&hub);
    place.file("kit/run_tck.py", KIT);
    let args = ["conformance", "--tck", "kit", "--python", "sh", "--level", "must"];
    let ran = place.run(&args).ok();
    let asked = std::fs::read_to_string(place.dir().join("kit/asked")).expect("the kit was run");
    let expected = format!("--sut-host {} --transport jsonrpc,http_json,grpc --level must\n", hub.url());
    assert_eq!(asked, expected);
    assert_eq!(ran.field("MUST"), "1 passed, 1 failed, 0 not measured");
    assert_eq!(ran.field("SHOULD"), "0 passed, 0 failed, 1 not measured");
    assert_eq!(ran.field("Failed"), "A-2 (MUST) expected 404");
    assert!(ran.err.contains("kit says hello") && ran.err.contains("misses 1"), "{ran:?}");
    let report = place.run(&[&args[..], &["-o", "json"]].concat()).ok().json();
    assert_eq!(report["per_requirement"]["A-2"]["status"], "FAIL");
}

#[test]
fn a_kit_that_is_not_there_or_does_not_work_is_told() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run(&["conformance", "--tck", "nowhere"]);
    assert!(ran.code == 2 && ran.err.contains("git clone"), "{ran:?}");
    place.file("kit/run_tck.py", "exit 3");
    place.file("kit/reports/compatibility.json", "{\"per_requirement\": {}}");
    let ran = place.run(&["conformance", "--tck", "kit", "--python", "sh"]);
    assert!(ran.code == 1 && ran.err.contains("no report"), "an old report does not count: {ran:?}");
}
