//! How full a worker is: every run counts, whoever gave it, and none twice.

use super::{announce, give, is, key, owner, post, result, say, shown, told, worker, worker_saying};
use crate::cast::{hub, id, reached};
use crate::cli::program::Place;
use crate::socket::{answer, dial};
use flotilla_testkit::{Binding, until};
use serde_json::json;

#[test]
fn a_plain_message_takes_a_place_of_its_worker() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let client = hub.owner(Binding::JsonRpc).agent("ada");
    let plain = client.start("m1", "Hello");
    let message = ada.kind("message");
    assert_eq!(is(&hub, "ada", "BUSY")["active"], 1);
    let (refused, fleet) = give(&hub, &json!({"on_blocked": []}));
    let rejected = reached(&fleet, &refused, "TASK_STATE_REJECTED");
    assert_eq!(told(&rejected)["blocked_reason"], "over_capacity", "{rejected}");
    let (waits, fleet) = give(&hub, &json!({}));
    answer(&mut ada, &message, "Hello yourself");
    reached(&client, id(&plain), "TASK_STATE_COMPLETED");
    let message = ada.kind("message");
    assert_eq!(message["taskId"], json!(waits), "its place is free for what waits");
    result(&mut ada, &message, &json!({"status": "done"}));
    reached(&fleet, &waits, "TASK_STATE_COMPLETED");
    assert_eq!(is(&hub, "ada", "AVAILABLE")["active"], 0);
}

#[test]
fn what_a_worker_says_it_has_beside_the_hub_s_work_counts() {
    let hub = hub();
    let saying = |epoch: u64, active: u32| {
        let mut told = announce("ada", epoch);
        (told["capabilities"]["max_concurrent"], told["session"]["active_tasks"]) = (json!(2), json!(active));
        told
    };
    let mut ada = worker_saying(&hub, "ada", &saying(1, 2));
    let full = is(&hub, "ada", "BUSY");
    assert_eq!((&full["active"], &full["elsewhere"]), (&json!(2), &json!(2)));
    assert!(Place::at(&hub).run(&["fleet"]).ok().out.contains("2/2"));
    let (refused, fleet) = give(&hub, &json!({"on_blocked": []}));
    let rejected = told(&reached(&fleet, &refused, "TASK_STATE_REJECTED"));
    assert!(rejected["detail"].to_string().contains("2 of them by work from elsewhere"), "{rejected}");
    say(&mut ada, &saying(2, 0));
    let (task, fleet) = give(&hub, &json!({}));
    let message = ada.kind("message");
    say(&mut ada, &saying(3, 1));
    let seen = is(&hub, "ada", "AVAILABLE");
    assert_eq!((&seen["active"], &seen["elsewhere"]), (&json!(1), &json!(0)), "the hub's own run is counted once");
    result(&mut ada, &message, &json!({"status": "done"}));
    reached(&fleet, &task, "TASK_STATE_COMPLETED");
    // It was on its way when the run ended.
    say(&mut ada, &saying(4, 1));
    assert_eq!(until("it is free", || Some(shown(&hub, "ada")).filter(|seen| seen["active"] == 0))["elsewhere"], 0);
}

#[test]
fn a_worker_that_only_announces_itself_is_told_that_no_work_reaches_it() {
    let hub = hub();
    let adas = key(&hub, "ada");
    dial(&hub, &adas).open().cut();
    let client = hub.stranger(Binding::HttpJson).key(&adas);
    let alone = until("it is gone", || {
        let told = post(&client, "/api/fleet/announce", &announce("ada", 1)).json();
        (told["reachable"] == false).then_some(told)
    });
    assert!(alone["note"].to_string().contains("Connect to /ws"), "{alone}");
    let seen = shown(&hub, "ada");
    assert!(seen["health"] == "OFFLINE" && seen["reason"].to_string().contains("not connected"), "{seen}");
    let _ada = dial(&hub, &adas).open();
    let told = post(&client, "/api/fleet/announce", &announce("ada", 2)).json();
    assert_eq!((&told["reachable"], told.get("note")), (&json!(true), None), "{told}");
    is(&hub, "ada", "AVAILABLE");
    let mut huge = announce("ada", 3);
    huge["worker"]["model"] = json!("m".repeat(5_000));
    let refused = post(&client, "/api/fleet/announce", &huge);
    assert!(refused.status == 400 && refused.text().contains("worker.model"), "{}", refused.text());
}

#[test]
fn dispatched_work_may_belong_to_a_context() {
    let hub = hub();
    let (mut ada, _bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let (task, client) = give(&hub, &json!({"to": "ada", "contextId": "c-7"}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done"}));
    assert_eq!(reached(&client, &task, "TASK_STATE_COMPLETED")["contextId"], "c-7");
    let given = Place::at(&hub).json(&["dispatch", "More", "--context", "c-7"]);
    assert_eq!(given["contextId"], "c-7", "{given}");
    assert_eq!(ada.kind("message")["taskId"], given["id"], "whoever worked in it goes on");
    for wrong in [json!(5), json!("")] {
        let refused = post(&owner(&hub), "/api/dispatch", &super::dispatch(&json!({"contextId": wrong})));
        assert!(refused.status == 400 && refused.text().contains("contextId"), "{}", refused.text());
    }
    assert_eq!(Place::at(&hub).run(&["dispatch", "x", "--priority", "x"]).code, 2);
}
