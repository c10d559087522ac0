//! Push configs of tasks that were begun in the dialect, as its TypeScript client handles them.

use super::{connected, post, result, to};
use crate::cast::hub_with;
use crate::socket::{agent_key, answer};
use flotilla_testkit::Receiver;
use serde_json::json;

const CREATE: &str = "CreateTaskPushNotificationConfig";
const GET: &str = "GetTaskPushNotificationConfig";
const LIST: &str = "ListTaskPushNotificationConfigs";
const DELETE: &str = "DeleteTaskPushNotificationConfig";

#[test]
fn configs_are_made_read_listed_and_deleted() {
    let hub = hub_with("targets: {allow: [127.0.0.1]}");
    let (key, stranger) = (agent_key(&hub, "caller"), agent_key(&hub, "stranger"));
    let mut agent = connected(&hub, "weather");
    let receiver = Receiver::start();
    let task = result(&hub, &key, "SendMessage", &to("weather", "Rain?"));
    let config = json!({"url": receiver.url(), "token": "t-secret",
                        "authentication": {"scheme": "Bearer", "credentials": "c-secret"}});
    let made = result(&hub, &key, CREATE, &json!({"taskId": task["id"], "config": config}));
    assert_eq!((&made["taskId"], &made["url"]), (&task["id"], &json!(receiver.url())), "{made}");
    let one = json!({"taskId": task["id"], "id": made["id"]});
    assert_eq!(result(&hub, &key, GET, &one), made);
    let other = result(&hub, &key, CREATE, &json!({"taskId": task["id"], "config": {"url": "http://127.0.0.1:1"}}));
    let page = result(&hub, &key, LIST, &json!({"taskId": task["id"]}));
    assert_eq!(page, json!({"configs": [made, other], "nextPageToken": ""}));
    assert!(!page.to_string().contains("secret"), "{page}");
    let gone = json!({"taskId": task["id"], "id": other["id"]});
    assert_eq!(result(&hub, &key, DELETE, &gone), json!({"success": true}));
    assert_eq!(post(&hub, &key, GET, &gone).json()["error"]["code"], -32001);
    for (method, params) in [(CREATE, json!({"taskId": task["id"], "config": config})), (GET, one)] {
        assert_eq!(post(&hub, &stranger, method, &params).json()["error"]["code"], -32001, "another's task");
    }
    let message = agent.kind("message");
    answer(&mut agent, &message, "Dry");
    let told = receiver.wait(1);
    assert_eq!(told[0].header("authorization"), Some("Bearer c-secret"));
}

#[test]
fn a_message_brings_its_webhook_along() {
    let hub = hub_with("targets: {allow: [127.0.0.1]}");
    let key = agent_key(&hub, "caller");
    for name in ["pushNotificationUrl", "pushNotificationConfig"] {
        let receiver = Receiver::start();
        let mut params = to("mock", "complete");
        let flat = json!({"url": receiver.url(), "token": "tick"});
        params["configuration"][name] = if name.ends_with("Url") { flat["url"].clone() } else { flat };
        result(&hub, &key, "SendMessage", &params);
        assert!(!receiver.wait(1).is_empty(), "{name}");
    }
}
