//! Each keyword of a schema, and what is refused of one.

use super::{malformed, problem, violations};
use flotilla_protocol::fleet::Kind;
use serde_json::json;

#[test]
fn one_that_another_checks_against_may_say_more_but_not_nonsense() {
    let rich = json!({"type": "object", "patternProperties": {"^x": {}}, "properties": {"a": {"format": "date"}},
        "items": [{"type": "string"}], "$ref": "https://example.com/schema"});
    assert!(malformed(&rich).is_none() && problem(&rich).is_some());
    for wrong in [json!({"type": 5}), json!({"required": "nonsense"}), json!({"properties": {"a": {"enum": 1}}})] {
        assert!(malformed(&wrong).is_some(), "{wrong}");
    }
}

#[test]
fn each_keyword_is_checked() {
    for (schema, valid, invalid) in [
        (json!({"type": ["integer", "null"]}), json!(7), json!("x")),
        (json!({"enum": [1, "a"]}), json!("a"), json!(2)),
        (json!({"const": {"a": 1}}), json!({"a": 1}), json!({})),
        (json!({"required": ["a"]}), json!({"a": 1}), json!({})),
        (json!({"properties": {"a": {"type": "string"}}}), json!({"b": 1}), json!({"a": 1})),
        (json!({"additionalProperties": false}), json!({}), json!({"a": 1})),
        (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
        (json!({"maxProperties": 0}), json!({}), json!({"a": 1})),
        (json!({"items": {"type": "number"}}), json!([1, 2.5]), json!([1, "x"])),
        (json!({"minItems": 1}), json!([1]), json!([])),
        (json!({"maxItems": 1}), json!([1]), json!([1, 2])),
        (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
        (
            json!({"uniqueItems": true}),
            json!([1, "1", [1], {"a": 1}]),
            json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}]),
        ),
        (json!({"const": 1}), json!(1.0), json!(true)),
        (json!({"enum": [[0], -2.0]}), json!([0.0]), json!([false])),
        (json!({"enum": [[0], -2.0]}), json!(-2), json!(2)),
        (json!({"minLength": 2}), json!("éé"), json!("é")),
        (json!({"maxLength": 2}), json!("éé"), json!("ééé")),
        (json!({"minimum": 2}), json!(2), json!(1)),
        (json!({"maximum": 2}), json!(2), json!(3)),
        (json!({"exclusiveMinimum": 2}), json!(3), json!(2)),
        (json!({"exclusiveMaximum": 2}), json!(1), json!(2)),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(1), json!(3)),
        (json!({"anyOf": [{"type": "string"}, {"minimum": 5}]}), json!("x"), json!(3)),
        (json!({"oneOf": [{"minimum": 1}, {"maximum": 5}]}), json!(9), json!(3)),
        (json!({"not": {"type": "string"}}), json!(1), json!("x")),
        (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), json!(1), json!("x")),
        (json!({"pattern": "^a+$"}), json!("aa"), json!("ab")),
        (json!({"multipleOf": 3}), json!(9), json!(10)),
        (json!({"multipleOf": 0.01}), json!(19.99), json!(19.995)),
        (json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"const": 1}}), json!(10), json!(2)),
        (json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}}), json!(2), json!(7)),
        (json!({"patternProperties": {"^x": {"type": "string"}}}), json!({"xa": "b", "y": 1}), json!({"xa": 1})),
        (
            json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
            json!({"xa": 1}),
            json!({"xa": 1, "y": 1}),
        ),
        (json!({"propertyNames": {"maxLength": 2}}), json!({"ab": 1}), json!({"abc": 1})),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"c": 1}), json!({"a": 1})),
        (json!({"dependentSchemas": {"a": {"required": ["b"]}}}), json!({"a": 1, "b": 2}), json!({"a": 1})),
        (
            json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
            json!(["a", 1]),
            json!(["a", "b"]),
        ),
        (json!({"contains": {"const": 1}}), json!([2, 1]), json!([2])),
        (json!({"contains": {"const": 1}, "minContains": 0, "maxContains": 1}), json!([]), json!([1, 1])),
        (json!({"format": "email", "title": "x", "x-order": 1, "type": "string"}), json!("no mail"), json!(1)),
        (
            json!({"allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/b"}], "unevaluatedProperties": false,
                "$defs": {"b": {"anyOf": [{"required": ["b"], "properties": {"b": {}}}, {"properties": {"c": {}}}]}}}),
            json!({"a": 1, "b": 2}),
            json!({"a": 1, "d": 2}),
        ),
        (json!({"unevaluatedProperties": {"type": "integer"}}), json!({"a": 1}), json!({"a": "x"})),
        (json!(true), json!(1), json!(null)),
    ] {
        assert_eq!(violations(&schema, &valid), Vec::<String>::new(), "{schema}");
        assert_eq!(violations(&schema, &invalid).is_empty(), schema == json!(true), "{schema}");
    }
    let nested = json!({"properties": {"a": {"items": {"type": "integer"}}}});
    assert_eq!(violations(&nested, &json!({"a": [1, "x"]})), [r#"/a/1: must be of type "integer""#]);
}

#[test]
fn whole_numbers_and_references_may_be_written_in_every_way_there_is() {
    for (schema, valid, invalid) in [
        (json!({"$ref": "#/$defs/a%20%C3%A9~1b", "$defs": {"a é/b": {"type": "integer"}}}), json!(1), json!("x")),
        (json!({"minLength": 2.0, "maxLength": 1e1}), json!("ab"), json!("a")),
        (json!({"contains": {"const": 1}, "maxContains": 1.0}), json!([1]), json!([1, 1])),
    ] {
        assert_eq!(violations(&schema, &valid), Vec::<String>::new(), "{schema}");
        assert_ne!(violations(&schema, &invalid), Vec::<String>::new(), "{schema}");
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    for (schema, told) in [
        (json!({"pattern": "(a"}), "the pattern '(a' cannot be matched here"),
        (json!({"patternProperties": {"(a": {}}}), "the pattern '(a' cannot be matched here"),
        (json!({"properties": {"a": {"unevaluatedItems": {}}}}), "'unevaluatedItems' is not checked here"),
        (json!({"if": 1}), "must be an object"),
        (json!({"multipleOf": 0}), "'multipleOf' must be a number above 0"),
        (json!({"dependentRequired": {"a": "b"}}), "'dependentRequired' must hold lists of names"),
        (json!({"type": "nothing"}), "'type' must be one or more of"),
        (json!({"$ref": "file:///etc/passwd"}), "is elsewhere"),
        (json!({"$ref": "http://127.0.0.1/x"}), "is elsewhere"),
        (json!({"$ref": "#/$defs/n"}), "leads to nothing"),
        (json!({"$ref": "#/$defs/a%20b", "$defs": {"a%20b": {}}}), "leads to nothing"),
        (json!({"$ref": "#/$defs/%FF"}), "is no reference"),
        (json!({"minLength": 2.5}), "'minLength' must be a whole number"),
        (json!({"maxItems": -1.0}), "'maxItems' must be a whole number"),
        (json!({"required": "a"}), "'required' must be a list"),
        (json!({"minimum": "1"}), "'minimum' must be a number"),
        (json!(7), "must be an object"),
    ] {
        let problem = problem(&schema).unwrap_or_default();
        assert!(problem.contains(told), "{schema}: {problem}");
    }
    let many: serde_json::Map<_, _> = (0..201).map(|n| (format!("a{n}"), json!({"pattern": "x"}))).collect();
    assert!(problem(&json!({"properties": many})).is_some_and(|told| told.contains("more than 200 patterns")));
    let mut defs = json!({"d17": false});
    for number in 0..17 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        defs[format!("d{number}")] = json!({"anyOf": [next, next]});
    }
    let maze = json!({"$ref": "#/$defs/d0", "$defs": defs});
    assert!(violations(&maze, &json!(1))[0].contains("steps to check"));
}

/// Whoever writes a schema must not make others wait.
#[test]
fn what_takes_long_to_check_ends() {
    let numbers: Vec<u32> = (0..60_000).collect();
    assert!(violations(&json!({"uniqueItems": true}), &json!(numbers)).is_empty(), "by looking at each once");
    let (known, others) = (&numbers[..2_000], vec![-1; 5_000]);
    let texts = vec!["a".repeat(2_000); 5_000];
    for (schema, reply) in [
        (json!({"items": {"enum": known}}), json!(others)),
        (json!({"items": {"pattern": r"^(a*)*\1(?=b)c$"}}), json!(texts)),
        (json!({"items": {"pattern": format!("^{}$", "(a|aa)?".repeat(250))}}), json!(texts)),
    ] {
        assert!(violations(&schema, &reply)[0].contains("steps to check"));
    }
}

#[test]
fn a_schema_may_refer_to_itself_only_for_parts_of_a_value() {
    for ring in [
        json!({"$ref": "#"}),
        json!({"if": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]},
            "b": {"not": {"$ref": "#/$defs/a"}}}}),
    ] {
        let problem = problem(&ring).unwrap_or_default();
        assert!(problem.contains("refers to itself"), "{ring}: {problem}");
    }
    let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "more": {"items": {"$ref": "#"}}}});
    assert_eq!(problem(&tree), None);
    assert_eq!(violations(&tree, &json!({"left": {"more": [{"left": 1}]}})).len(), 1);
}

#[test]
fn the_hub_s_own_schemas_can_be_asked_for() {
    for kind in Kind::ALL {
        assert_eq!(problem(&kind.schema()), None, "{}", kind.name());
    }
    let result = Kind::Result.schema();
    let told = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done"});
    assert_eq!(violations(&result, &told), Vec::<String>::new());
    let blocked = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "blocked"});
    assert_eq!(violations(&result, &blocked), [r#"the reply: "blocked_reason" is missing"#]);
}
