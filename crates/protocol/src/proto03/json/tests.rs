//! What is written is read back the same, and what is read is the model, with opaque JSON byte for byte.

use super::{Proto, frame, push_config, read_create_push, read_send, write_create_push, write_send};
use crate::a2a::model::StreamResponse;
use crate::a2a::request::PushConfig;
use crate::proto03::file::Files;

const TASK: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"no"}]},"timestamp":"2025-01-01T00:00:00.000Z"},"artifacts":[{"artifactId":"a","name":"n","parts":[{"text":"x","metadata":{"k": 1.0}},{"raw":"iVBORw==","filename":"f.png","mediaType":"image/png"},{"url":"https://e/f","mediaType":"text/plain"},{"data":{"n":9007199254740993, "f": 1.0}},{"data":[1,2]}]}],"history":[{"messageId":"h","role":"ROLE_USER","parts":[{"text":"hi"}],"extensions":["urn:x"]}],"metadata":{"b":[true,null],"a":1e2}}}"#;

#[test]
fn a_task_comes_back_to_the_byte() {
    let model: StreamResponse = serde_json::from_str(TASK).unwrap();
    let written = serde_json::to_string(&Proto(&model, Files::Text)).unwrap();
    for expected in [
        r#""state":"TASK_STATE_CANCELLED""#,
        r#""content":[{"text":"no"}]"#,
        r#"{"file":{"fileWithBytes":"aVZCT1J3PT0=","mimeType":"image/png","name":"f.png"}}"#,
        r#"{"data":{"data":{"n":9007199254740993, "f": 1.0}}}"#,
        r#"{"data":{"data":{"value":[1,2]}},"metadata":{"data_part_compat":true}}"#,
        r#""metadata":{"b":[true,null],"a":1e2}"#,
    ] {
        assert!(written.contains(expected), "{expected}\n{written}");
    }
    let other = serde_json::to_string(&Proto(&model, Files::Bytes)).unwrap();
    assert!(other.contains(r#""fileWithBytes":"iVBORw==""#), "{other}");
    for written in [written, other] {
        assert_eq!(serde_json::to_string(&frame(written.as_bytes(), Files::Text).unwrap()).unwrap(), TASK);
    }
}

#[test]
fn nothing_is_written_that_strict_readers_refuse() {
    let text = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x","mediaType":"text/html","later":1}],"referenceTaskIds":["r"],"later":1}}"#;
    let model: StreamResponse = serde_json::from_str(text).unwrap();
    let written = serde_json::to_string(&Proto(&model, Files::Text)).unwrap();
    assert_eq!(written, r#"{"message":{"messageId":"m","role":"ROLE_AGENT","content":[{"text":"x"}]}}"#);
    // What comes all the same is kept.
    let sent = text.replace("\"parts\"", "\"content\"");
    assert_eq!(serde_json::to_string(&frame(sent.as_bytes(), Files::Text).unwrap()).unwrap(), text);
}

#[test]
fn updates_say_whether_they_are_the_last() {
    let update = r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
    let model: StreamResponse = serde_json::from_str(update).unwrap();
    let written = serde_json::to_string(&Proto(&model, Files::Text)).unwrap();
    assert!(written.contains(r#""final":true"#), "{written}");
    assert_eq!(frame(written.as_bytes(), Files::Text).unwrap(), model);
}

#[test]
fn a_send_waits_unless_its_configuration_does_not_say_so() {
    let waits = |configuration: &str| {
        let body = format!(r#"{{"message":{{"messageId":"m","role":1,"content":[{{"text":"x"}}]}}{configuration}}}"#);
        let read = read_send(body.as_bytes(), Files::Bytes).unwrap();
        assert_eq!(read.message.as_ref().unwrap().parts.len(), 1);
        !read.configuration.unwrap_or_default().return_immediately
    };
    assert!(waits(""));
    assert!(waits(r#","configuration":{"blocking":true}"#));
    assert!(!waits(r#","configuration":{}"#));
    let ours = write_send(&Default::default(), Files::Text).unwrap();
    assert_eq!(ours, r#"{"configuration":{"blocking":true}}"#);
}

#[test]
fn wrong_fields_are_named() {
    let refusal = read_send(br#"{"message":{"content":[{"file":{"fileWithBytes":"***"}}]}}"#, Files::Text).unwrap_err();
    assert_eq!(refusal.violations[0].field, "message.content[0].file.fileWithBytes");
    let refusal = read_send(br#"{"message":{"content":[{"data":{"data":[]}}]}}"#, Files::Text).unwrap_err();
    assert_eq!(refusal.violations[0].field, "message.content[0].data.data");
}

#[test]
fn a_config_is_read_in_each_shape_it_is_sent_in() {
    let config = PushConfig { task_id: "t".into(), id: "c".into(), url: "http://e".into(), ..Default::default() };
    let whole = write_create_push(&config).unwrap();
    assert_eq!(read_create_push("t", whole.as_bytes()), Ok(config.clone()));
    assert!(read_create_push("other", whole.as_bytes()).is_err());
    let inner = serde_json::to_string(&Proto(&config, Files::Bytes)).unwrap();
    assert_eq!(read_create_push("t", inner.as_bytes()), Ok(config.clone()));
    assert_eq!(push_config(inner.as_bytes()), Ok(config));
}
