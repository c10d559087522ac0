//! Whether a worker can do a piece of work at all; if not, why, and whether waiting helps.

use super::{Health, Policy, Worker};
use flotilla_protocol::fleet::announce::{McpStatus, RepoState};
use flotilla_protocol::fleet::dispatch::Dispatch;
use flotilla_protocol::fleet::name;
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::time::Millis;

/// Why a worker is not the one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    pub reason: BlockedReason,
    pub detail: String,
    /// Whether the same worker may do later without announcing anything new.
    pub waits: bool,
    /// When that is, if it is known.
    pub until: Option<Millis>,
    pub distance: Distance,
}

/// How far a worker is from taking the work, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// As soon as it is free.
    Full,
    /// Not for a while.
    Resting,
    /// Not as it is.
    Lacking,
    /// Not before it is back.
    Gone,
}

impl Unfit {
    fn never(reason: BlockedReason, detail: String) -> Self {
        Self { reason, detail, waits: false, until: None, distance: Distance::Lacking }
    }

    fn later(reason: BlockedReason, detail: String, distance: Distance) -> Self {
        Self { reason, detail, waits: true, until: None, distance }
    }

    /// The work comes from it. There is no typed word for that: it is the ancestry's.
    pub fn ring() -> Self {
        let detail = "the work comes from it, so this would be a ring of calls";
        Self::never(BlockedReason::Other("ring".to_owned()), detail.to_owned())
    }

    fn until(self, until: Millis) -> Self {
        Self { until: Some(until), ..self }
    }
}

/// Who asked for this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressed {
    /// By its own name: what is not known of it is tried, and said to be unverified.
    ByName,
    /// As one of many: what is not known is not there.
    AmongOthers,
}

/// Everything that stands in the way, the gravest first; and what is taken on trust.
pub fn fit(
    worker: &Worker,
    dispatch: &Dispatch,
    addressed: Addressed,
    policy: &Policy,
    now: Millis,
) -> Result<Vec<String>, Vec<Unfit>> {
    let mut unfit = Vec::new();
    let mut unverified = Vec::new();
    if dispatch.deadline.is_some_and(|deadline| deadline <= now) {
        unfit.push(Unfit::never(BlockedReason::DeadlinePassed, "the deadline has passed".into()));
    }
    mcp(worker, dispatch, addressed, &mut unfit, &mut unverified);
    tools(worker, dispatch, addressed, &mut unfit, &mut unverified);
    model(worker, dispatch, addressed, policy, &mut unfit, &mut unverified);
    tree(worker, dispatch, addressed, &mut unfit, &mut unverified);
    presence(worker, dispatch, now, &mut unfit);
    // Of a later version, or nobody's: it is not looked at here.
    unverified.extend(dispatch.requirements.more.keys().map(|name| format!("requirement {name}")));
    if unfit.is_empty() { Ok(unverified) } else { Err(unfit) }
}

fn mcp(
    worker: &Worker,
    dispatch: &Dispatch,
    addressed: Addressed,
    unfit: &mut Vec<Unfit>,
    unverified: &mut Vec<String>,
) {
    for server in &dispatch.requirements.required_mcp {
        match worker.mcp(server) {
            Some(McpStatus::Ok) => {}
            Some(McpStatus::Unknown) if addressed == Addressed::ByName => {
                unverified.push(format!("MCP server {server}"));
            }
            None if addressed == Addressed::ByName && !worker.announced => {
                unverified.push(format!("MCP server {server}"));
            }
            Some(status) => {
                let since =
                    if worker.unconfirmed { ", for it connected anew and has not announced itself" } else { "" };
                let detail = format!("MCP server {server}: {}{since}", status.name());
                unfit.push(Unfit::never(BlockedReason::MissingMcp, detail));
            }
            None => {
                let detail = format!("MCP server {server}: not there");
                unfit.push(Unfit::never(BlockedReason::MissingMcp, detail));
            }
        }
    }
}

fn tools(
    worker: &Worker,
    dispatch: &Dispatch,
    addressed: Addressed,
    unfit: &mut Vec<Unfit>,
    unverified: &mut Vec<String>,
) {
    let needs = &dispatch.requirements;
    let mut missing = |what: &str, name: &str| {
        unfit.push(Unfit::never(BlockedReason::MissingCapability, format!("{what} {name}: not there")));
    };
    // One that has had no session yet does not know its tools.
    let unknown = !worker.announced || worker.announce.capabilities.tools.is_empty();
    for tool in needs.required_capabilities.iter().filter(|tool| !worker.announce.has_tool(tool)) {
        match addressed {
            Addressed::ByName if unknown => unverified.push(format!("tool {tool}")),
            _ => missing("tool", tool),
        }
    }
    for skill in needs.skills.iter().filter(|skill| !worker.skills.iter().any(|known| name::same(known, skill))) {
        missing("skill", skill);
    }
    for label in needs.labels.iter().filter(|label| !worker.labels.iter().any(|known| name::same(known, label))) {
        missing("label", label);
    }
}

fn model(
    worker: &Worker,
    dispatch: &Dispatch,
    addressed: Addressed,
    policy: &Policy,
    unfit: &mut Vec<Unfit>,
    unverified: &mut Vec<String>,
) {
    let (needs, has) = (&dispatch.requirements, &worker.announce.worker);
    let mut unknown = |what: String, reason: BlockedReason| match addressed {
        Addressed::ByName => unverified.push(what),
        Addressed::AmongOthers => unfit.push(Unfit::never(reason, format!("{what}: not known"))),
    };
    if let Some(least) = &needs.model_tier {
        let ranks = (policy.tiers.rank(least), has.model_tier.as_deref().and_then(|tier| policy.tiers.rank(tier)));
        match ranks {
            (Some(least), Some(has)) if has >= least => {}
            (Some(_), Some(_)) => {
                let tier = has.model_tier.as_deref().unwrap_or_default();
                unfit.push(Unfit::never(BlockedReason::TierTooLow, format!("model tier {tier}, wanted {least}")));
            }
            _ => unknown(format!("model tier {least}"), BlockedReason::TierTooLow),
        }
    }
    if let Some(least) = needs.context_window {
        match has.context_window {
            Some(window) if window >= least => {}
            Some(window) => {
                let detail = format!("context window {window}, wanted {least}");
                unfit.push(Unfit::never(BlockedReason::MissingCapability, detail));
            }
            None => match addressed {
                Addressed::ByName => unverified.push(format!("context window {least}")),
                Addressed::AmongOthers => {
                    let detail = format!("context window {least}: not known");
                    unfit.push(Unfit::never(BlockedReason::MissingCapability, detail));
                }
            },
        }
    }
}

/// Work that changes files wants a tree nobody else has begun to change.
fn tree(
    worker: &Worker,
    dispatch: &Dispatch,
    addressed: Addressed,
    unfit: &mut Vec<Unfit>,
    unverified: &mut Vec<String>,
) {
    if !dispatch.requirements.write {
        return;
    }
    let clean = worker.announce.session.repo_state.as_ref().and_then(RepoState::is_clean);
    match (clean, addressed) {
        (Some(true), _) => {}
        (Some(false), _) => {
            unfit.push(Unfit::never(BlockedReason::DirtyTree, "its working tree has changes of its own".into()));
        }
        (None, Addressed::ByName) => unverified.push("a clean working tree".into()),
        (None, Addressed::AmongOthers) => {
            unfit.push(Unfit::never(BlockedReason::DirtyTree, "whether its working tree is clean is not known".into()));
        }
    }
}

fn presence(worker: &Worker, dispatch: &Dispatch, now: Millis, unfit: &mut Vec<Unfit>) {
    let over = |detail: &str, distance| Unfit::later(BlockedReason::OverCapacity, detail.to_owned(), distance);
    if dispatch.requirements.write && worker.repository_full {
        unfit.push(over("as many as may are changing files in its repository", Distance::Full));
    }
    if let Some(pause) = worker.pause(now) {
        // What the worker said of it was said of somebody's work, and is its owner's to see.
        let detail = format!("its account is paused until {}", pause.until);
        unfit.push(Unfit::later(BlockedReason::UsageLimit, detail, Distance::Resting).until(pause.until));
    }
    if let Some(broke) = worker.broke(now) {
        let detail = broke.reason.to_string();
        unfit.push(Unfit::later(BlockedReason::BudgetTooSmall, detail, Distance::Resting).until(broke.until));
    }
    match worker.health(now) {
        Health::Available => {}
        Health::Busy if worker.taken() < worker.places() => {}
        Health::Busy => unfit.push(over(&full(worker), Distance::Full)),
        Health::Draining => unfit.push(over("it is draining and takes nothing new", Distance::Resting)),
        // What it announced does not hold, as its turns show: it has to say anew what it can do.
        Health::Broken { .. } => unfit.push(Unfit::never(BlockedReason::StaleProfile, broken(worker))),
        Health::Offline => unfit.push(over("it is not there", Distance::Gone)),
    }
}

fn full(worker: &Worker) -> String {
    let elsewhere = match worker.taken() - worker.given() {
        0 => String::new(),
        runs => format!(", {runs} of them by work from elsewhere, as it says"),
    };
    format!("all {} places are taken{elsewhere}", worker.places())
}

/// Why a worker is broken, in words for every caller: those of the tasks that failed are their callers' and its owner's.
fn broken(worker: &Worker) -> String {
    match worker.announce.session.broken {
        Some(_) => "it says that it cannot work; its owner sees why".to_owned(),
        None => format!("{} turns in a row failed; its owner sees why", worker.turns.failures),
    }
}
