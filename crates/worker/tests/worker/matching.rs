//! Which rule is taken for which message.

use crate::transcript::{saying, script, sending, transcript};
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::work::Assignment;
use flotilla_worker::Agent;

async fn told(agent: &Agent, assignment: Assignment) -> String {
    let said = transcript(agent, assignment).await;
    said.trim_start_matches("COMPLETED {\"text\":\"").trim_end_matches("\"}").to_owned()
}

fn parts(json: &str) -> Assignment {
    sending("m-1", serde_json::from_str(json).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_longest_prefix_wins_then_the_first_rule() {
    let agent = script(
        "
rules:
  - {do: [completed: any]}
  - {when: {text: ab}, do: [completed: text ab]}
  - {when: {text: abc}, do: [completed: text abc]}
  - {when: {text: abc}, do: [completed: never]}
  - {when: {message_id: x-file}, do: [completed: x-file]}
  - {when: {message_id: x-file-url}, do: [completed: x-file-url]}
  - {when: {message_id: x-file, text: ab}, do: [completed: x-file with ab]}
",
    )
    .unwrap();
    for (id, text, expected) in [
        ("m", "zzz", "any"),
        ("m", "abx", "text ab"),
        ("m", "abcd", "text abc"),
        ("x-file-1", "zzz", "x-file"),
        ("x-file-url-1", "abc", "x-file-url"),
        ("x-file-1", "abc", "x-file with ab"),
        ("ax-file", "abc", "text abc"),
    ] {
        assert_eq!(told(&agent, sending(id, vec![Part::text(text)])).await, expected, "{id} {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn parts_and_texts_are_looked_into() {
    let agent = script(
        "
rules:
  - {when: {contains: needle, part: file}, do: [completed: needle and file]}
  - {when: {contains: needle}, do: [completed: needle]}
  - {when: {part: data}, do: [completed: data]}
  - {when: {part: file}, do: [completed: file]}
  - {when: {part: text}, do: [completed: text]}
otherwise: [completed: nothing]
",
    )
    .unwrap();
    for (json, expected) in [
        (r#"[{"text":"a"},{"text":"a needle"}]"#, "needle"),
        (r#"[{"text":"a needle"},{"url":"u"}]"#, "needle and file"),
        (r#"[{"text":"a"},{"data":null}]"#, "data"),
        (r#"[{"raw":"AAAA"}]"#, "file"),
        (r#"[{"url":"u"}]"#, "file"),
        (r#"[{"text":"a"}]"#, "text"),
        ("[]", "nothing"),
    ] {
        assert_eq!(told(&agent, parts(json)).await, expected, "{json}");
    }
}

#[tokio::test(start_paused = true)]
async fn turns_are_counted() {
    let agent = script(
        "
rules:
  - {when: {turn: 1}, do: [completed: first]}
  - {when: {min_turn: 3}, do: [completed: third or later]}
otherwise: [completed: second]
",
    )
    .unwrap();
    for (turn, expected) in [(1, "first"), (2, "second"), (3, "third or later"), (9, "third or later")] {
        assert_eq!(told(&agent, Assignment { turn, ..saying("x") }).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn any_of_a_list_of_conditions_will_do() {
    let rules = "
rules:
  - {when: [{message_id: go}, {text: go, turn: 2}], do: [completed: gone]}
  - {when: , do: [completed: all]}
";
    let agent = script(rules).unwrap();
    assert_eq!(told(&agent, sending("go-1", vec![])).await, "gone");
    assert_eq!(told(&agent, saying("go")).await, "all");
    assert_eq!(told(&agent, Assignment { turn: 2, ..saying("go") }).await, "gone");
}
