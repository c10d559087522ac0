//! The published schemas of the fleet handshake.

use super::hub_with;
use flotilla_testkit::Binding;

#[test]
fn schemas_are_there_for_everybody() {
    let hub = hub_with("");
    let get = |path: &str| hub.stranger(Binding::HttpJson).get(path);
    for name in ["session-announce", "task-dispatch", "task-result"] {
        let answer = get(&format!("/schemas/fleet/{name}.json"));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/schema+json")));
        let schema = answer.json();
        assert_eq!(schema["$id"], format!("urn:flotilla:schema:fleet:2.0:{name}"));
        assert!(schema["properties"]["protocol_version"].is_object(), "{schema}");
    }
    assert_eq!(get("/schemas/fleet/task.json").status, 404);
    assert_eq!(get("/schemas/fleet/task-result").status, 404);
}
