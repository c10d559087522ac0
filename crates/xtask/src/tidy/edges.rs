//! Which crate may use which: the dependency rule of ARCHITECTURE.md as a table.

use super::Finding;
use serde_json::Value;
use std::collections::BTreeSet;

/// Each crate and the crates of this repository it may use.
const TABLE: [(&str, &[&str]); 11] = [
    ("protocol", &[]),
    ("grpc", &["protocol"]),
    ("core", &["protocol"]),
    ("store", &["core", "protocol"]),
    ("inbound", &["core", "grpc", "protocol"]),
    ("outbound", &["core", "grpc", "protocol"]),
    ("worker", &["protocol"]),
    ("flotilla", &["core", "grpc", "inbound", "outbound", "protocol", "store", "worker"]),
    ("testkit", &["core", "flotilla", "grpc", "inbound", "outbound", "protocol", "store", "worker"]),
    ("fuzz", &["core", "flotilla", "grpc", "inbound", "outbound", "protocol", "store"]),
    ("xtask", &[]),
];

fn short(package: &str) -> &str {
    package.strip_prefix("flotilla-").unwrap_or(package)
}

pub fn check(metadata: &Value) -> Vec<Finding> {
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    packages.iter().flat_map(|package| of(package, &ours, root)).collect()
}

fn of(package: &Value, ours: &BTreeSet<&str>, root: &str) -> Vec<Finding> {
    let name = short(package["name"].as_str().unwrap_or_default());
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let file = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
    let Some((_, allowed)) = TABLE.iter().find(|(known, _)| *known == name) else {
        let text = format!("the crate {name} is not in the table of crates/xtask/src/tidy/edges.rs: add its row");
        return vec![Finding::new(file, 1, text)];
    };
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let used = dependency["name"].as_str().unwrap_or_default();
        let for_tests = dependency["kind"] == "dev";
        let allowed = allowed.contains(&short(used)) || (for_tests && short(used) == "testkit");
        if ours.contains(used) && !allowed {
            let text = format!("{name} must not use {}: move the code, or meet in a port of core", short(used));
            findings.push(Finding::new(file, 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    fn package(name: &str, dependencies: &[(&str, Value)]) -> Value {
        let dependencies: Vec<_> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        json!({"name": name, "manifest_path": format!("/r/crates/{name}/Cargo.toml"), "dependencies": dependencies})
    }

    fn findings(store_uses: &[(&str, Value)]) -> Vec<String> {
        let packages = [
            package("flotilla-store", store_uses),
            package("flotilla-core", &[]),
            package("flotilla-inbound", &[]),
            package("flotilla-testkit", &[]),
        ];
        check(&json!({"workspace_root": "/r", "packages": packages})).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn edges_of_the_table_and_foreign_crates_are_fine() {
        assert_eq!(findings(&[("flotilla-core", Value::Null), ("serde", Value::Null)]), [""; 0]);
    }

    #[test]
    fn a_new_edge_is_found_also_in_a_build_script() {
        let expected = "crates/flotilla-store/Cargo.toml:1: store must not use inbound: move the code, or meet in a \
                        port of core";
        assert_eq!(findings(&[("flotilla-inbound", Value::Null)]), [expected]);
        assert_eq!(findings(&[("flotilla-inbound", json!("build"))]), [expected]);
        assert_eq!(findings(&[("flotilla-inbound", json!("dev"))]), [expected]);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        assert_eq!(findings(&[("flotilla-testkit", json!("dev"))]), [""; 0]);
        assert_eq!(findings(&[("flotilla-testkit", Value::Null)]).len(), 1);
    }

    #[test]
    fn a_crate_needs_a_row() {
        let found = check(&json!({"workspace_root": "/r", "packages": [package("flotilla-misc", &[])]}));
        assert!(found[0].text.contains("the crate misc is not in the table"));
    }
}
