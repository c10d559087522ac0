//! What only gRPC has: deadlines, metadata, framing, size limits, health, and numbers that are doubles.

use crate::cast::{hub, id, reached, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, HubProcess, grpc, http, until};
use prost::Message as _;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

const SEND: &str = "/lf.a2a.v1.A2AService/SendMessage";

fn metadata(hub: &HubProcess) -> Vec<(String, String)> {
    let key = hub.key("raw", &[]);
    vec![("a2a-version".into(), "1.0".into()), ("authorization".into(), format!("Bearer {key}"))]
}

/// The ErrorInfo's reason of a refusal.
fn reason(raised: &grpc::Raised) -> String {
    let status = flotilla_grpc::rpc::Status::decode(raised.details.as_slice()).expect("a google.rpc.Status");
    flotilla_grpc::rpc::ErrorInfo::decode(status.details[0].value.as_slice()).expect("an ErrorInfo").reason
}

#[test]
fn a_deadline_ends_the_call_and_leaves_the_task() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc);
    let started = Instant::now();
    let asked = owner.metadata_with("grpc-timeout", "200m");
    let body = request(&message("m", "work 2s"));
    let raised = grpc::refused(owner.address, &asked, SEND, body);
    assert_eq!(raised.code, 4, "{}", raised.message);
    assert!(started.elapsed() < Duration::from_millis(1900), "the caller is not kept waiting");
    assert!(raised.message.contains("GetTask"), "what to do is said: {}", raised.message);
    assert_eq!(reason(&raised), "DEADLINE_EXCEEDED");
    assert!(raised.metadata.contains(&("a2a-version".into(), "1.0".into())), "{:?}", raised.metadata);
    let task = owner.call("ListTasks", &json!({})).expect("a list")["tasks"][0].clone();
    let ended = reached(&owner, id(&task), "TASK_STATE_COMPLETED");
    let again = owner.call("SendMessage", &message("m", "work 2s")).expect("the same task");
    assert_eq!(id(&again["task"]), id(&ended), "the same message gets the same task");
}

#[test]
fn nothing_is_begun_for_a_call_whose_deadline_is_over() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc);
    let raised =
        grpc::refused(owner.address, &owner.metadata_with("grpc-timeout", "0n"), SEND, request(&message("m", "hold")));
    assert!(raised.code == 4 && raised.message.contains("nothing was begun"), "{}", raised.message);
    assert_eq!(owner.call("ListTasks", &json!({})).expect("a list")["totalSize"], 0);
}

#[test]
fn the_deadline_of_a_stream_ends_it_and_not_the_task() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc);
    let impatient = owner.clone().header("grpc-timeout", "300m");
    let mut stream = impatient.stream("SendStreamingMessage", &message("m", "hold")).expect("a stream");
    let first = stream.expect();
    let task = first.frame()["task"]["id"].as_str().expect("an id").to_owned();
    while let Some(event) = stream.block() {
        assert!(event.comment.is_none_or(|comment| comment.contains("deadline")));
    }
    assert!(!stream.cut);
    let ended = stream.status().expect("a status");
    assert_eq!((ended.status.as_deref(), ended.reason.as_str()), (Some("DEADLINE_EXCEEDED"), "DEADLINE_EXCEEDED"));
    assert_eq!(state(&owner.task(&task)), "TASK_STATE_WORKING");
}

#[test]
fn a_deadline_that_is_none_is_refused() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc).header("grpc-timeout", "soon");
    let refusal = owner.call("ListTasks", &json!({})).expect_err("refused");
    assert_eq!(refusal.fields(), ["grpc-timeout"]);
}

#[test]
fn the_agent_is_named_by_tenant_or_metadata_and_both_must_agree() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc);
    let mut params = message("m1", "hello");
    params["tenant"] = json!("echo");
    owner.call("SendMessage", &params).expect("by tenant");
    let echo = owner.clone().agent("echo");
    echo.call("SendMessage", &message("m2", "hello")).expect("by metadata");
    assert_eq!(echo.call("ListTasks", &json!({})).expect("a list")["totalSize"], 2);
    params["tenant"] = json!("plain");
    let refusal = echo.call("SendMessage", &params).expect_err("refused");
    assert_eq!(refusal.fields(), ["tenant"]);
    assert!(!refusal.message.contains("path"), "there is no path here: {}", refusal.message);
}

#[test]
fn numbers_are_doubles_and_said_so() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc).agent("echo");
    let mut params = message("m", "x");
    let data = json!({"whole": 42, "part": 0.1, "large": 9_007_199_254_740_993_u64, "negative": -7, "none": null});
    params["message"]["parts"] = json!([{"data": data}]);
    let task = owner.call("SendMessage", &params).expect("sent")["task"].clone();
    let read = owner.through(Binding::JsonRpc).task(id(&task));
    let kept = &read["artifacts"][0]["parts"][0]["data"];
    assert_eq!(kept["whole"].to_string(), "42", "a whole number stays one");
    assert_eq!((&kept["part"], &kept["negative"], &kept["none"]), (&json!(0.1), &json!(-7), &Value::Null));
    assert_eq!(kept["large"].to_string(), "9007199254740992", "the double next to it: protobuf has no other number");
}

#[test]
fn what_json_callers_sent_is_read_over_grpc() {
    let hub = hub();
    let json_caller = hub.owner(Binding::JsonRpc).agent("echo");
    let params =
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"n":1e2,"deep":[[{"a":1.50}]]}}]}}"#;
    let sent = json_caller.call_text("SendMessage", params).expect("sent")["task"].clone();
    let read = json_caller.through(Binding::Grpc).task(id(&sent));
    assert_eq!(read["artifacts"][0]["parts"][0]["data"], json!({"n": 100, "deep": [[{"a": 1.5}]]}));
}

/// A request as bytes, made from its JSON.
fn request(params: &Value) -> Vec<u8> {
    grpc::encoded("SendMessage", params)
}

#[test]
fn bytes_that_are_no_message_are_refused_and_the_hub_lives() {
    let hub = hub();
    let metadata = metadata(&hub);
    for bytes in [vec![0xff; 40], vec![0x12, 0x7f, 0x00], vec![0x0a, 0x02, 0xc3, 0x28]] {
        let raised = grpc::refused(hub.address(), &metadata, SEND, bytes);
        assert_eq!((raised.code, reason(&raised).as_str()), (3, "INVALID_PARAMS"), "{}", raised.message);
    }
    let raised = grpc::refused(hub.address(), &metadata, SEND, Vec::new());
    assert_eq!((raised.code, reason(&raised).as_str()), (3, "INVALID_PARAMS"), "an empty request lacks its message");
    assert_eq!(hub.owner(Binding::Grpc).call("ListTasks", &json!({})).expect("alive")["totalSize"], 0);
}

#[test]
fn protobuf_has_a_limit_of_nesting_of_its_own() {
    let hub = hub();
    // Protobuf's own limit ends this before anything is read: message, part and data of a value in many lists.
    let metadata = metadata(&hub);
    for levels in [100, 20_000] {
        let value = (0..levels).fold(Vec::new(), |inner, _| wrapped(6, &wrapped(1, &inner)));
        let bytes = wrapped(2, &wrapped(5, &wrapped(4, &value)));
        let raised = grpc::refused(hub.address(), &metadata, SEND, bytes);
        assert_eq!((raised.code, reason(&raised).as_str()), (3, "INVALID_PARAMS"), "{}", raised.message);
    }
}

/// A field that holds a message.
fn wrapped(field: u8, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![field << 3 | 2];
    prost::encoding::encode_varint(message.len() as u64, &mut bytes);
    bytes.extend_from_slice(message);
    bytes
}

#[test]
fn what_is_not_there_is_unimplemented() {
    let hub = hub();
    let metadata = metadata(&hub);
    for path in ["/lf.a2a.v1.A2AService/Nothing", "/nobody.Service/Call"] {
        let raised = grpc::refused(hub.address(), &metadata, path, Vec::new());
        assert_eq!((raised.code, reason(&raised).as_str()), (12, "METHOD_NOT_FOUND"), "{path}");
        assert!(raised.message.contains("A2AService") || raised.message.contains("SendMessage"), "{}", raised.message);
    }
}

#[test]
fn compressed_messages_are_refused_naming_what_is_read() {
    let hub = hub();
    let raised = grpc::compressed(hub.address(), &metadata(&hub), SEND, request(&message("m", "hello")));
    assert_eq!((raised.code, reason(&raised).as_str()), (12, "COMPRESSION_NOT_SUPPORTED"));
    assert!(raised.message.contains("gzip") && raised.message.contains("identity"), "{}", raised.message);
    let taken = raised.metadata.iter().find(|(name, _)| name == "grpc-accept-encoding");
    assert_eq!(taken.map(|(_, value)| value.as_str()), Some("identity"), "{:?}", raised.metadata);
}

#[test]
fn grpc_over_http1_and_other_types_at_its_path_are_told_so() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let plain = owner.send(http::Request::post(SEND, "{}").header("content-type", "application/json"));
    assert_eq!(plain.status, 415);
    assert!(plain.text().contains("application/grpc"), "{}", plain.text());
    let old = owner.send(http::Request::post(SEND, "").header("content-type", "application/grpc"));
    assert_eq!((old.status, old.header("grpc-status")), (200, Some("3")));
    assert!(old.header("grpc-message").expect("a message").contains("HTTP/2"));
    let get = owner.send(http::Request::get(SEND).header("content-type", "application/grpc"));
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
}

#[test]
fn an_agent_is_named_once() {
    let hub = hub();
    let known = metadata(&hub);
    let named = |names: [&str; 2]| {
        let names = names.map(|name| ("agent-name".to_owned(), name.to_owned()));
        let metadata = [known.clone(), names.to_vec()].concat();
        grpc::refused(hub.address(), &metadata, SEND, request(&message("m", "complete")))
    };
    let raised = named(["mock", "echo"]);
    assert!(raised.code == 3 && raised.message.contains("several agents"), "{} {}", raised.code, raised.message);
    let unnamed = hub.owner(Binding::Grpc).agent("").call("SendMessage", &message("m2", "complete"));
    unnamed.expect("the default agent, as with an empty tenant");
    let raised = named(["nobody", "nobody"]);
    assert!(!raised.message.contains("several"), "twice the same is once: {}", raised.message);
}

#[test]
fn a_method_that_health_or_reflection_lack_is_told_with_those_there_are() {
    let hub = hub();
    for (path, known) in [
        ("/grpc.health.v1.Health/List", "Check, Watch"),
        ("/grpc.reflection.v1.ServerReflection/Reflect", "ServerReflectionInfo"),
        ("/grpc.reflection.v1alpha.ServerReflection/Reflect", "ServerReflectionInfo"),
    ] {
        let raised = grpc::refused(hub.address(), &[], path, Vec::new());
        assert!(raised.code == 12 && raised.message.contains(known), "{path}: {} {}", raised.code, raised.message);
    }
}

#[test]
fn health_says_what_readyz_says() {
    let mut hub = crate::cast::hub_set("drain: 2s");
    assert_eq!(grpc::health(hub.address(), ""), Ok(1), "SERVING");
    assert_eq!(grpc::health(hub.address(), "lf.a2a.v1.A2AService"), Ok(1));
    assert_eq!(grpc::health(hub.address(), "nobody.Service"), Err(5), "NOT_FOUND");
    let mut watched = grpc::watch_health(hub.address(), "");
    assert_eq!(watched.state(), Some(1));
    hub.owner(Binding::JsonRpc).start("m", "hold");
    hub.signal("TERM");
    assert_eq!(watched.state(), Some(2), "NOT_SERVING as soon as the hub stops");
    assert_eq!(watched.state(), None);
    assert!(hub.ended().success());
}

#[test]
fn a_watch_over_what_is_not_there_says_so_and_stays() {
    let mut hub = hub();
    let mut watched = grpc::watch_health(hub.address(), "nobody.Service");
    assert_eq!(watched.state(), Some(3), "SERVICE_UNKNOWN");
    assert!(watched.is_open());
    hub.signal("TERM");
    assert_eq!(watched.state(), None);
    assert!(hub.ended().success());
}

#[test]
fn reflection_tells_what_is_not_there_and_goes_on() {
    let hub = hub();
    let ask = |request: MessageRequest| {
        ServerReflectionRequest { host: "h".into(), message_request: Some(request) }.encode_to_vec()
    };
    let questions = vec![
        ask(MessageRequest::FileContainingSymbol("no.such.Thing".into())),
        ask(MessageRequest::FileByFilename("no.proto".into())),
        ServerReflectionRequest::default().encode_to_vec(),
        ask(MessageRequest::FileContainingSymbol("lf.a2a.v1.A2AService.SendMessage".into())),
        ask(MessageRequest::FileContainingSymbol("grpc.health.v1.HealthCheckResponse.ServingStatus".into())),
        ask(MessageRequest::AllExtensionNumbersOfType("lf.a2a.v1.Task".into())),
        ask(MessageRequest::ListServices(String::new())),
    ];
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let (answers, status) = grpc::converse(hub.address(), &path, questions.clone());
        assert_eq!((answers.len(), status), (questions.len(), 0), "{version}");
        let answers: Vec<_> = answers
            .into_iter()
            .map(|answer| ServerReflectionResponse::decode(answer).expect("an answer"))
            .map(|answer| (answer.original_request.expect("the question").encode_to_vec(), answer.message_response))
            .collect();
        let asked: Vec<_> = answers.iter().map(|(asked, _)| asked.clone()).collect();
        assert_eq!(asked, questions, "each answer repeats its question");
        let told = |at: usize| answers[at].1.clone().expect("an answer");
        for (at, code) in [(0, 5), (1, 5), (2, 3)] {
            assert!(matches!(told(at), MessageResponse::ErrorResponse(error) if error.error_code == code), "{at}");
        }
        for at in [3, 4] {
            let MessageResponse::FileDescriptorResponse(found) = told(at) else { panic!("no file: {:?}", told(at)) };
            assert_eq!(found.file_descriptor_proto.len(), 1);
        }
        assert!(
            matches!(told(5), MessageResponse::AllExtensionNumbersResponse(all) if all.extension_number.is_empty())
        );
        let MessageResponse::ListServicesResponse(list) = told(6) else { panic!("no list: {:?}", told(6)) };
        let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
        assert!(names.contains(&"lf.a2a.v1.A2AService") && names.contains(&"grpc.health.v1.Health"), "{names:?}");
    }
}

#[test]
fn a_stopping_hub_ends_streams_with_details_too() {
    let mut hub = crate::cast::hub_set("drain: 1s");
    let owner = hub.owner(Binding::Grpc);
    let mut stream = owner.stream("SendStreamingMessage", &message("m", "hold")).expect("a stream");
    stream.expect();
    hub.signal("TERM");
    stream.rest();
    let ended = stream.status().expect("a status");
    assert_eq!((ended.status.as_deref(), ended.reason.as_str()), (Some("UNAVAILABLE"), "UNAVAILABLE"));
    assert!(hub.ended().success());
}

#[test]
fn a_hung_up_stream_is_forgotten() {
    let hub = hub();
    let owner = hub.owner(Binding::Grpc);
    let open = || {
        let metrics = hub.owner(Binding::HttpJson).get("/metrics");
        let line = metrics.text().lines().find(|line| line.starts_with("flotilla_streams_open ")).map(str::to_owned);
        line.and_then(|line| line.rsplit_once(' ').map(|(_, count)| count.to_owned()))
    };
    let mut stream = owner.stream("SendStreamingMessage", &message("m", "hold")).expect("a stream");
    stream.expect();
    until("the stream is counted", || (open().as_deref() == Some("1")).then_some(()));
    drop(stream);
    until("the stream is gone", || (open().as_deref() == Some("0")).then_some(()));
}

#[test]
fn metadata_of_a_refusal_says_the_version() {
    let hub = hub();
    let raised = grpc::refused(hub.address(), &metadata(&hub), SEND, Vec::new());
    assert!(raised.metadata.contains(&("a2a-version".into(), "1.0".into())));
}
