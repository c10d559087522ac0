//! Paths of the HTTP+JSON binding (spec 11.3) as operations.

use http::Method;

/// What a path and a verb ask for. One per operation: a new operation does not compile until it has a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Send,
    Stream,
    List,
    Get(String),
    Cancel(String),
    Subscribe(String),
    CreatePush(String),
    ListPush(String),
    GetPush(String, String),
    DeletePush(String, String),
    ExtendedCard,
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    NoSuchPath,
    /// The path is one of ours, but not with this verb.
    Verb(&'static str),
}

const PUSH: &str = "pushNotificationConfigs";

/// Whether the rest of a path belongs to this binding at all.
pub fn is_ours(segments: &[&str]) -> bool {
    matches!(segments, ["message:send" | "message:stream" | "extendedAgentCard"] | ["tasks", ..])
}

/// Whether the rest of a path belongs to this binding as 0.3 has it, below `v1`.
pub fn is_ours_in_03(segments: &[&str]) -> bool {
    matches!(segments, ["message:send" | "message:stream"] | ["tasks", ..] | ["task", _, PUSH])
}

/// The same operations in 0.3. Its proto file has `task` in one path where all others have `tasks`; both are taken.
pub fn target_in_03(verb: &Method, segments: &[&str]) -> Result<Target, Missed> {
    match segments {
        ["task", id, push] => target(verb, &["tasks", id, push]),
        other => target(verb, other),
    }
}

/// The agent a path of 0.3 names, and the rest of it; none if it is no path of 0.3.
pub fn in_03<'a, 'b>(segments: &'b [&'a str]) -> Option<(Option<&'a str>, &'b [&'a str])> {
    match segments {
        ["agents", agent, "v1", rest @ ..] | ["v1", "agents", agent, rest @ ..] => Some((Some(*agent), rest)),
        ["v1", rest @ ..] => Some((None, rest)),
        _ => None,
    }
}

pub fn target(verb: &Method, segments: &[&str]) -> Result<Target, Missed> {
    let (get, post, delete) = (*verb == Method::GET, *verb == Method::POST, *verb == Method::DELETE);
    let when = |fits: bool, target: Target, allowed| if fits { Ok(target) } else { Err(Missed::Verb(allowed)) };
    match segments {
        ["message:send"] => when(post, Target::Send, "POST"),
        ["message:stream"] => when(post, Target::Stream, "POST"),
        ["extendedAgentCard"] => when(get, Target::ExtendedCard, "GET"),
        ["tasks"] => when(get, Target::List, "GET"),
        ["tasks", last] => {
            if let Some(id) = last.strip_suffix(":cancel") {
                when(post, Target::Cancel(id.into()), "POST")
            } else if let Some(id) = last.strip_suffix(":subscribe") {
                when(get || post, Target::Subscribe(id.into()), "GET, POST")
            } else {
                when(get, Target::Get((*last).into()), "GET")
            }
        }
        ["tasks", id, push] if *push == PUSH => {
            let target = if post { Target::CreatePush((*id).into()) } else { Target::ListPush((*id).into()) };
            when(get || post, target, "GET, POST")
        }
        ["tasks", id, push, config] if *push == PUSH => {
            let (id, config) = ((*id).to_owned(), (*config).to_owned());
            let target = if delete { Target::DeletePush(id, config) } else { Target::GetPush(id, config) };
            when(get || delete, target, "GET, DELETE")
        }
        _ => Err(Missed::NoSuchPath),
    }
}

#[cfg(test)]
mod tests {
    use super::{Missed, Target, in_03, target, target_in_03};
    use http::Method;

    fn at(verb: &Method, path: &str) -> Result<Target, Missed> {
        target(verb, &path.split('/').collect::<Vec<_>>())
    }

    #[test]
    fn every_path_leads_to_its_operation() {
        let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
        assert_eq!(at(&post, "message:send"), Ok(Target::Send));
        assert_eq!(at(&post, "message:stream"), Ok(Target::Stream));
        assert_eq!(at(&get, "tasks"), Ok(Target::List));
        assert_eq!(at(&get, "tasks/x"), Ok(Target::Get("x".into())));
        assert_eq!(at(&post, "tasks/x:cancel"), Ok(Target::Cancel("x".into())));
        assert_eq!(at(&get, "tasks/x:subscribe"), at(&post, "tasks/x:subscribe"));
        assert_eq!(at(&delete, "tasks/x/pushNotificationConfigs/c"), Ok(Target::DeletePush("x".into(), "c".into())));
        assert_eq!(at(&get, "extendedAgentCard"), Ok(Target::ExtendedCard));
    }

    #[test]
    fn paths_of_0_3_name_their_agent_in_two_places() {
        let of = |path: &'static str| {
            let segments: Vec<&str> = path.split('/').collect();
            in_03(&segments).map(|(agent, rest)| (agent, rest.join("/")))
        };
        assert_eq!(of("v1/tasks/x"), Some((None, "tasks/x".into())));
        assert_eq!(of("agents/a/v1/tasks"), Some((Some("a"), "tasks".into())));
        assert_eq!(of("v1/agents/a/message:send"), Some((Some("a"), "message:send".into())));
        assert_eq!(of("agents/a/tasks"), None);
        let create = target_in_03(&Method::POST, &["task", "x", "pushNotificationConfigs"]);
        assert_eq!(create, Ok(Target::CreatePush("x".into())));
    }

    #[test]
    fn a_wrong_verb_is_told_apart_from_a_wrong_path() {
        assert_eq!(at(&Method::GET, "message:send"), Err(Missed::Verb("POST")));
        assert_eq!(at(&Method::DELETE, "tasks/x"), Err(Missed::Verb("GET")));
        assert_eq!(at(&Method::GET, "tasks/x/y"), Err(Missed::NoSuchPath));
    }
}
