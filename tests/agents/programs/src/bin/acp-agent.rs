//! An ACP agent on the published types: what it reads must be what the schema says, and so is what it writes.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse, Content, ContentBlock,
    ContentChunk, Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest, LoadSessionResponse,
    NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, PromptCapabilities, PromptRequest, PromptResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, SessionNotification, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
    StopReason, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, Usage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

#[derive(Default)]
struct Agent {
    session: String,
    /// Where it counts its turns, so that a session outlives the process.
    turns: PathBuf,
    mode: String,
    model: String,
    signed_in: bool,
}

fn main() {
    let locked = std::env::var_os("LOCKED").is_some();
    let mut agent = Agent { mode: "ask".into(), model: "small".into(), signed_in: !locked, ..Agent::default() };
    while let Some(message) = next() {
        let (id, params) = (message["id"].clone(), message["params"].clone());
        match message["method"].as_str().unwrap_or_default() {
            "session/new" | "session/load" if !agent.signed_in => {
                say(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "Authentication required"}}),
                );
            }
            "initialize" => answer(&id, hello(&read(params))),
            "authenticate" => {
                agent.signed_in = read::<AuthenticateRequest>(params).method_id.0.as_ref() == "key";
                answer(&id, AuthenticateResponse::new());
            }
            "session/new" => {
                let request: NewSessionRequest = read(params);
                agent.open(format!("s-{}", std::process::id()), request.cwd);
                let opened = NewSessionResponse::new(agent.session.clone()).modes(agent.modes());
                answer(&id, opened.config_options(agent.options()));
            }
            "session/load" => {
                let request: LoadSessionRequest = read(params);
                agent.open(request.session_id.0.to_string(), request.cwd);
                agent.update(SessionUpdate::AgentMessageChunk(text("said before")));
                answer(&id, LoadSessionResponse::new().modes(agent.modes()).config_options(agent.options()));
            }
            "session/set_mode" => {
                agent.mode = read::<SetSessionModeRequest>(params).mode_id.0.to_string();
                answer(&id, SetSessionModeResponse::new());
            }
            "session/set_config_option" => {
                let wanted = params["value"].as_str().unwrap_or_default().to_owned();
                let _: SetSessionConfigOptionRequest = read(params);
                agent.model = wanted;
                answer(&id, SetSessionConfigOptionResponse::new(agent.options()));
            }
            "session/prompt" => {
                agent.prompt(&read(params));
                answer(&id, PromptResponse::new(StopReason::EndTurn).usage(Usage::new(12, 5, 7)));
            }
            _ => {}
        }
    }
}

fn hello(request: &InitializeRequest) -> InitializeResponse {
    assert!(!request.client_capabilities.terminal && !request.client_capabilities.fs.read_text_file);
    let prompts = PromptCapabilities::new().embedded_context(true);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(AgentCapabilities::new().load_session(true).prompt_capabilities(prompts))
        .auth_methods(vec![AuthMethod::Agent(AuthMethodAgent::new("key", "A key"))])
        .agent_info(Implementation::new("schema-agent", "1.0.0"))
}

impl Agent {
    fn open(&mut self, session: String, folder: PathBuf) {
        self.turns = folder.join(&session);
        self.session = session;
    }

    fn modes(&self) -> SessionModeState {
        SessionModeState::new(self.mode.clone(), vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")])
    }

    fn options(&self) -> Vec<SessionConfigOption> {
        let sizes = ["small", "large"].map(|size| SessionConfigSelectOption::new(size, size));
        let model = SessionConfigOption::select("size", "Model", self.model.clone(), sizes.to_vec());
        vec![model.category(SessionConfigOptionCategory::Model)]
    }

    fn update(&self, update: SessionUpdate) {
        let params = SessionNotification::new(self.session.clone(), update);
        say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn prompt(&self, request: &PromptRequest) {
        let turn = std::fs::read_to_string(&self.turns).map_or(0, |turns| turns.len()) + 1;
        std::fs::write(&self.turns, "x".repeat(turn)).expect("the turn is counted");
        let words = match request.prompt.first() {
            Some(ContentBlock::Text(content)) => content.text.as_str(),
            _ => "",
        };
        match words {
            "settings" => self
                .update(SessionUpdate::AgentMessageChunk(text(&format!("mode {}, model {}", self.mode, self.model)))),
            "count" => {
                let kinds: Vec<&str> = request.prompt.iter().map(kind).collect();
                self.update(SessionUpdate::AgentMessageChunk(text(&format!("{}; turn {turn}", kinds.join(", ")))));
            }
            _ => self.everything(),
        }
    }

    fn everything(&self) {
        self.update(SessionUpdate::AgentThoughtChunk(text("let me see")));
        let entry = PlanEntry::new("look", PlanEntryPriority::High, PlanEntryStatus::InProgress);
        self.update(SessionUpdate::Plan(Plan::new(vec![entry])));
        self.update(SessionUpdate::ToolCall(ToolCall::new("t1", "grep").raw_input(json!({"q": "x"}))));
        let found = ToolCallContent::Content(Content::new(ContentBlock::from("found")));
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed).content(vec![found]);
        self.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("t1", fields)));
        let allowed = self.leave();
        self.update(SessionUpdate::AgentMessageChunk(text("Hello, ")));
        self.update(SessionUpdate::AgentMessageChunk(text(&format!("permission: {allowed}"))));
    }

    /// Which option was chosen.
    fn leave(&self) -> String {
        let option = |id: &'static str, kind| PermissionOption::new(id, id, kind);
        let options =
            vec![option("allow", PermissionOptionKind::AllowOnce), option("reject", PermissionOptionKind::RejectOnce)];
        let call = ToolCallUpdate::new("t1", ToolCallUpdateFields::new());
        let params = RequestPermissionRequest::new(self.session.clone(), call, options);
        say(&json!({"jsonrpc": "2.0", "id": "ask", "method": "session/request_permission", "params": params}));
        let answer = next().expect("an answer");
        assert_eq!(answer["id"], "ask");
        match read::<RequestPermissionResponse>(answer["result"].clone()).outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.0.to_string(),
            _ => "none".into(),
        }
    }
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Resource(_) => "resource",
        ContentBlock::ResourceLink(_) => "resource_link",
        _ => "other",
    }
}

fn text(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text))
}

fn read<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params.clone()).unwrap_or_else(|error| panic!("not as the schema has it: {error}: {params}"))
}

fn next() -> Option<Value> {
    let line = std::io::stdin().lock().lines().next()?.ok()?;
    Some(serde_json::from_str(&line).expect("a line of JSON"))
}

fn answer(id: &Value, result: impl Serialize) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").and_then(|()| out.flush()).expect("somebody listens");
}
