//! Every kind of step, and exactly what it reports.

use crate::transcript::{saying, script, steps, transcript};

#[tokio::test(start_paused = true)]
async fn states_with_and_without_words() {
    for (step, state) in [
        ("completed", "COMPLETED"),
        ("failed", "FAILED"),
        ("rejected", "REJECTED"),
        ("input_required", "INPUT_REQUIRED"),
        ("auth_required", "AUTH_REQUIRED"),
        ("canceled", "CANCELED"),
    ] {
        assert_eq!(steps(&format!("- {step}"), "x").await, state);
        assert_eq!(steps(&format!("- {step}:"), "x").await, state);
        assert_eq!(steps(&format!("- {step}: so, {{text}}"), "x").await, format!("{state} {{\"text\":\"so, x\"}}"));
    }
    assert_eq!(steps("- working\n- working: hm", "x").await, "WORKING\nWORKING {\"text\":\"hm\"}\nCOMPLETED");
}

#[tokio::test(start_paused = true)]
async fn a_status_can_hold_all_that_a_message_can() {
    let all = r#"
- working:
    text: "one {1}"
    file: {base64: AAAA, name: a.bin}
    data: null
    parts:
      - {text: two, metadata: {lang: "{2}"}}
      - {url: "https://x.example/{1}", mediaType: text/html}
    metadata: {step: "{turn}", n: 1}
- failed: {blocks: [{type: text, text: "{text}"}, {type: thinking, thinking: hm}]}"#;
    let expected = concat!(
        r#"WORKING {"text":"one a"} {"raw":"AAAA","filename":"a.bin"} {"data":null} "#,
        r#"{"text":"two","metadata":{"lang":"b"}} {"url":"https://x.example/a","mediaType":"text/html"} "#,
        r#"metadata {"n":1,"step":"1"}"#,
        "\n",
        r#"FAILED blocks {"text":"a b","type":"text"} {"thinking":"hm","type":"thinking"}"#
    );
    assert_eq!(steps(all, "a b").await, expected);
    let only_metadata = steps("- completed: {metadata: {a: 1}}", "x").await;
    assert_eq!(only_metadata, r#"COMPLETED metadata {"a":1}"#);
}

#[tokio::test(start_paused = true)]
async fn artifacts_of_every_kind() {
    for (artifact, shown) in [
        ("{text: 'hi {text}'}", r#"{"text":"hi x"}"#),
        (
            "{file: {text: tck, name: a.txt, media_type: text/plain}}",
            r#"{"raw":"dGNr","filename":"a.txt","mediaType":"text/plain"}"#,
        ),
        ("{file: {base64: dGNr}}", r#"{"raw":"dGNr"}"#),
        ("{file: {url: 'https://x.example/{text}'}}", r#"{"url":"https://x.example/x"}"#),
        ("{data: {count: 42, key: value}}", r#"{"data":{"count":42,"key":"value"}}"#),
        ("{data: null}", r#"{"data":null}"#),
        ("{data: [1, 2.5, '{text}']}", r#"{"data":[1,2.5,"x"]}"#),
        ("{parts: [{text: a}, {data: 1}]}", r#"{"text":"a"} {"data":1}"#),
        ("{blocks: [{type: hologram, x: 1}]}", r#"blocks {"type":"hologram","x":1}"#),
        (
            "{id: 'a-{text}', name: n, description: d, text: t, metadata: {k: v}, extensions: ['urn:e']}",
            concat!(
                r#"{"artifactId":"a-x","name":"n","description":"d","metadata":{"k":"v"},"extensions":["urn:e"]} "#,
                r#"{"text":"t"}"#
            ),
        ),
    ] {
        assert_eq!(steps(&format!("- artifact: {artifact}"), "x").await, format!("artifact {shown} last\nCOMPLETED"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_artifact_can_grow_by_hand() {
    let grown = "- artifact: {id: a, name: log, text: one, last: false}\n- working\n\
         - artifact: {id: a, text: two, append: true}";
    let expected = concat!(
        r#"artifact {"artifactId":"a","name":"log"} {"text":"one"}"#,
        "\nWORKING\n",
        r#"artifact {"artifactId":"a"} {"text":"two"} append last"#,
        "\nCOMPLETED"
    );
    assert_eq!(steps(grown, "x").await, expected);
}

#[tokio::test(start_paused = true)]
async fn chunks_are_listed_or_counted() {
    let listed = steps("- artifact: {name: c, chunks: ['a{n} ', 'b{n}']}", "x").await;
    let expected = concat!(
        r#"artifact {"name":"c"} {"text":"a1 "}"#,
        "\n",
        r#"artifact {"text":"b2"} append last"#,
        "\nCOMPLETED"
    );
    assert_eq!(listed, expected);
    let one = steps("- artifact: {chunks: [all]}", "x").await;
    assert_eq!(one, "artifact {\"text\":\"all\"} last\nCOMPLETED");
    let counted = "- artifact: {id: c, chunks: {count: '{2}', text: '{n} of {2};'}}";
    let many = steps(counted, "chunks 10000").await;
    let lines: Vec<&str> = many.lines().collect();
    assert_eq!(lines.len(), 10_001);
    assert_eq!(lines[0], r#"artifact {"artifactId":"c"} {"text":"1 of 10000;"}"#);
    assert_eq!(lines[9_999], r#"artifact {"artifactId":"c"} {"text":"10000 of 10000;"} append last"#);
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_none_fails_the_task() {
    let counted = "- working\n- artifact: {chunks: {count: '{2}', text: x}}\n- completed";
    for (text, told) in [("chunks ten", "ten"), ("chunks", ""), ("chunks 0", "0"), ("chunks 1000001", "1000001")] {
        let expected = format!("WORKING\nFAILED {{\"text\":\"'{told}' is not a whole number from 1 to 1000000\"}}");
        assert_eq!(steps(counted, text).await, expected);
    }
    let repeated = steps("- repeat: {times: '{1}', do: [working]}", "often").await;
    assert_eq!(repeated, r#"FAILED {"text":"'often' is not a whole number from 0 to 1000000"}"#);
    let waited = steps("- delay: '{1}'", "long").await;
    assert_eq!(waited, r#"FAILED {"text":"'long' is not a time such as 150ms, 4s or 2m (a day at most)"}"#);
    let block = steps("- blocks: [{type: '{1}'}]", "tool_use").await;
    assert_eq!(block, r#"FAILED {"text":"a content block of type tool_use needs \"id\""}"#);
}

#[tokio::test(start_paused = true)]
async fn delays_take_their_time() {
    assert_eq!(steps("- working\n- delay: 4s\n- completed", "x").await, "WORKING\n+4s\nCOMPLETED");
    assert_eq!(steps("- delay: '{2}'", "wait 150ms").await, "+150ms\nCOMPLETED");
    let slow = steps("- artifact: {chunks: {count: 3, text: '{n}', every: 2m}}", "x").await;
    let expected = "artifact {\"text\":\"1\"}\n+120s\nartifact {\"text\":\"2\"} append\n+120s\n\
                    artifact {\"text\":\"3\"} append last\nCOMPLETED";
    assert_eq!(slow, expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_stands_alone() {
    assert_eq!(steps("- message: hi {1}", "you").await, r#"message {"text":"hi you"}"#);
    let more = "- blocks: [{type: thinking, thinking: hm}]\n- message: {text: a, data: {b: 1}, metadata: {c: d}}";
    let expected = concat!(
        r#"note {"thinking":"hm","type":"thinking"}"#,
        "\n",
        r#"message {"text":"a"} {"data":{"b":1}} metadata {"c":"d"}"#
    );
    assert_eq!(steps(more, "x").await, expected);
}

#[tokio::test(start_paused = true)]
async fn notes_are_for_the_owner() {
    let notes = r#"
- blocks:
    - {type: tool_use, id: "1", name: Bash, input: {command: "echo {text}"}}
    - {type: tool_result, tool_use_id: "1", content: x}
    - {type: something_new}
- progress: {progress: 0.5}
- progress: {progress: 1, total: "{2}", message: "{1} done"}"#;
    let expected = concat!(
        r#"note {"id":"1","input":{"command":"echo all 2"},"name":"Bash","type":"tool_use"} "#,
        r#"{"content":"x","tool_use_id":"1","type":"tool_result"} {"type":"something_new"}"#,
        "\n",
        r#"note {"progress":0.5,"type":"progress"}"#,
        "\n",
        r#"note {"message":"all done","progress":1,"total":2,"type":"progress"}"#,
        "\nCOMPLETED"
    );
    assert_eq!(steps(notes, "all 2").await, expected);
}

#[tokio::test(start_paused = true)]
async fn repeats_count_their_rounds() {
    let nested =
        "- repeat: {times: '{1}', do: [working: 'round {n}', repeat: {times: 2, do: [progress: {progress: '{n}'}]}]}";
    let round = |n| {
        format!(
            "WORKING {{\"text\":\"round {n}\"}}\nnote {{\"progress\":1,\"type\":\"progress\"}}\n\
             note {{\"progress\":2,\"type\":\"progress\"}}\n"
        )
    };
    assert_eq!(steps(nested, "2").await, format!("{}{}COMPLETED", round(1), round(2)));
    assert_eq!(steps("- repeat: {times: 0, do: [working]}", "x").await, "COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn without_steps_a_task_completes() {
    assert_eq!(transcript(&script("otherwise: []").unwrap(), saying("x")).await, "COMPLETED");
    let reply = transcript(&script("rules: []").unwrap(), saying("hello")).await;
    assert_eq!(reply, "artifact {\"name\":\"reply\"} {\"text\":\"hello\"} last\nCOMPLETED");
}
