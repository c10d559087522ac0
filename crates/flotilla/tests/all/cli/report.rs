//! The compliance report is whole, its sums are right, and every test it names exists.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Report {
    report: Identity,
    summary: BTreeMap<String, Summary>,
    requirements: BTreeMap<String, Requirement>,
    default_001_breakdown: BTreeMap<String, Default001>,
    error_codes: BTreeMap<String, Emitted>,
}

#[derive(Deserialize)]
struct Identity {
    tool_version: String,
    tier_claimed: u8,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Summary {
    total: usize,
    pass: usize,
    partial: usize,
    fail: usize,
    not_measured: usize,
    na: usize,
    satisfied: bool,
}

#[derive(Deserialize)]
struct Requirement {
    tier: u8,
    status: String,
    note: Option<String>,
    evidence: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Default001 {
    shipped: String,
    overridable: String,
}

#[derive(Deserialize)]
struct Emitted {
    emitted: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn report() -> Report {
    let text = std::fs::read_to_string(root().join("compliance-report.yaml")).expect("the report");
    serde_saphyr::from_str(&text).expect("a report in the specification's form")
}

/// How many requirements the specification has in each tier.
const TOTALS: [(u8, usize); 3] = [(1, 39), (2, 15), (3, 12)];

#[test]
fn the_sums_are_right_and_the_claim_follows_from_them() {
    let report = report();
    assert_eq!(report.report.tool_version, env!("CARGO_PKG_VERSION"));
    for (tier, total) in TOTALS {
        let of = |status: &str| {
            report.requirements.values().filter(|found| found.tier == tier && found.status == status).count()
        };
        let (pass, na) = (of("pass"), of("na"));
        let (partial, fail, not_measured) = (of("partial"), of("fail"), of("not_measured"));
        let satisfied = pass + na == total;
        let expected = Summary { total, pass, partial, fail, not_measured, na, satisfied };
        assert_eq!(report.summary[&format!("tier_{tier}")], expected);
        assert_eq!(pass + na + partial + fail + not_measured, total, "tier {tier} is whole");
        assert!(satisfied || tier > report.report.tier_claimed, "tier {tier} is claimed and not satisfied");
    }
    let yes = |found: &Default001| found.shipped == "yes" && found.overridable == "yes";
    assert!(report.default_001_breakdown.len() == 6 && report.default_001_breakdown.values().all(yes));
    assert!(report.error_codes.len() == 8 && report.error_codes.values().all(|code| code.emitted == "yes"));
}

#[test]
fn every_line_is_backed_by_tests_that_exist() {
    for (id, line) in report().requirements {
        if line.status != "pass" {
            assert!(line.note.is_some(), "{id} needs a note");
            continue;
        }
        let evidence = line.evidence.unwrap_or_default();
        assert!(!evidence.is_empty(), "{id} names no test");
        for named in evidence {
            let (file, test) = named.split_once("::").unwrap_or_else(|| panic!("{id}: {named} is no FILE::TEST"));
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|_| panic!("{id}: no file {file}"));
            let signs = [format!("#[test]\nfn {test}()"), format!("\ndef {test}(")];
            assert!(signs.iter().any(|sign| text.contains(sign.as_str())), "{id}: no test {test} in {file}");
        }
    }
}
