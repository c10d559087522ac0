//! Every operation, over every binding, by everybody who might ask: what each of them is told, and that nothing moves.

use super::isolation::{NOWHERE, bare};
use crate::cast::{id, setup};
use flotilla_protocol::a2a::method::Method;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal, until};
use serde_json::{Value, json};

/// One agent of each visibility, all of them olga's of the default workspace, where anonymous callers are too. Their tasks
/// wait for an answer.
const AGENTS: &str = r#"
hub: {allow_anonymous: true}
agents:
  echo: {kind: echo}
  private: {kind: script, owner: olga, visibility: private, extended: {contact: Ask olga}, script: {otherwise: [{input_required: More?}]}}
  workspace: {kind: script, owner: olga, visibility: workspace, extended: {contact: Ask olga}, script: {otherwise: [{input_required: More?}]}}
  public: {kind: script, owner: olga, visibility: public, extended: {contact: Ask olga}, script: {otherwise: [{input_required: More?}]}}
"#;

/// Who asks about a task. Each differs from its caller in one thing only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Owns the agent.
    Owner,
    /// Called the agent: the task is theirs.
    Caller,
    /// Another principal of the caller's workspace.
    Sibling,
    /// A principal of the caller's name in another workspace.
    Namesake,
    /// The caller, with a key that was revoked.
    Revoked,
    /// The caller, with a key that has every scope but the one that is needed.
    WithoutScope,
    Anonymous,
}

const EVERYBODY: [Who; 7] =
    [Who::Owner, Who::Caller, Who::Sibling, Who::Namesake, Who::Revoked, Who::WithoutScope, Who::Anonymous];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// What they asked for, of their own.
    Served,
    NoTask,
    NoAgent,
    NoRight,
    NoKey,
}

/// What an operation is about; a new one does not compile until it is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// The task it names.
    Task,
    /// A push config of the task it names.
    Push,
    /// The caller and the agent.
    Caller,
    /// What only those with a key learn of the agent.
    Card,
}

fn about(method: Method) -> (About, &'static str) {
    match method {
        Method::SendMessage | Method::SendStreamingMessage | Method::CancelTask => (About::Task, "tasks:write"),
        Method::GetTask | Method::SubscribeToTask => (About::Task, "tasks:read"),
        Method::ListTasks => (About::Caller, "tasks:read"),
        Method::CreatePushConfig | Method::GetPushConfig | Method::ListPushConfigs | Method::DeletePushConfig => {
            (About::Push, "push:write")
        }
        Method::GetExtendedAgentCard => (About::Card, "agents:read"),
    }
}

fn params(method: Method, task: &str) -> Value {
    match method {
        Method::SendMessage | Method::SendStreamingMessage => {
            let mut answer = message("answer", "hello");
            answer["message"]["taskId"] = json!(task);
            answer
        }
        Method::GetTask | Method::CancelTask | Method::SubscribeToTask => json!({"id": task}),
        Method::ListTasks | Method::GetExtendedAgentCard => json!({}),
        Method::CreatePushConfig => json!({"taskId": task, "id": "c", "url": "https://webhooks.invalid"}),
        Method::ListPushConfigs => json!({"taskId": task}),
        Method::GetPushConfig | Method::DeletePushConfig => json!({"taskId": task, "id": "c"}),
    }
}

fn expected(who: Who, agent: &str, about: About) -> Told {
    match (who, agent) {
        (Who::Caller, _) => Told::Served,
        (Who::Revoked, _) => Told::NoKey,
        (Who::WithoutScope, _) => Told::NoRight,
        // The only one who can call a private agent is its owner.
        (Who::Owner, "private") => Told::Served,
        (Who::Sibling, "private") | (Who::Namesake | Who::Anonymous, "private" | "workspace") => Told::NoAgent,
        (Who::Anonymous, _) if about == About::Card => Told::NoKey,
        _ if matches!(about, About::Caller | About::Card) => Told::Served,
        _ => Told::NoTask,
    }
}

/// Asks, and reads no further than the first frame of a stream.
fn ask(client: &Client, method: Method, params: &Value) -> Result<Value, Refusal> {
    match method {
        Method::SubscribeToTask | Method::SendStreamingMessage => {
            client.stream(method.name(), params).map(|mut stream| stream.expect().frame())
        }
        _ => client.call(method.name(), params),
    }
}

fn told(answer: &Result<Value, Refusal>) -> Told {
    match answer.as_ref().map_err(|refusal| refusal.reason.as_str()) {
        Err("TASK_NOT_FOUND") => Told::NoTask,
        Err("AGENT_NOT_FOUND") => Told::NoAgent,
        Err("PERMISSION_DENIED") => Told::NoRight,
        Err("UNAUTHENTICATED") => Told::NoKey,
        Ok(_) => Told::Served,
        Err(other) => panic!("{other}: {answer:?}"),
    }
}

const SCOPES: [&str; 4] = ["agents:read", "tasks:read", "tasks:write", "push:write"];

/// The keys of everybody who asks; the caller's name is `name`.
struct Cast {
    caller: String,
    owner: String,
    sibling: String,
    namesake: String,
    revoked: String,
    without: Vec<(&'static str, String)>,
}

impl Cast {
    fn new(hub: &HubProcess, name: &str) -> Self {
        let key = |args: &[&str]| hub.make_key(args);
        let gone = key(&["gone", "--principal", name]);
        let others =
            |left_out: &str| SCOPES.into_iter().filter(|scope| *scope != left_out).collect::<Vec<_>>().join(",");
        let cast = Self {
            caller: key(&[name]),
            owner: key(&["owners-key", "--principal", "olga"]),
            sibling: key(&["sam"]),
            namesake: key(&[&format!("other/{name}")]),
            without: SCOPES
                .into_iter()
                .enumerate()
                .map(|(index, scope)| {
                    let key_name = format!("less-{index}");
                    (scope, key(&[&key_name, "--principal", name, "--scope", &others(scope)]))
                })
                .collect(),
            revoked: gone.clone(),
        };
        hub.stranger(Binding::HttpJson).key(&gone).agent("public").call("ListTasks", &json!({})).expect("let in");
        hub.cli_ok(&["keys", "revoke", "gone"]);
        let gone = hub.stranger(Binding::HttpJson).key(&gone);
        until("the hub knows of the revocation", || (gone.get("/tasks").status == 401).then_some(()));
        cast
    }

    fn client(&self, who: Who, scope: &str, stranger: Client) -> Client {
        let lacks = |lacked: &&(&'static str, String)| lacked.0 == scope;
        match who {
            Who::Owner => stranger.key(&self.owner),
            Who::Caller => stranger.key(&self.caller),
            Who::Sibling => stranger.key(&self.sibling),
            Who::Namesake => stranger.key(&self.namesake),
            Who::Revoked => stranger.key(&self.revoked),
            Who::WithoutScope => stranger.key(&self.without.iter().find(lacks).expect("a scope").1),
            Who::Anonymous => stranger,
        }
    }
}

fn play(agent: &str, caller: &str) {
    let hub = setup().config(AGENTS).start();
    let cast = Cast::new(&hub, caller);
    let current = Binding::ALL.map(|binding| (binding, hub.stranger(binding).agent(agent)));
    let old = Binding::JSON.map(|binding| (binding, hub.stranger(binding).agent(agent).in_03()));
    let socket = (Binding::JsonRpc, hub.stranger(Binding::JsonRpc).agent(agent).over_socket());
    for (binding, stranger) in current.into_iter().chain([socket]).chain(old) {
        let caller = cast.client(Who::Caller, "", stranger.clone());
        for method in Method::ALL {
            // HTTP+JSON of 0.3 has the card there, which is for whoever sees the agent.
            if stranger.old && binding == Binding::HttpJson && method == Method::GetExtendedAgentCard {
                continue;
            }
            let (about, scope) = about(method);
            for who in EVERYBODY {
                let door = match (stranger.old, stranger.socket) {
                    (true, _) => "0.3",
                    (false, true) => "the socket",
                    (false, false) => "1.0",
                };
                let cell = format!("{who:?} {method:?} {binding:?} {agent} {door}");
                let task = caller.say(&cell, "hello");
                let has_config = about == About::Push && method != Method::CreatePushConfig;
                if has_config {
                    let config = params(Method::CreatePushConfig, id(&task));
                    caller.call(Method::CreatePushConfig.name(), &config).expect("a config of the caller's");
                }
                let client = cast.client(who, scope, stranger.clone());
                let answer = ask(&client, method, &params(method, id(&task)));
                let due = expected(who, agent, about);
                assert_eq!(told(&answer), due, "{cell}: {answer:?}");
                if who == Who::Caller || (who, agent) == (Who::Owner, "private") {
                    continue;
                }
                assert!(!format!("{answer:?}").contains("More?"), "{cell}: {answer:?}");
                let told_more = format!("{answer:?}").contains("Ask olga");
                assert_eq!(told_more, due == Told::Served && about == About::Card, "{cell}: {answer:?}");
                if due == Told::NoTask {
                    alike(&client, method, id(&task), &cell);
                }
                if due != Told::Served || matches!(about, About::Caller | About::Card) {
                    assert_eq!(caller.task(id(&task)), task, "{cell}: nobody has touched it");
                    let configs = caller.call("ListTaskPushNotificationConfigs", &json!({"taskId": id(&task)}));
                    let configs = configs.expect("the caller's own")["configs"].as_array().map_or(0, Vec::len);
                    assert_eq!(configs, usize::from(has_config), "{cell}: and nobody its webhooks");
                }
            }
        }
    }
}

/// "Not yours" is, byte for byte, "not there".
fn alike(client: &Client, method: Method, task: &str, cell: &str) {
    let response = |task: &str| client.response(method.name(), &params(method, task));
    assert_eq!(bare(&response(task), task), bare(&response(NOWHERE), NOWHERE), "{cell}");
}

#[test]
fn a_public_agents_tasks_are_their_callers_alone() {
    play("public", "carol");
}

#[test]
fn a_workspaces_agent_is_there_for_the_workspace_alone() {
    play("workspace", "carol");
}

#[test]
fn a_private_agent_is_there_for_its_owner_alone() {
    play("private", "olga");
}
