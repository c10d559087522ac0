//! The parts of a message: every kind, in order, with the media type that was asked for.

use super::agent::{Agent, Says, card, task};
use super::program::Place;
use serde_json::{Value, json};

/// Sends to an agent that takes everything; the parts it got.
fn sent(place: &Place, args: &[&str], input: &[u8]) -> Value {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(json!({"task": task("COMPLETED")})));
    let args = [&["send", "-a", &agent.url], args].concat();
    place.run_with_input(&args, input).ok();
    agent.asked()[0].json()["params"]["message"]["parts"].clone()
}

#[test]
fn parts_keep_their_order_and_take_the_media_type_that_follows_them() {
    let place = Place::new();
    let data = place.file("d.json", "{\"n\": 1.0}");
    let blob = place.file("blob", [0, 1, 255]);
    let png = place.file("p.png", "x");
    let args = [
        "--file",
        &blob,
        "--media-type",
        "application/pdf",
        "--text",
        "-dash",
        "--data",
        &data,
        "--file",
        &png,
        "last",
        "--file",
        "https://example.com/x/y.csv?z",
        "--text",
        "# h",
        "--media-type",
        "text/markdown",
    ];
    let parts = sent(&place, &args, b"");
    let expected = json!([
        {"raw": "AAH/", "filename": "blob", "mediaType": "application/pdf"},
        {"text": "-dash"},
        {"data": {"n": 1.0}, "mediaType": "application/json"},
        {"raw": "eA==", "filename": "p.png", "mediaType": "image/png"},
        {"text": "last"},
        {"url": "https://example.com/x/y.csv?z", "filename": "y.csv", "mediaType": "text/csv"},
        {"text": "# h", "mediaType": "text/markdown"},
    ]);
    assert_eq!(parts, expected);
}

#[test]
fn standard_input_is_data_text_or_a_file() {
    let place = Place::new();
    let parts = sent(&place, &["--data", "-"], b" [1, 2]\n");
    assert_eq!(parts, json!([{"data": [1, 2], "mediaType": "application/json"}]));
    assert_eq!(sent(&place, &["-"], b"two\nlines\n"), json!([{"text": "two\nlines"}]));
    let parts = sent(&place, &["--file", "-"], &[0, 255]);
    assert_eq!(parts, json!([{"raw": "AP8=", "mediaType": "application/octet-stream"}]));
}

#[test]
fn mistakes_are_usage_errors_before_anything_is_sent() {
    let place = Place::new();
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(json!({"task": task("COMPLETED")})));
    let bad = place.file("bad.json", "{");
    for args in [
        &["--media-type", "text/plain", "x"][..],
        &[],
        &["--data", &bad],
        &["--file", "./not/there"],
        &["--data", "-", "--file", "-"],
        &["x", "--metadata", "[1]"],
        &["x", "--stream", "--async"],
        &["x", "--poll-interval", "0"],
        &["x", "--timeout", "soon"],
        &["x", "--output", "xml"],
        &["x", "--svc-param", "nothing"],
        &["x", "--svc-param", "Content-Length:5"],
        &["x", "--svc-param", "a2a-version:0.3"],
        &["x", "--transport", "pigeon"],
        &["x", "--a2a-version", "0.2"],
    ] {
        let ran = place.run(&[&["send", "-a", &agent.url], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
    }
    assert_eq!(agent.asked().len(), 0);
}

#[test]
fn metadata_travels_in_the_request_and_service_parameters_beside_it() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(json!({"task": task("COMPLETED")})));
    let args = ["send", "hi", "-a", &agent.url, "--metadata", "{\"k\":{\"n\":1}}", "--svc-param", "x-trace-id:abc:1"];
    Place::new().run(&args).ok();
    let asked = &agent.asked()[0];
    assert_eq!(asked.json()["params"]["metadata"], json!({"k": {"n": 1}}));
    assert_eq!(asked.header("x-trace-id"), Some("abc:1"));
    assert_eq!(asked.json()["params"]["message"].get("metadata"), None);
}

#[test]
fn a_part_has_one_media_type() {
    let place = Place::new();
    let file = place.file("a.bin", "x");
    let twice = ["send", "--file", &file, "--media-type", "a/b", "--media-type", "c/d", "-a", "http://127.0.0.1:1"];
    let ran = place.run(&[&twice[..], &["-o", "json"]].concat());
    assert_eq!((ran.code, ran.error().as_str()), (2, "A2ACLI_ERR_USAGE"));
    assert!(ran.json()["error"]["message"].as_str().is_some_and(|text| text.contains("c/d")), "{ran:?}");
    let each = ["send", "--text", "t", "--media-type", "text/x", "--file", &file, "--media-type", "c/d"];
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(json!({"task": task("COMPLETED")})));
    place.run(&[&each[..], &["-a", &agent.url]].concat()).ok();
}

#[test]
fn every_mistake_comes_with_a_next_step() {
    let place = Place::new();
    let bad = place.file("bad.json", "{");
    place.file("card.json", card(json!({})).to_string());
    for args in [
        &["--file", "/nope"][..],
        &["--data", "/nope"],
        &["--data", &bad],
        &["--file", "-", "--data", "-"],
        &["hi", "--metadata", "[]"],
        &["hi", "--timeout", "soon"],
        &["hi", "--transport", "SOAP", "-a", "card.json"],
        &["hi", "--svc-param", "x"],
    ] {
        let ran = place.run(&[&["send", "-o", "json"], args].concat());
        assert_eq!((ran.code, ran.error().as_str()), (2, "A2ACLI_ERR_USAGE"), "{ran:?}");
        assert!(ran.json()["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{ran:?}");
    }
}
