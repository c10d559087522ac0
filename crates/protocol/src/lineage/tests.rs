//! What is read of a lineage, and what is handed on.

use super::{ANCESTRY, Ancestor, Ancestry, Claim, Lineage, Origin, SpanId, Trace, TraceId};
use crate::time::Millis;
use crate::wire::{Json, Object};
use serde_json::{Value, json};
use std::sync::Arc;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn object(text: &str) -> Object {
    Object(Json::new(text.to_owned()).unwrap())
}

fn member(value: &Value) -> Object {
    object(&json!({ANCESTRY: value}).to_string())
}

fn ancestor(hub: &str) -> Ancestor {
    Ancestor { hub: hub.into(), agent: "a".into(), task: "t".into() }
}

#[test]
fn a_traceparent_reads_back_and_nonsense_is_no_trace() {
    let trace = Trace::parse(PARENT, Some("vendor=1,other=2")).unwrap();
    assert_eq!((trace.traceparent().as_str(), trace.state.as_deref()), (PARENT, Some("vendor=1,other=2")));
    let read: Trace = serde_json::from_str(&serde_json::to_string(&trace).unwrap()).unwrap();
    assert_eq!(read, trace);
    let later = Trace::parse(&format!("cc{}-more", &PARENT[2..]), None).unwrap();
    assert_eq!(later.traceparent(), PARENT, "a later version is answered in ours");
    assert_eq!(Trace::parse(&PARENT.replace("-01", "-ff"), None).unwrap().traceparent(), PARENT.replace("-01", "-03"));
    let wrong = [
        "".to_owned(),
        PARENT.to_uppercase(),
        format!("{PARENT}-more"),
        format!("ff{}", &PARENT[2..]),
        PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
        PARENT.replace("-01", ""),
        PARENT.replace("-01", "-1"),
        PARENT.replace("0af", "0ag"),
        PARENT.replace("00-", "00_"),
        "00-é".to_owned(),
    ];
    for wrong in wrong {
        assert_eq!(Trace::parse(&wrong, Some("a=1")), None, "{wrong}");
    }
    assert_eq!(Trace::parse(PARENT, Some(&"x".repeat(3000))).unwrap().state, None);
    assert_eq!(Trace::parse(PARENT, Some("a=\u{1}")).unwrap().state, None);
}

#[test]
fn ancestry_is_read_from_the_request_and_else_from_the_message() {
    let of = |request: Option<&Object>, message: Option<&Object>| Ancestry::of(request, message).unwrap();
    let (near, far) = (member(&json!({"hops": 2})), member(&json!({"hops": 1})));
    assert_eq!(of(Some(&near), Some(&far)).unwrap().hops, Some(2));
    assert_eq!(of(Some(&object("{}")), Some(&far)).unwrap().hops, Some(1));
    assert_eq!(of(None, Some(&object(r#"{"other":1}"#))), None);
    assert_eq!(of(None, Some(&member(&json!(null)))), None);
    let escaped = object(r#"{"urn:flotilla:ext:ancestry\u003a1.0":{"hops":3}}"#);
    assert_eq!(of(Some(&escaped), None).unwrap().hops, Some(3));
    let claimed = member(&json!({"hops": 1, "claimed": {"hops": 4, "chain": [{"hub": "h", "agent": "a"}]}}));
    assert_eq!(of(Some(&claimed), None).unwrap().claimed.map(|claim| claim.hops), Some(4));
    let later = member(&json!({"chain": [{"hub": "h", "agent": "a", "more": 1}], "later": true}));
    assert_eq!(of(Some(&later), None).unwrap().chain[0].task, "");
}

/// So does everybody write them who has them in a structure of protobuf.
#[test]
fn whole_numbers_may_be_written_as_floats() {
    let claimed = json!({"hops": 4.0, "maxHops": 6.0, "chain": ["h/a/t"]});
    let told = member(&json!({"hops": 2.0, "maxHops": 4294967295.0, "claimed": claimed}));
    let read = Ancestry::of(Some(&told), None).unwrap().unwrap();
    assert_eq!((read.hops, read.max_hops), (Some(2), Some(u32::MAX)));
    assert_eq!(read.claimed.as_ref().map(|claim| (claim.hops, claim.max_hops)), Some((4, Some(6))));
    assert_eq!(Ancestry::readable(Some(&told), None), Some(read));
    let absent = member(&json!({"hops": null, "maxHops": null, "claimed": {"hops": null}}));
    assert_eq!(Ancestry::of(Some(&absent), None).unwrap().unwrap().hops, None);
    for wrong in [json!(2.5), json!(-1.0), json!(4294967296.0), json!("2")] {
        let refusal = Ancestry::of(Some(&member(&json!({"hops": wrong}))), None).unwrap_err();
        assert!(refusal.message.contains("hops: invalid"), "{wrong}: {}", refusal.message);
    }
}

#[test]
fn what_cannot_be_read_hides_nothing_else() {
    let chain = json!(["h/a/t", 7, "nobody", {"hub": "i", "agent": "b"}, {"hub": "", "agent": "c"}]);
    let told = json!({"chain": chain, "hops": "many", "deadline": "soon", "maxHops": 9.0,
        "claimed": {"chain": {}, "hops": 2, "maxHops": -1}});
    let read = Ancestry::readable(Some(&member(&told)), None).unwrap();
    let one = |hub: &str, agent: &str, task: &str| Ancestor { hub: hub.into(), agent: agent.into(), task: task.into() };
    assert_eq!(read.chain, [one("h", "a", "t"), one("i", "b", "")]);
    assert_eq!((read.hops, read.max_hops), (Some(5), Some(9)), "what cannot be read is a hop all the same");
    assert_eq!(read.claimed, Some(Claim { hops: 2, ..Claim::default() }));
    let long = json!({"chain": vec!["h/a/t"; 500]});
    let read = Ancestry::readable(None, Some(&member(&long))).unwrap();
    assert_eq!((read.chain.len(), read.hops), (super::MOST_ANCESTORS, Some(500)));
    assert_eq!(Ancestry::readable(Some(&member(&json!(7))), None), None);
}

#[test]
fn what_is_malformed_is_told_by_its_place() {
    let chain = |one: Value| json!({"chain": [one]});
    let wrong = [
        (json!(7), "expected a JSON object"),
        (json!("nobody"), "chain[0].agent"),
        (json!({"hops": -1}), "hops: "),
        (json!({"hops": "two"}), "hops: "),
        (json!({"deadline": "soon"}), "RFC 3339"),
        (json!({"maxHops": 1.5}), "maxHops: "),
        (chain(json!(7)), "chain[0]: "),
        (chain(json!("hub")), "chain[0].agent"),
        (chain(json!("/agent/task")), "chain[0].hub"),
        (chain(json!({"hub": "h"})), "agent"),
        (chain(json!({"hub": "", "agent": "a"})), "chain[0].hub"),
        (chain(json!({"hub": "h", "agent": "a\nb"})), "chain[0].agent"),
        (chain(json!({"hub": "h", "agent": "a", "task": "t".repeat(257)})), "chain[0].task"),
        (json!({"chain": vec![json!({"hub": "h", "agent": "a"}); 129]}), "129 entries"),
        (json!({"claimed": {"chain": [{"hub": "", "agent": "a"}]}}), "claimed.chain[0].hub"),
    ];
    for (value, told) in wrong {
        let refusal = Ancestry::of(Some(&member(&value)), None).unwrap_err();
        assert_eq!(refusal.violations[0].field, "metadata");
        assert!(refusal.message.contains(told) && refusal.message.contains(ANCESTRY), "{}", refusal.message);
    }
}

#[test]
fn a_call_onward_appends_this_hub_and_counts_one_hop() {
    let trace = Trace::parse(PARENT, Some("v=1")).unwrap();
    let origin = Origin { chain: vec![ancestor("up")], hops: 3, max_hops: Some(5), ..Origin::default() };
    let lineage = Lineage {
        here: ancestor("here"),
        origin: Some(Arc::new(origin)),
        deadline: Some(Millis(1_000)),
        trace: trace.at(SpanId::of(0xab).unwrap()),
    };
    let onward = lineage.onward();
    let header = |name: &str| onward.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!(header("x-fleet-hops"), Some("4"));
    assert_eq!(header("traceparent"), Some("00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-01"));
    assert_eq!(header("tracestate"), Some("v=1"));
    let written = onward.request_metadata(Some(&object(r#"{"n": 1.0,  "urn:flotilla:ext:ancestry:1.0": 7, "z":[ ]}"#)));
    let expected = r#"{"n":1.0,"z":[ ],"urn:flotilla:ext:ancestry:1.0":{"chain":["up/a/t","here/a/t"],"hops":4,"deadline":"1970-01-01T00:00:01.000Z","maxHops":5}}"#;
    assert_eq!(written.0.text(), expected);
    assert_eq!(Ancestry::of(Some(&written), None).unwrap(), Some(onward.ancestry.clone()));
    let plain = object(r#"{"a" : 1}"#);
    assert_eq!(onward.message_metadata(Some(&plain)), Some(plain), "untouched, byte for byte");
    assert_eq!(onward.message_metadata(None), None);
    let stale = onward.message_metadata(Some(&member(&json!({"hops": 1})))).unwrap();
    assert_eq!(Ancestry::of(None, Some(&stale)).unwrap().unwrap().hops, Some(4), "an old ancestry does not go on");
}

#[test]
fn a_chain_is_brief_where_that_is_read_as_it_was_meant() {
    let one = |hub: &str, agent: &str, task: &str| Ancestor { hub: hub.into(), agent: agent.into(), task: task.into() };
    let chain = vec![one("h", "a", "t/1"), one("h", "a", ""), one("h/1", "a", "t"), one("h", "a/b", "t")];
    let told = Ancestry { chain, ..Ancestry::default() };
    let written = serde_json::to_value(&told).unwrap();
    let spelled = |hub: &str, agent: &str| json!({"hub": hub, "agent": agent, "task": "t"});
    assert_eq!(written, json!({"chain": ["h/a/t/1", "h/a/", spelled("h/1", "a"), spelled("h", "a/b")]}));
    assert_eq!(Ancestry::of(Some(&member(&written)), None).unwrap(), Some(told));
    let claim = Claim { chain: vec![one("h", "a", "t"), one("h", "a/b", "t")], hops: 2, max_hops: None };
    let kept = serde_json::to_value(&claim).unwrap();
    assert_eq!(kept, json!({"chain": [spelled("h", "a"), spelled("h", "a/b")], "hops": 2}));
    let told = Ancestry { claimed: Some(claim), ..Ancestry::default() };
    let written = serde_json::to_value(&told).unwrap();
    assert_eq!(written, json!({"claimed": {"chain": ["h/a/t", spelled("h", "a/b")], "hops": 2}}));
    assert_eq!(Ancestry::of(Some(&member(&written)), None).unwrap(), Some(told));
    let short = member(&json!({"chain": ["h/a"]}));
    assert_eq!(Ancestry::of(Some(&short), None).unwrap().unwrap().chain, [one("h", "a", "")]);
    let trace = Trace::begun(TraceId::of([7; 16]).unwrap(), SpanId::of(1).unwrap());
    let onward = Lineage { here: ancestor("here"), origin: None, deadline: None, trace }.onward();
    assert_eq!(onward.ancestry.hops, None, "as many as the chain is long");
}

#[test]
fn who_reads_the_header_alone_passes_on_what_was_claimed() {
    let trace = Trace::begun(TraceId::of([7; 16]).unwrap(), SpanId::of(1).unwrap());
    let claimed = Some(Claim { hops: 3, ..Claim::default() });
    let origin = Some(Arc::new(Origin { hops: 1, claimed, ..Origin::default() }));
    let onward = Lineage { here: ancestor("here"), origin, deadline: None, trace }.onward();
    assert_eq!(onward.headers[1], ("x-fleet-hops", "5".to_owned()));
    assert_eq!(onward.ancestry.hops, Some(2), "the claim is told beside it");
}

#[test]
fn below_a_parent_that_is_known_nothing_is_left_out() {
    let place =
        |hub: &str, agent: &str, task: &str| Ancestor { hub: hub.into(), agent: agent.into(), task: task.into() };
    let (root, parent) = (place("here", "planner", "1"), place("here", "coder", "2"));
    let claimed = Some(Claim { hops: 1, ..Claim::default() });
    let above = Origin { chain: vec![root.clone()], hops: 2, max_hops: Some(4), claimed, ..Origin::default() };
    let told = |chain: Vec<Ancestor>| Origin { hops: 1, max_hops: Some(9), chain, ..Origin::default() };
    let whole = vec![root.clone(), parent.clone()];
    for chain in [
        vec![place("here", "fleet", "2")],
        vec![root.clone(), place("here", "fleet", "2")],
        vec![place("here", "fleet", "1"), parent.clone()],
    ] {
        let below = told(chain).below(parent.clone(), Some(&above));
        assert_eq!((&below.chain, below.hops, below.max_hops), (&whole, 3, Some(4)));
        assert_eq!(below.claimed, above.claimed);
        assert_eq!(below.passed("here").collect::<Vec<_>>(), ["planner", "coder"]);
    }
    let more = told(vec![place("here", "other", "7"), place("far", "a", "8"), parent.clone()]);
    let expected = vec![place("here", "other", ""), place("far", "a", "8"), parent.clone()];
    assert_eq!(more.below(parent.clone(), None).chain, expected, "another's task here is not its own to name");
    assert_eq!(told(vec![parent.clone()]).below(parent, None).hops, 1);
}

#[test]
fn a_first_call_begins_the_chain() {
    let trace = Trace::begun(TraceId::of([7; 16]).unwrap(), SpanId::of(1).unwrap());
    let lineage = Lineage { here: ancestor("here"), origin: None, deadline: None, trace };
    let onward = lineage.onward();
    assert_eq!(onward.ancestry, Ancestry { chain: vec![ancestor("here")], hops: None, ..Ancestry::default() });
    assert_eq!(onward.headers.len(), 2, "no state that nobody told");
    let written = onward.request_metadata(None);
    assert_eq!(written.0.text(), r#"{"urn:flotilla:ext:ancestry:1.0":"here/a/t"}"#);
    assert_eq!(Ancestry::of(Some(&written), None).unwrap(), Some(onward.ancestry));
    let claim = Ancestry::readable(Some(&written), None).unwrap();
    assert_eq!((claim.chain, claim.hops), (vec![ancestor("here")], Some(1)));
    let nobody = Ancestry::readable(Some(&member(&json!("nobody"))), None).unwrap();
    assert_eq!((nobody.chain, nobody.hops), (vec![], Some(1)), "what cannot be read is a hop all the same");
}

#[test]
fn one_that_tells_more_than_its_parent_is_written_out() {
    let trace = Trace::begun(TraceId::of([7; 16]).unwrap(), SpanId::of(1).unwrap());
    let of = |here: Ancestor, deadline| Lineage { here, origin: None, deadline, trace: trace.clone() }.onward();
    let odd = Ancestor { agent: "a/b".into(), ..ancestor("here") };
    for onward in [of(ancestor("here"), Some(Millis(1_000))), of(odd, None)] {
        let written = onward.request_metadata(None);
        assert!(written.0.text().contains(r#""chain":["#), "{}", written.0.text());
        assert_eq!(Ancestry::of(Some(&written), None).unwrap(), Some(onward.ancestry));
    }
}

/// The blocks of JSON in the document: an example of a request, and the schema.
fn documented() -> Vec<Value> {
    let text = include_str!("../../../../docs/ancestry.md");
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(|block| serde_json::from_str(block).expect("the document's JSON is JSON")).collect()
}

#[test]
fn the_document_says_what_is_read() {
    let [example, schema] = documented().try_into().expect("an example and a schema");
    let metadata = Object::of(&example["metadata"]).unwrap();
    let mut read = Ancestry::of(Some(&metadata), None).unwrap().unwrap();
    read.claimed = Some(Claim::default());
    assert_eq!((read.chain.len(), read.hops, read.max_hops), (2, Some(2), Some(4)));
    let names = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&schema["properties"]), names(&serde_json::to_value(&read).unwrap()));
    let chain = &schema["properties"]["chain"];
    assert_eq!((&chain["maxItems"], &schema["$id"]), (&json!(super::MOST_ANCESTORS), &json!(ANCESTRY)));
    assert_eq!(names(&chain["items"]["anyOf"][1]["properties"]), names(&serde_json::to_value(ancestor("h")).unwrap()));
}
