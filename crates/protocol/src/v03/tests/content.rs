//! Parts and messages.

use super::{newer, older, same};
use crate::a2a::model::{Message, Part};

#[test]
fn text_parts() {
    same::<Part>(r#"{"kind":"text","text":"hi"}"#, r#"{"text":"hi"}"#);
}

#[test]
fn file_parts_with_bytes_and_by_reference() {
    same::<Part>(
        r#"{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain","name":"a.txt"}}"#,
        r#"{"raw":"aGk=","filename":"a.txt","mediaType":"text/plain"}"#,
    );
    same::<Part>(
        r#"{"kind":"file","file":{"uri":"https://a/b"},"metadata":{"n":1.0}}"#,
        r#"{"url":"https://a/b","metadata":{"n":1.0}}"#,
    );
    assert!(newer::<Part>(r#"{"kind":"file","file":{}}"#).unwrap_err().contains("file.bytes"));
    assert!(newer::<Part>(r#"{"kind":"file","file":{"bytes":"","uri":""}}"#).unwrap_err().contains("only one"));
}

#[test]
fn data_parts_keep_their_numbers() {
    same::<Part>(
        r#"{"kind":"data","data":{"n":9007199254740993, "x": [1.0]}}"#,
        r#"{"data":{"n":9007199254740993, "x": [1.0]}}"#,
    );
}

#[test]
fn data_that_is_no_object_is_wrapped() {
    same::<Part>(
        r#"{"kind":"data","data":{"value":[1,2.50]},"metadata":{"data_part_compat":true}}"#,
        r#"{"data":[1,2.50]}"#,
    );
    same::<Part>(
        r#"{"kind":"data","data":{"value":null},"metadata":{"data_part_compat":true,"a":1}}"#,
        r#"{"data":null,"metadata":{"a":1}}"#,
    );
    // An object that only looks like one of ours stays as it is.
    same::<Part>(r#"{"kind":"data","data":{"value":7}}"#, r#"{"data":{"value":7}}"#);
}

#[test]
fn names_and_types_of_text_and_data_stand_beside() {
    same::<Part>(
        r##"{"kind":"text","text":"# a","filename":"a.md","mediaType":"text/markdown"}"##,
        r##"{"text":"# a","filename":"a.md","mediaType":"text/markdown"}"##,
    );
    same::<Part>(
        r#"{"kind":"data","data":{},"mediaType":"application/geo+json"}"#,
        r#"{"data":{},"mediaType":"application/geo+json"}"#,
    );
}

#[test]
fn a_part_without_a_kind_is_told_by_its_member() {
    assert_eq!(newer::<Part>(r#"{"text":"a"}"#).as_deref(), Ok(r#"{"text":"a"}"#));
    assert_eq!(newer::<Part>(r#"{"url":"https://a"}"#).as_deref(), Ok(r#"{"url":"https://a"}"#));
    assert_eq!(newer::<Part>(r#"{"type":"text","text":"a"}"#).as_deref(), Ok(r#"{"text":"a"}"#), "as before 0.3");
    assert!(newer::<Part>(r#"{"type":"image","text":"a"}"#).unwrap_err().contains("'image'"));
    same::<Part>(r#"{"kind":"text","text":"a","type":7}"#, r#"{"text":"a","type":7}"#);
    assert!(newer::<Part>("{}").unwrap_err().contains("needs a kind"));
    assert!(newer::<Part>(r#"{"kind":"image"}"#).unwrap_err().contains("'image'"));
    assert!(newer::<Part>(r#"{"kind":"text"}"#).unwrap_err().contains("'text'"));
    assert!(newer::<Part>(r#"{"kind":"data","data":null}"#).unwrap_err().contains("'data'"));
}

#[test]
fn unknown_members_are_kept_unless_their_name_means_something_else() {
    same::<Part>(r#"{"kind":"text","text":"a","later":{"n": 1.0}}"#, r#"{"text":"a","later":{"n": 1.0}}"#);
    assert_eq!(newer::<Part>(r#"{"kind":"text","text":"a","raw":"aGk="}"#).as_deref(), Ok(r#"{"text":"a"}"#));
    assert_eq!(older::<Part>(r#"{"text":"a","file":{"x":1}}"#), r#"{"kind":"text","text":"a"}"#);
    // Within `file` there is no room in 1.0.
    assert_eq!(newer::<Part>(r#"{"kind":"file","file":{"uri":"u","etag":"e"}}"#).as_deref(), Ok(r#"{"url":"u"}"#));
}

#[test]
fn messages_with_all_they_may_hold() {
    same::<Message>(
        r#"{"kind":"message","messageId":"m","contextId":"c","taskId":"t","role":"agent","parts":[{"kind":"text","text":"a"}],"metadata":{"k":1.0},"extensions":["urn:x"],"referenceTaskIds":["r"],"later":1}"#,
        r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_AGENT","parts":[{"text":"a"}],"metadata":{"k":1.0},"extensions":["urn:x"],"referenceTaskIds":["r"],"later":1}"#,
    );
}

#[test]
fn roles_are_lower_case_and_none_is_the_agent() {
    for (old, new) in [("user", "ROLE_USER"), ("agent", "ROLE_AGENT")] {
        let read = |role: &str| newer::<Message>(&format!(r#"{{"role":"{role}"}}"#)).unwrap();
        assert_eq!((read(old), read(new)), (format!(r#"{{"role":"{new}"}}"#), format!(r#"{{"role":"{new}"}}"#)));
        assert!(older::<Message>(&read(new)).contains(&format!(r#""role":"{old}""#)));
    }
    assert!(older::<Message>(r#"{"messageId":"m"}"#).contains(r#""role":"agent""#));
    assert!(newer::<Message>(r#"{"role":"system"}"#).unwrap_err().contains("user, agent"));
}

#[test]
fn both_spellings_and_null_are_read() {
    let old = r#"{"message_id":"m","task_id":null,"role":"user","parts":[],"reference_task_ids":["r"]}"#;
    let new = r#"{"messageId":"m","role":"ROLE_USER","referenceTaskIds":["r"]}"#;
    assert_eq!(newer::<Message>(old).as_deref(), Ok(new));
    assert!(newer::<Message>(r#"{"kind":"task"}"#).unwrap_err().contains("'message' is expected"));
}
