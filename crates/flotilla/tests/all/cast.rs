//! The agents the tests call, and hubs that have them.

use flotilla_testkit::{Client, HubProcess, Setup, until};
use serde_json::Value;

/// Agents that end, wait, ask, answer and stream as the first words of a message say.
pub const CONFIG: &str = r#"
hub:
  default_agent: mock
agents:
  echo:
    kind: echo
  mock:
    kind: script
    description: Does what it is told.
    script:
      rules:
        - when: {text: complete}
          do:
            - working: On it
            - artifact: {name: result, text: "You said {text}"}
            - completed: All done
        - when: {text: fail}
          do: [working, {failed: It broke}]
        - when: {text: reject}
          do: [{rejected: Not my job}]
        - when: {text: give up}
          do: [{canceled: I gave up}]
        - when: {text: ask}
          do: [{input_required: Which size?}]
        - when: {text: sign in}
          do: [{auth_required: Please sign in}]
        - when: {text: direct}
          do: [{message: Hello yourself}]
        - when: {text: hold}
          do: [{working: Holding}, {delay: 1h}]
        - when: {text: silence}
          do: [{delay: 1h}, completed]
        - when: {text: pause}
          do: [{delay: "{2}"}, {completed: Rested}]
        - when: {text: work}
          do: [{working: Working}, {delay: "{2}"}, {completed: Worked}]
        - when: {text: chunks}
          do:
            - working
            - artifact: {id: stream, name: stream, chunks: {count: "{2}", text: "chunk {n};"}}
            - completed
        - when: {text: trickle}
          do:
            - working
            - artifact: {id: stream, name: stream, chunks: {count: "{2}", text: "chunk {n};", every: 20ms}}
            - completed
        - when: {min_turn: 2}
          do:
            - artifact: {name: order, text: "{text}, turn {turn}"}
            - completed: Thank you
  plain:
    kind: echo
    description: Takes and makes nothing but plain text.
    input_modes: [text/plain]
    output_modes: [text/plain]
  still:
    kind: echo
    description: Neither streams nor pushes.
    streaming: false
    push_notifications: false
  strict:
    kind: echo
    description: Insists on an extension.
    extensions:
      - {uri: "urn:test:required", required: true}
      - {uri: "urn:test:optional"}
"#;

/// The program under test.
pub fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_flotilla"))
}

/// A fresh hub with all the agents above.
pub fn hub() -> HubProcess {
    setup().config(CONFIG).start()
}

/// A fresh hub with the agents above and more settings.
pub fn hub_with(settings: &str) -> HubProcess {
    setup().config(&format!("{CONFIG}\n{settings}")).start()
}

/// A fresh hub with the agents above and another setting of the hub itself.
pub fn hub_set(setting: &str) -> HubProcess {
    setup().config(&CONFIG.replace("\nhub:\n", &format!("\nhub:\n  {setting}\n"))).start()
}

pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_else(|| panic!("no state in {task}"))
}

pub fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap_or_else(|| panic!("no id in {task}"))
}

/// Waits until a task is in a state.
pub fn reached(client: &Client, id: &str, wanted: &str) -> Value {
    until(&format!("task {id} is {wanted}"), || {
        let task = client.task(id);
        (state(&task) == wanted).then_some(task)
    })
}

/// The text of the first part.
pub fn text(message_or_artifact: &Value) -> &str {
    let part = &message_or_artifact["parts"][0];
    part["text"].as_str().unwrap_or_else(|| panic!("no text in {message_or_artifact}"))
}
