//! What a script must not say, and how it is told so.

use crate::transcript::script;
use flotilla_worker::script::ScriptConfig;

fn refused(yaml: &str) -> String {
    script(yaml).expect_err(yaml)
}

/// The error for a rule with these steps.
fn steps(steps: &str) -> String {
    refused(&format!("rules: [{{do: [working]}}, {{do: {steps}}}]"))
}

#[test]
fn errors_name_the_place() {
    for (steps_text, expected) in [
        ("[working, artifact: {}]", "rules[1].do[1].artifact: needs `text`, `file`"),
        ("[artifact: {text: a, chunks: [b]}]", "rules[1].do[0].artifact.chunks: stands alone"),
        ("[artifact: {text: a, blocks: [{type: x}]}]", "rules[1].do[0].artifact: takes `blocks` alone"),
        ("[artifact: {chunks: []}]", "rules[1].do[0].artifact.chunks: needs at least one chunk"),
        ("[artifact: {chunks: {count: 0, text: a}}]", "rules[1].do[0].artifact.chunks.count: '0' is not a whole"),
        ("[artifact: {chunks: {count: ten, text: a}}]", "rules[1].do[0].artifact.chunks.count: 'ten' is not"),
        (
            "[artifact: {chunks: {count: 1, text: a, every: 1}}]",
            "rules[1].do[0].artifact.chunks.every: '1' is not a time",
        ),
        ("[artifact: {chunks: [a], append: true, id: x}]", "rules[1].do[0].artifact: takes `chunks`, or"),
        ("[artifact: {text: a, append: true}]", "rules[1].do[0].artifact.append: needs the `id`"),
        ("[artifact: {file: {name: a}}]", "rules[1].do[0].artifact.file: needs one of"),
        ("[artifact: {file: {text: a, url: b}}]", "rules[1].do[0].artifact.file: needs one of"),
        ("[artifact: {file: {base64: '!'}}]", "rules[1].do[0].artifact.file.base64: is not base64"),
        ("[working: {parts: [{text: a}, {txt: b}]}]", "rules[1].do[0].working.parts[1]: `txt` is no field"),
        ("[working: {parts: [{text: a, url: b}]}]", "rules[1].do[0].working.parts[0]: needs one of"),
        ("[completed: '{txet}']", "rules[1].do[0].completed: {txet} is no placeholder"),
        ("[completed: {data: {a: ['{nope}']}}]", "rules[1].do[0].completed.data: {nope} is no placeholder"),
        ("[completed: {metadata: {a: '{n}'}}]", "rules[1].do[0].completed.metadata: {n} has a meaning only"),
        ("[blocks: []]", "rules[1].do[0].blocks: needs at least one block"),
        ("[blocks: [{type: tool_use}]]", "rules[1].do[0].blocks[0]: a content block of type tool_use needs \"id\""),
        ("[blocks: [{text: a}]]", "rules[1].do[0].blocks[0]: a content block needs a \"type\""),
        ("[delay: soon]", "rules[1].do[0].delay: 'soon' is not a time"),
        ("[delay: 4]", "rules[1].do[0].delay: '4' is not a time"),
        ("[progress: {progress: half}]", "rules[1].do[0].progress.progress: 'half' is not a number"),
        ("[repeat: {times: 1000001, do: []}]", "rules[1].do[0].repeat.times: '1000001' is not a whole"),
        ("[repeat: {times: 2, do: [working, delay: x]}]", "rules[1].do[0].repeat.do[1].delay: 'x' is not a time"),
        ("[message: ]", "rules[1].do[0].message: needs a text"),
    ] {
        let error = steps(steps_text);
        assert!(error.starts_with(expected), "{steps_text}\n  gave     {error}\n  expected {expected}");
    }
    assert!(refused("otherwise: [delay: x]").starts_with("otherwise[0].delay: "));
}

#[test]
fn what_cannot_be_reached_is_an_error() {
    for end in ["completed", "failed", "rejected", "input_required", "auth_required", "canceled", "message: a"] {
        let error = steps(&format!("[{end}, delay: 1s]"));
        assert_eq!(error, "rules[1].do[1]: can never be reached: the step before it ends the run");
        let error = steps(&format!("[repeat: {{times: 1, do: [{end}]}}]"));
        assert_eq!(error, "rules[1].do[0].repeat.do[0]: ends the run, so it cannot be repeated");
    }
    for begun in ["working", "artifact: {text: a}", "artifact: {chunks: [a]}", "repeat: {times: 1, do: [working]}"] {
        let error = steps(&format!("[{begun}, delay: 1s, message: a]"));
        assert!(error.starts_with("rules[1].do[2]: a message stands instead of a task"), "{error}");
    }
}

#[test]
fn conditions_are_checked() {
    for (when, expected) in [
        ("{turn: 1, min_turn: 2}", "rules[0].when: takes `turn` or `min_turn`"),
        ("{turn: 0}", "rules[0].when.turn: turns count from 1"),
        ("{text: ''}", "rules[0].when.text: must not be empty"),
        ("[{text: a}, {message_id: ''}]", "rules[0].when[1].message_id: must not be empty"),
        ("[]", "rules[0].when: an empty list matches nothing"),
    ] {
        let error = refused(&format!("rules: [{{when: {when}, do: []}}]"));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn typing_errors_are_errors() {
    for (yaml, expected) in [
        ("rulez: []", "rulez"),
        ("rules: [{when: {}}]", "do"),
        ("rules: [{when: {txt: a}, do: []}]", "txt"),
        ("rules: [{when: [{txt: a}], do: []}]", "txt"),
        ("rules: [{when: {part: image}, do: []}]", "image"),
        ("otherwise: [wroking]", "wroking"),
        ("otherwise: [wroking: a]", "wroking"),
        ("otherwise: [submitted]", "submitted"),
        ("otherwise: [artifact]", "`artifact` needs a value"),
        ("otherwise: [{working: a, delay: 1s}]", "`working` and `delay` are two steps"),
        ("otherwise: [{}]", "a step must not be empty"),
        ("otherwise: [completed: {txt: a}]", "txt"),
        ("otherwise: [completed: [a]]", "nothing, a text, or a map"),
        ("otherwise: [artifact: {txt: a}]", "txt"),
        ("otherwise: [artifact: {file: {path: a}}]", "path"),
        ("otherwise: [artifact: {chunks: {count: 1}}]", "text"),
        ("otherwise: [artifact: {chunks: many}]", "a list of texts or a map of count"),
        ("otherwise: [artifact: {chunks: {count: [], text: a}}]", "a whole number or a placeholder"),
        ("otherwise: [repeat: {times: -1, do: []}]", "a whole number or a placeholder"),
        ("otherwise: [progress: {progress: 1, of: 2}]", "of"),
        ("otherwise: [completed: {metadata: [1]}]", "map"),
    ] {
        let error = refused(yaml);
        assert!(error.contains(expected), "{yaml}\n  gave {error}");
    }
}

#[test]
fn the_schema_knows_every_step() {
    let schema = serde_json::to_string(&schemars::schema_for!(ScriptConfig)).unwrap();
    for name in ["working", "input_required", "artifact", "message", "blocks", "progress", "delay", "repeat"] {
        assert!(schema.contains(&format!("\"{name}\":")), "{name}");
    }
    assert!(
        schema.contains(
            r#""enum":["working","completed","failed","rejected","input_required","auth_required","canceled"]"#
        )
    );
}
