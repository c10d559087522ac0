//! What a worker says of the checks it made itself: each held, did not hold, or is no check.

use flotilla_protocol::fleet::TaskResult;
use serde_json::{Map, Value};

/// Members by which a check says whether it held. What they say must be a yes.
const VERDICTS: [&str; 5] = ["ok", "passed", "pass", "success", "held"];
/// Members that may say so in a word, and much else.
const WORDS: [&str; 4] = ["status", "result", "outcome", "conclusion"];
/// Members that count what did not hold, or say that something did not.
const COUNTS: [&str; 6] = ["failed", "failures", "errors", "exit_code", "exitCode", "returncode"];

/// What git sees of a run, as a result has it. A worker that has nothing to look at its tree with can only claim it.
const SEEN: [&str; 3] = ["artifacts.files_changed", "artifacts.branch", "artifacts.commits"];

/// Says what of a result nobody looked at.
pub(super) fn claimed(result: &mut TaskResult) {
    result.unverified.retain(|name| !SEEN.contains(&name.as_str()));
    if result.more.get("evidence").is_some_and(|evidence| is_seen(&evidence["git"])) {
        return;
    }
    let says = |name: &str| result.artifacts.more.get(name).is_some_and(|told| !told.is_null());
    let told = [!result.artifacts.files_changed.is_empty(), says("branch"), says("commits")];
    result.unverified.extend(SEEN.iter().zip(told).filter(|(_, told)| *told).map(|(name, _)| (*name).to_owned()));
}

/// Whether git looked; not where the repository itself (`.`) could not be looked at any more.
fn is_seen(git: &Value) -> bool {
    let is_all = |flag: &Value| flag["flag"] == "not_seen" && holds(&flag["places"], ".");
    git["ok"].is_boolean() && !git["flags"].as_array().is_some_and(|flags| flags.iter().any(is_all))
}

fn holds(places: &Value, place: &str) -> bool {
    places.as_array().is_some_and(|places| places.iter().any(|one| one == place))
}

/// Each check in a worker's evidence by its name, and whether it held: `{"tests": false}`, `{"tests": {"ok": false}}`,
/// `[{"name": "tests", "ok": false}]`, and the same with `passed` or in a word.
pub(super) fn looked_at(name: &str, evidence: &Value, check: &mut impl FnMut(&str, bool)) {
    match evidence {
        Value::Bool(held) => check(name, *held),
        Value::String(said) => {
            if let Some(held) = word(said) {
                check(name, held);
            }
        }
        Value::Array(several) => several.iter().for_each(|one| looked_at(name, one, check)),
        Value::Object(one) => {
            let own = one.get("name").and_then(Value::as_str);
            if let Some(held) = verdict(one) {
                check(own.unwrap_or(name), held);
            }
            // All of it may be one check, or each member one.
            if name == "evidence" && own.is_none() {
                let others = one.iter().filter(|(name, told)| !is_verdict(name) || told.is_object() || told.is_array());
                others.for_each(|(name, one)| looked_at(name, one, check));
            }
        }
        Value::Null | Value::Number(_) => {}
    }
}

/// Whether a check held; none if it says nothing of that. One word against it is enough.
fn verdict(one: &Map<String, Value>) -> Option<bool> {
    let told = |names: &'static [&str]| names.iter().filter_map(|name| one.get(*name));
    let plain = told(&VERDICTS).map(is_yes);
    let words = told(&WORDS).filter_map(Value::as_str).filter_map(word);
    let counts = told(&COUNTS).filter_map(|count| match count {
        Value::Bool(failed) => Some(!failed),
        Value::Number(count) => Some(count.as_f64() == Some(0.0)),
        _ => None,
    });
    plain.chain(words).chain(counts).reduce(|all, held| all && held)
}

fn is_verdict(name: &str) -> bool {
    VERDICTS.iter().chain(&WORDS).chain(&COUNTS).any(|known| *known == name)
}

/// What is not known to have held has not.
fn is_yes(told: &Value) -> bool {
    match told {
        Value::Bool(held) => *held,
        Value::Number(count) => count.as_f64().is_some_and(|count| count != 0.0),
        Value::String(said) => word(said) == Some(true),
        _ => false,
    }
}

fn word(said: &str) -> Option<bool> {
    match said.trim().to_lowercase().as_str() {
        "passed" | "pass" | "ok" | "true" | "yes" | "success" | "succeeded" | "green" => Some(true),
        "failed" | "fail" | "false" | "no" | "failure" | "error" | "errored" | "red" | "not ok" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::looked_at;
    use serde_json::json;

    #[test]
    fn each_plain_form_of_a_check_is_read() {
        for (evidence, expected) in [
            (json!({"tests": false, "lint": true}), "lint ok, tests not"),
            (json!({"tests": {"ok": false}}), "tests not"),
            (json!({"tests": "failed", "lint": "Passed", "log": "https://a.example/failed"}), "lint ok, tests not"),
            (json!({"lint": {"passed": false}, "tests": {"passed": true}}), "lint not, tests ok"),
            (json!({"x": {"ok": "false"}, "y": {"ok": null}, "z": {"ok": "yes"}}), "x not, y not, z ok"),
            (json!({"tests": {"passed": 10, "failed": 2}}), "tests not"),
            (json!({"tests": {"passed": 10, "failed": 0}}), "tests ok"),
            (json!({"build": {"exit_code": 1}, "run": {"status": "error"}}), "build not, run not"),
            (json!([{"name": "lint", "ok": true}, {"name": "tests", "result": "failure"}]), "lint ok, tests not"),
            (json!({"tests": [{"name": "unit", "ok": false}]}), "unit not"),
            (json!({"seen": {"by": "git"}, "n": 0, "nothing": null, "status": {"by": "me"}}), ""),
            (json!({"ok": true, "tests": false}), "evidence ok, tests not"),
            (json!({"errors": {"ok": false}}), "errors not"),
        ] {
            let mut told = Vec::new();
            looked_at("evidence", &evidence, &mut |name, held| {
                told.push(format!("{name} {}", if held { "ok" } else { "not" }));
            });
            told.sort();
            assert_eq!(told.join(", "), expected, "{evidence}");
        }
    }
}
