//! The hub is killed between what a run used last and its stop: it is stopped when it is taken up again.

use super::ceilings::{is_stopped, spent, uses};
use super::{announce, give, key, say};
use crate::cast::{CONFIG, hub_with};
use crate::socket::dial;
use flotilla_testkit::until;
use serde_json::json;

#[test]
fn a_ceiling_that_was_reached_before_the_hub_was_killed_still_stops_what_is_at_work() {
    let mut hub = hub_with("");
    let key = key(&hub, "ada");
    let mut ada = dial(&hub, &key).open();
    let resume = ada.welcome["resumeToken"].as_str().expect("a token").to_owned();
    say(&mut ada, &announce("ada", 1));
    let (task, client) = give(&hub, &json!({"to": "ada"}));
    let message = ada.kind("message");
    uses(&mut ada, &message, 1200);
    until("it is booked", || (spent(&hub, &task) == 1200).then_some(()));
    // The ceiling comes with the next start: to that process it was reached before.
    hub.write_config(&format!("{CONFIG}\nbudgets: {{agents: {{ada: {{tokens: 1000}}}}}}\n"));
    hub.restart();
    let mut ada = dial(&hub, &key).query("resume", &resume).open();
    assert_eq!(ada.kind("cancel")["taskId"], json!(task), "without another word of what it uses");
    is_stopped(&client, &task, "for today");
}
