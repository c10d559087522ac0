//! Work is checked again when it comes: what cannot be done here and now is refused before anything is started.

use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
use flotilla_protocol::fleet::announce::McpStatus;
use flotilla_protocol::fleet::result::{BlockedReason, Status, TaskResult};
use flotilla_protocol::fleet::{self, Announce, Dispatch, Found, HANDSHAKE, Handshake, Kind};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{AnyValue, Json};
use flotilla_protocol::work::{Contents, Report};
use std::collections::HashMap;

/// Why work is not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub reason: BlockedReason,
    pub detail: String,
    /// The orchestrator's own number for the work.
    task: Option<String>,
}

/// How things stand when work comes.
pub struct Now<'a> {
    pub profile: Option<&'a Announce>,
    pub working: usize,
    pub places: usize,
    pub time: Millis,
}

/// The contract a message comes under, if it does.
pub fn dispatch(message: &Message) -> Option<Dispatch> {
    let metadata = message.metadata.as_ref()?;
    let members: HashMap<String, Json> = serde_json::from_str(metadata.0.text()).ok()?;
    match fleet::read(members.get(HANDSHAKE)?.text()) {
        Found::Handshake(Handshake::Dispatch(dispatch)) => Some(*dispatch),
        _ => None,
    }
}

/// What stands in the way of it. What was decided on an older profile, and does not hold on this one, is told so.
pub fn objection(dispatch: &Dispatch, now: &Now<'_>) -> Option<Blocked> {
    let (reason, detail) = unmet(dispatch, now)?;
    let moved_on = now.profile.and_then(|profile| profile.epoch).zip(dispatch.epoch);
    let of_profile = !matches!(reason, BlockedReason::DeadlinePassed | BlockedReason::OverCapacity);
    let stale = of_profile && moved_on.is_some_and(|(own, decided_on)| decided_on < own);
    let reason = if stale { BlockedReason::StaleProfile } else { reason };
    Some(Blocked { reason, detail, task: dispatch.task.task_id.clone() })
}

/// Whether it asks for something that may have changed since it was last looked at.
pub fn wants_a_look(dispatch: &Dispatch) -> bool {
    dispatch.requirements.write || !dispatch.requirements.required_mcp.is_empty()
}

fn unmet(dispatch: &Dispatch, now: &Now<'_>) -> Option<(BlockedReason, String)> {
    if let Some(deadline) = dispatch.deadline.filter(|deadline| *deadline <= now.time) {
        return Some((BlockedReason::DeadlinePassed, format!("the deadline has passed ({deadline})")));
    }
    if now.working >= now.places {
        return Some((BlockedReason::OverCapacity, format!("it has {} runs, as many as it takes", now.working)));
    }
    let (profile, needs) = (now.profile?, &dispatch.requirements);
    for server in &needs.required_mcp {
        let told = match profile.mcp(server) {
            Some(McpStatus::Ok) => continue,
            // Nobody knows, and the hub has said so to its orchestrator.
            Some(McpStatus::Unknown) => continue,
            Some(status) => status.name(),
            None => "not there",
        };
        return Some((BlockedReason::MissingMcp, format!("MCP server {server}: {told}")));
    }
    let unverified = |tool: &str| dispatch.unverified.iter().any(|told| told.ends_with(tool));
    let missing = needs.required_capabilities.iter().find(|tool| !profile.has_tool(tool) && !unverified(tool));
    if let Some(tool) = missing {
        return Some((BlockedReason::MissingCapability, format!("tool {tool}: not there")));
    }
    let dirty = profile.session.repo_state.as_ref().is_some_and(|state| state.clean == Some(false));
    (needs.write && dirty).then(|| (BlockedReason::DirtyTree, "files in its repository are not committed".to_owned()))
}

impl Blocked {
    /// As the hub and its orchestrator read it.
    pub fn reports(&self) -> Vec<Report> {
        let result = TaskResult {
            task_id: self.task.clone(),
            status: Status::Blocked,
            blocked_reason: Some(self.reason.clone()),
            detail: Some(self.detail.clone()),
            retryable: Some(matches!(self.reason, BlockedReason::OverCapacity | BlockedReason::StaleProfile)),
            ..TaskResult::default()
        };
        let data = AnyValue(Json::of(&result).ok());
        let part = Part { data, media_type: Kind::Result.media_type().to_owned(), ..Part::default() };
        let artifact =
            Artifact { artifact_id: "task-result".into(), name: "TASK_RESULT".into(), ..Artifact::default() };
        let said = Contents::text(format!("The work was not begun: {} ({}).", self.detail, self.reason.name()));
        vec![
            Report::Artifact {
                artifact: Box::new(artifact),
                contents: Contents::Parts(vec![part]),
                append: false,
                last_chunk: true,
                metadata: None,
            },
            Report::Status { state: TaskState::Rejected, contents: Some(said), metadata: None },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Now, dispatch, objection};
    use flotilla_protocol::a2a::model::Message;
    use flotilla_protocol::fleet::{self, Announce, HANDSHAKE};
    use flotilla_protocol::time::Millis;
    use flotilla_protocol::wire::Object;
    use serde_json::{Value, json};

    fn profile() -> Announce {
        let announce = json!({
            "type": "SESSION_ANNOUNCE", "protocol_version": "2.0", "epoch": 7, "worker": {"agent_id": "w"},
            "capabilities": {"tools": ["Bash"], "mcp_servers": ["docs", "mail", "new"]},
            "mcp_health": {"docs": "ok", "mail": "timeout"}, "session": {"repo_state": {"clean": false}},
        });
        *fleet::announcement(&announce.to_string()).expect("an announcement")
    }

    /// Why a contract with these members is refused.
    fn told(more: Value, working: usize) -> String {
        let mut contract = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "do it", "epoch": 7});
        for (name, value) in more.as_object().expect("members") {
            contract[name] = value.clone();
        }
        let metadata = Some(Object::of(&json!({HANDSHAKE: contract})).expect("JSON"));
        let dispatch = dispatch(&Message { metadata, ..Message::default() }).expect("a dispatch");
        let (profile, time) = (profile(), Millis(1_800_000_000_000));
        let blocked = objection(&dispatch, &Now { profile: Some(&profile), working, places: 2, time });
        blocked.map_or_else(
            || "taken".into(),
            |blocked| {
                assert_eq!(blocked.reports().len(), 2);
                format!("{}: {}", blocked.reason.name(), blocked.detail)
            },
        )
    }

    #[test]
    fn what_is_met_is_taken_and_what_is_not_is_named() {
        let needs = |requirements: Value| json!({"requirements": requirements});
        assert_eq!(
            told(needs(json!({"required_mcp": ["docs", "new"], "required_capabilities": ["terminal"]})), 0),
            "taken"
        );
        assert_eq!(told(needs(json!({"required_mcp": ["mail"]})), 0), "missing_mcp: MCP server mail: timeout");
        assert_eq!(told(needs(json!({"required_mcp": ["trek"]})), 0), "missing_mcp: MCP server trek: not there");
        assert_eq!(
            told(needs(json!({"required_capabilities": ["browser"]})), 0),
            "missing_capability: tool browser: not there"
        );
        assert!(told(needs(json!({"write": true})), 0).starts_with("dirty_tree"));
        assert!(told(json!({"deadline": "2026-05-31T21:00:00Z"}), 0).starts_with("deadline_passed"));
        assert!(told(json!({}), 2).starts_with("over_capacity"));
        assert_eq!(
            told(json!({"epoch": 3, "requirements": {"required_mcp": ["mail"]}}), 0),
            "stale_profile: MCP server mail: timeout"
        );
        assert_eq!(told(json!({"epoch": 3}), 0), "taken", "it moved on in no way that matters");
    }

    #[test]
    fn a_message_without_a_contract_is_just_a_message() {
        assert_eq!(dispatch(&Message::default()), None);
        let metadata = Some(Object::of(&json!({"k": 1})).expect("JSON"));
        assert_eq!(dispatch(&Message { metadata, ..Message::default() }), None);
    }
}
