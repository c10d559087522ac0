//! The ledger, for owners: what their agents used.

use super::Hub;
use crate::caller::Caller;
use crate::error::Error;
use crate::ids::TaskId;
use crate::usage::{By, Day, Sum, UsageFilter};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::time::Millis;

/// The most sums in an answer.
const MOST: usize = 1_000;

/// What an owner asks of the ledger, as it came.
#[derive(Debug, Clone, Default)]
pub struct UsageQuery {
    pub by: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub task: Option<String>,
    pub agent: Option<String>,
    pub context: Option<String>,
}

pub struct UsageReport {
    pub by: By,
    pub sums: Vec<Sum>,
    /// There are more sums than are shown.
    pub more: bool,
}

impl Hub {
    /// What the agents of this caller used, added up as the query says.
    pub async fn usage(&self, caller: &Caller, query: UsageQuery) -> Result<UsageReport, Error> {
        let by = match query.by.as_deref() {
            None => By::Agent,
            Some(name) => By::from_name(name).ok_or_else(|| no_such(name))?,
        };
        let day = |name: &str, text: &Option<String>| text.as_deref().map(|text| day(name, text)).transpose();
        let (since, until) = (day("since", &query.since)?, day("until", &query.until)?);
        let registry = self.registry();
        let agent = query.agent.as_deref().map(|name| registry.resolve(caller, Some(name), "")).transpose()?;
        let agents = match (agent, &caller.agents) {
            (Some(agent), _) => Some(vec![agent.id]),
            (None, None) => None,
            // A key that is limited to agents shows what these used.
            (None, Some(names)) => {
                Some(names.iter().filter_map(|name| registry.by_name(name)).map(|agent| agent.id).collect())
            }
        };
        let Some(task) = query.task.as_deref().map(TaskId::parse).map_or(Some(None), |task| task.map(Some)) else {
            return Ok(UsageReport { by, sums: Vec::new(), more: false });
        };
        let filter = UsageFilter { since, until, task, agents, context: query.context, limit: MOST + 1 };
        let mut sums = self.store.usage(caller.as_owner(), by, filter).await?;
        let more = sums.len() > MOST;
        sums.truncate(MOST);
        Ok(UsageReport { by, sums, more })
    }
}

/// A day, or the day a moment is on.
fn day(name: &str, text: &str) -> Result<Day, Refusal> {
    let moment = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let wrong =
        |_| Refusal::invalid(name, "must be a day such as 2026-01-31, or a moment such as 2026-01-31T12:00:00Z");
    Millis::parse(&moment).map(Day::of).map_err(wrong)
}

fn no_such(name: &str) -> Refusal {
    let all: Vec<&str> = By::ALL.iter().map(|by| by.name()).collect();
    let shown: String = name.chars().take(80).collect();
    Refusal::invalid("by", format!("'{shown}' is nothing to add up by; there are: {}", all.join(", ")))
}
