//! Whose word is believed, and what follows from it.

use super::{Descent, Objection, Told};
use crate::caller::Caller;
use crate::ids::PrincipalId;
use crate::limits::Limits;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::lineage::{ANCESTRY, Ancestor, Provenance, Trace};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Object;
use serde_json::{Value, json};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn keyed() -> Caller {
    Caller { principal: PrincipalId(7), ..Caller::anonymous() }
}

fn told(hops: Option<&str>, trace: bool) -> Told {
    Told { trace: Trace::parse(PARENT, None).filter(|_| trace), hops: hops.map(str::to_owned) }
}

/// What becomes of this ancestry at the hub `here`, which allows three hops, at the time 1000.
fn of(caller: &Caller, ancestry: Value, told: Told) -> Result<Option<Descent>, Refusal> {
    let metadata = (!ancestry.is_null()).then(|| Object::of(&json!({ANCESTRY: ancestry})).unwrap());
    let request = SendMessageRequest { metadata, ..SendMessageRequest::default() };
    let here = || Ancestor { hub: "here".into(), agent: "me".into(), task: String::new() };
    let limits = Limits { hops: 3, ..Limits::default() };
    Descent::of(caller, &request, told, here, (&limits, || Millis(1000)))
}

fn chain(places: &[(&str, &str)]) -> Value {
    json!(places.iter().map(|(hub, agent)| json!({"hub": hub, "agent": agent, "task": "t"})).collect::<Vec<_>>())
}

fn judged(ancestry: Value, hops: Option<&str>) -> Option<Objection> {
    of(&keyed(), ancestry, told(hops, false)).unwrap().unwrap().objection()
}

#[test]
fn only_who_shows_a_key_is_believed() {
    let ancestry = || json!({"chain": chain(&[("here", "me")]), "hops": 9, "deadline": "1970-01-01T00:00:00Z"});
    let believed = of(&keyed(), ancestry(), told(None, true)).unwrap().unwrap();
    assert_eq!((believed.origin.hops, believed.deadline), (9, Some(Millis(0))));
    assert!(believed.objection().is_some());
    let stranger = Caller::anonymous();
    let dropped = of(&stranger, ancestry(), told(Some("9"), true)).unwrap().unwrap();
    assert_eq!((dropped.origin.chain.len(), dropped.origin.hops, dropped.deadline), (0, 0, None));
    assert_eq!(dropped.origin.provenance, Provenance::A2aExternal);
    assert_eq!(dropped.origin.trace, Trace::parse(PARENT, None), "a trace decides nothing");
    let unread = of(&stranger, json!(7), told(Some("many"), false)).unwrap().unwrap();
    assert_eq!((&unread.origin.claimed, unread.objection()), (&None, None), "what cannot be read is nothing");
}

#[test]
fn a_stranger_s_word_counts_against_the_work_alone() {
    let claimed = |ancestry, hops: Option<&str>| {
        of(&Caller::anonymous(), ancestry, told(hops, false)).unwrap().unwrap().objection()
    };
    let ring = claimed(json!({"chain": chain(&[("here", "me"), ("there", "you")])}), None);
    assert_eq!(ring, Some(Objection::Ring(vec!["me".into(), "you".into(), "me".into()])));
    assert_eq!(claimed(Value::Null, Some("4")), Some(Objection::Hops { hops: 4, most: 3 }));
    assert_eq!(claimed(json!({"hops": 3, "maxHops": 99}), None), None, "it allows nothing, and needs not");
    assert_eq!(claimed(json!({"hops": 4, "maxHops": 99}), None), Some(Objection::Hops { hops: 4, most: 3 }));
    assert_eq!(claimed(json!({"hops": 2, "maxHops": 1}), None), Some(Objection::Hops { hops: 2, most: 1 }));
    assert_eq!(claimed(json!({"deadline": "1970-01-01T00:00:00Z"}), None), None);
    let slips = json!({"chain": [7, "here/me/t"], "deadline": "soon", "hops": 1.0, "maxHops": "few"});
    assert_eq!(claimed(slips, None), Some(Objection::Ring(vec!["me".into(), "me".into()])), "a slip hides no ring");
    assert!(of(&keyed(), json!({"chain": [7]}), Told::default()).is_err(), "who is believed is told of it");
    let long: Vec<_> = (0..100).map(|_| ("far", "away")).collect();
    let kept = of(&Caller::anonymous(), json!({"chain": chain(&long)}), Told::default()).unwrap().unwrap();
    assert_eq!(kept.origin.claimed.as_ref().map(|claim| (claim.chain.len(), claim.hops)), Some((3, 100)));
}

#[test]
fn a_claim_stays_one_when_somebody_who_is_believed_passes_it_on() {
    let passed = |before: &[(&str, &str)], hops: u32| json!({"chain": chain(&[("there", "you")]), "hops": 1, "claimed": {"chain": chain(before), "hops": hops}});
    let believed = of(&keyed(), passed(&[("far", "x")], 1), told(None, false)).unwrap().unwrap();
    assert_eq!((believed.origin.chain.len(), believed.origin.hops, believed.objection()), (1, 1, None));
    assert_eq!(judged(passed(&[("far", "x")], 3), None), Some(Objection::Hops { hops: 4, most: 3 }));
    assert!(matches!(judged(passed(&[("here", "me")], 1), None), Some(Objection::Ring(names)) if names.len() == 3));
    let stranger = of(&Caller::anonymous(), passed(&[("far", "x")], 1), Told::default()).unwrap().unwrap();
    let claimed = stranger.origin.claimed.clone().unwrap();
    assert_eq!((claimed.chain.len(), claimed.hops), (2, 2), "all of it is a stranger's word now");
}

#[test]
fn the_header_counts_what_is_claimed_once() {
    let passed = || json!({"chain": chain(&[("there", "you")]), "hops": 1, "claimed": {"hops": 2}});
    for caller in [keyed(), Caller::anonymous()] {
        let at_most = of(&caller, passed(), told(Some("3"), false)).unwrap().unwrap();
        assert_eq!(at_most.objection(), None, "1 and 2 are the 3 of the header");
        let beyond = of(&caller, passed(), told(Some("4"), false)).unwrap().unwrap();
        assert_eq!(beyond.objection(), Some(Objection::Hops { hops: 4, most: 3 }));
    }
}

#[test]
fn who_tells_nothing_has_no_descent() {
    for caller in [keyed(), Caller::anonymous()] {
        assert_eq!(of(&caller, Value::Null, Told::default()).unwrap(), None);
        let traced = of(&caller, Value::Null, told(None, true)).unwrap().unwrap();
        assert_eq!((traced.origin.provenance, traced.objection()), (Provenance::Local, None));
    }
}

#[test]
fn a_place_is_a_hub_and_an_agent() {
    assert_eq!(judged(json!({"chain": chain(&[("here", "other"), ("there", "me")])}), None), None);
    let ring = judged(json!({"chain": chain(&[("here", "me"), ("there", "you")])}), None).unwrap();
    assert_eq!(ring, Objection::Ring(vec!["me".into(), "you".into(), "me".into()]));
    assert!(ring.text().contains("me to you to me"), "{}", ring.text());
}

#[test]
fn the_fleet_is_no_place() {
    let ancestry = json!({"chain": chain(&[("here", "fleet"), ("here", "me")])});
    let mut descent = of(&keyed(), ancestry, Told::default()).unwrap().unwrap();
    assert!(descent.objection().is_some(), "its worker is one");
    descent.here.agent = "fleet".into();
    assert_eq!(descent.objection(), None);
}

#[test]
fn the_most_that_anybody_counted_are_the_hops() {
    let one = || chain(&[("a", "x")]);
    assert_eq!(judged(json!({"chain": one(), "hops": 3}), Some("2")), None, "as many as allowed");
    assert_eq!(judged(json!({"chain": one()}), Some("4")), Some(Objection::Hops { hops: 4, most: 3 }));
    assert_eq!(judged(json!({"hops": 4}), None), Some(Objection::Hops { hops: 4, most: 3 }));
    let four = chain(&[("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")]);
    assert_eq!(judged(json!({"chain": four, "hops": 1}), None), Some(Objection::Hops { hops: 4, most: 3 }));
    assert_eq!(judged(json!({"hops": 2, "maxHops": 1}), None), Some(Objection::Hops { hops: 2, most: 1 }));
    assert_eq!(judged(json!({"hops": 4, "maxHops": 9}), None), Some(Objection::Hops { hops: 4, most: 3 }));
}

#[test]
fn a_deadline_is_over_at_its_moment() {
    assert_eq!(judged(json!({"deadline": "1970-01-01T00:00:01.001Z"}), None), None);
    let late = judged(json!({"deadline": "1970-01-01T00:00:01Z"}), None);
    assert_eq!(late, Some(Objection::Deadline(Millis(1000))));
}

#[test]
fn provenance_says_how_much_is_known() {
    let provenance =
        |ancestry, hops: Option<&str>| of(&keyed(), ancestry, told(hops, false)).unwrap().unwrap().origin.provenance;
    assert_eq!(provenance(json!({"chain": chain(&[("here", "other")])}), None), Provenance::Local);
    assert_eq!(provenance(json!({"chain": chain(&[("there", "other")])}), None), Provenance::A2aRemote);
    assert_eq!(provenance(Value::Null, Some("1")), Provenance::A2aExternal);
    assert_eq!(provenance(Value::Null, Some("0")), Provenance::Local);
}

#[test]
fn hops_are_a_whole_number() {
    for wrong in ["", "-1", "+1", "1.0", "two", "1,2", "99999999999"] {
        let refusal = of(&keyed(), Value::Null, told(Some(wrong), false)).unwrap_err();
        assert_eq!(refusal.violations[0].field, "x-fleet-hops", "{wrong}");
    }
}
