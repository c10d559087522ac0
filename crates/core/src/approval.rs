//! Approvals as their owners see them, and the rules that answer some of them before anybody has to.

use crate::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use crate::task::approve::Answer;
use flotilla_protocol::approval::{ApprovalDecision, ApprovalRequest, ApprovalState};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::time::Millis;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// One question and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub id: ApprovalId,
    pub task: TaskId,
    pub run: u32,
    pub agent: AgentId,
    pub owner: PrincipalId,
    pub request: Arc<ApprovalRequest>,
    pub created_at: Millis,
    pub expires_at: Option<Millis>,
    /// None while it is open.
    pub settled: Option<Settled>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    pub at: Millis,
    pub answer: Answer,
}

impl Approval {
    pub fn state(&self) -> ApprovalState {
        self.settled.as_ref().map_or(ApprovalState::Open, |settled| settled.answer.state)
    }

    /// What the asker is told, once there is something to tell.
    pub fn decision(&self) -> Option<ApprovalDecision> {
        let Answer { state, note, input, .. } = self.settled.as_ref()?.answer.clone();
        Some(ApprovalDecision { state, input, note })
    }
}

/// Which approvals are wanted, the newest first.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    pub state: Option<ApprovalState>,
    pub task: Option<TaskId>,
    pub agent: Option<AgentId>,
    pub before: Option<ApprovalId>,
    pub limit: usize,
}

/// What a change does to the approvals of its task, for stores: they keep them in the same commit as the log.
pub enum Told<'a> {
    Asked {
        id: ApprovalId,
        run: u32,
        request: &'a Arc<ApprovalRequest>,
        expires: Option<Millis>,
        /// Who asks, where that is not the agent the task is with; and its owner.
        asker: Option<(AgentId, PrincipalId)>,
    },
    Settled {
        id: ApprovalId,
        answer: Answer,
    },
}

pub fn told(events: &[Event]) -> impl Iterator<Item = Told<'_>> {
    events.iter().filter_map(|event| match event {
        Event::ApprovalAsked { id, run, request, expires, asker } => {
            let asker = asker.map(|asker| (AgentId(asker.agent), PrincipalId(asker.owner)));
            Some(Told::Asked { id: ApprovalId::parse(id)?, run: *run, request, expires: *expires, asker })
        }
        Event::ApprovalSettled { id, state, by, note, input, always } => {
            let (by, note, input) = (by.clone(), note.clone(), input.clone());
            let answer = Answer { state: *state, by, note, input, always: *always };
            Some(Told::Settled { id: ApprovalId::parse(id)?, answer })
        }
        _ => None,
    })
}

/// Whether a change says anything of approvals.
pub fn tells(change: &Change) -> bool {
    change.events.iter().any(|event| matches!(event, Event::ApprovalAsked { .. } | Event::ApprovalSettled { .. }))
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
    /// The owner is asked, whatever rules after this one say.
    Ask,
}

/// One rule: which questions it is for, and what it says to them.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Patterns in which `*` is any text and `?` any one character.
    pub agent: String,
    pub tool: String,
    /// Members of the input, and the pattern each must fit as a text.
    pub input: Vec<(String, String)>,
    pub decide: Verdict,
}

/// How questions are treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub rules: Vec<Rule>,
    /// How long the owner has to answer; nothing is a no at once.
    pub expire_after: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { rules: Vec::new(), expire_after: Duration::from_secs(30 * 60) }
    }
}

impl Policy {
    /// What the first rule that fits says to a question, if that is an answer.
    pub fn answer(&self, agent: &str, request: &ApprovalRequest) -> Option<Answer> {
        let input = request.input.as_ref().and_then(|json| serde_json::from_str(json.text()).ok()).unwrap_or_default();
        let (index, rule) = self.rules.iter().enumerate().find(|(_, rule)| rule.fits(agent, request, &input))?;
        let state = match rule.decide {
            Verdict::Allow => ApprovalState::Allowed,
            Verdict::Deny => ApprovalState::Denied,
            Verdict::Ask => return None,
        };
        let number = index + 1;
        let answer = Answer::new(state, format!("rule {number}"));
        Some(if state == ApprovalState::Denied { answer.noting("a rule of the hub denies this") } else { answer })
    }
}

impl Rule {
    fn fits(&self, agent: &str, request: &ApprovalRequest, input: &Value) -> bool {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let member =
            |(name, pattern): &(String, String)| input.get(name).is_some_and(|value| glob(pattern, &text(value)));
        glob(&self.agent, agent) && glob(&self.tool, &request.tool) && self.input.iter().all(member)
    }
}

/// Whether a text fits a pattern of `*` and `?`. Takes at most the product of both lengths.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where the latest star stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(one) if *one == '?' || *one == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::{Policy, Rule, Verdict, glob};
    use flotilla_protocol::approval::{ApprovalRequest, ApprovalState};
    use flotilla_protocol::wire::Json;

    fn rule(agent: &str, tool: &str, input: &[(&str, &str)], decide: Verdict) -> Rule {
        let input = input.iter().map(|(name, pattern)| ((*name).to_owned(), (*pattern).to_owned())).collect();
        Rule { agent: agent.into(), tool: tool.into(), input, decide }
    }

    fn request(tool: &str, command: Option<&str>) -> ApprovalRequest {
        let input = command.map(|command| Json::of(&serde_json::json!({"command": command, "n": 7})).unwrap());
        ApprovalRequest { id: "q".into(), tool: tool.into(), input, ..ApprovalRequest::default() }
    }

    #[test]
    fn patterns_fit_whole_texts() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("", "a", false),
            ("Bash", "Bash", true),
            ("Bash", "Bash2", false),
            ("mcp__*__read", "mcp__x__y__read", true),
            ("mcp__*__read", "mcp__x__write", false),
            ("a?c", "abc", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} on {text}");
        }
        let (stars, long) = ("*a".repeat(50), "a".repeat(5_000));
        assert!(!glob(&format!("{stars}b"), &long), "and it ends");
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = Policy {
            rules: vec![
                rule("*", "Bash", &[("command", "rm *")], Verdict::Ask),
                rule("coder", "Bash", &[], Verdict::Allow),
                rule("*", "Read", &[("n", "7")], Verdict::Allow),
                rule("*", "Web*", &[], Verdict::Deny),
            ],
            ..Policy::default()
        };
        let told =
            |agent, request: &ApprovalRequest| policy.answer(agent, request).map(|answer| (answer.state, answer.by));
        assert_eq!(told("coder", &request("Bash", Some("rm -r /"))), None, "the owner is asked");
        assert_eq!(told("coder", &request("Bash", Some("ls"))), Some((ApprovalState::Allowed, "rule 2".into())));
        assert_eq!(told("coder", &request("Bash", None)), Some((ApprovalState::Allowed, "rule 2".into())));
        assert_eq!(told("other", &request("Bash", Some("ls"))), None);
        assert_eq!(told("other", &request("Read", Some("x"))), Some((ApprovalState::Allowed, "rule 3".into())));
        assert_eq!(told("other", &request("Read", None)), None, "without the member, it does not fit");
        assert_eq!(told("x", &request("WebFetch", None)), Some((ApprovalState::Denied, "rule 4".into())));
    }
}
