//! One worker in the roster: what it announced, when it was heard of, and whether it can be reached.

use super::settings::after;
use super::{Changed, Kept, Pauses, Settings, standing};
use crate::dispatch::{Health, Worker};
use crate::ids::{AgentId, PrincipalId, WorkspaceId};
use crate::ports::Breaker;
use crate::registry::{Agent, Visibility};
use flotilla_protocol::time::Millis;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How an announcement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// In a frame of its own connection, of this line of them (`Presence::line`).
    Socket(u64),
    /// By `POST /api/fleet/announce`.
    Http,
    /// By the hub itself, whose own agent it is.
    Here,
    /// In a reply. Whoever says it there may have no other way, so it need not say it again in time.
    Reply,
    /// From before the hub's start.
    Kept,
}

impl Via {
    pub fn name(self) -> &'static str {
        match self {
            Self::Socket(_) => "socket",
            Self::Http => "http",
            Self::Here => "here",
            Self::Reply => "reply",
            Self::Kept => "kept",
        }
    }
}

pub(crate) struct Entry {
    pub worker: Worker,
    pub agent: AgentId,
    pub owner: PrincipalId,
    pub workspace: WorkspaceId,
    pub visibility: Visibility,
    pub via: Via,
    /// The line of connections that its announcement is of, and the latest there is.
    pub line: u64,
    pub latest_line: u64,
    pub announced_at: Millis,
    pub heard_at: Millis,
    /// The health and revision that were last told.
    pub told: Option<(&'static str, u64)>,
    /// What waits has not been offered to it since something new is known of it.
    pub open: bool,
    /// When the hub's runs there ended of late, and how many there were until then.
    ended: Vec<(Millis, u32)>,
    /// Plain messages that begin something with it come in one after the other.
    pub gate: Arc<tokio::sync::Mutex<()>>,
}

/// A worker that counts its runs may not know yet, or its word be on its way, when the hub's end.
const LATELY: Duration = Duration::from_secs(5);

/// A worker as its owner sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub worker: Worker,
    pub agent: AgentId,
    pub owner: PrincipalId,
    pub health: Health,
    pub via: Via,
    pub announced_at: Millis,
    pub heard_at: Millis,
}

impl Entry {
    pub fn new(agent: &Agent, via: Via, now: Millis) -> Self {
        Self {
            worker: Worker { lease_until: now, ..Worker::unknown(&agent.name) },
            agent: agent.id,
            owner: agent.owner,
            workspace: agent.workspace,
            visibility: agent.visibility,
            via,
            line: 0,
            latest_line: 0,
            announced_at: now,
            heard_at: now,
            told: None,
            open: true,
            ended: Vec::new(),
            gate: Arc::default(),
        }
    }

    /// A run of the hub's there is over.
    pub fn ended(&mut self, now: Millis) {
        self.ended.retain(|(at, _)| now < after(*at, LATELY));
        self.ended.push((now, self.worker.given().saturating_add(1)));
        self.open = true;
    }

    /// What it has beside the hub's work, by its own count. The hub's runs are among those it counts: as many as it had at
    /// once of late.
    pub fn count_elsewhere(&mut self, now: Millis) {
        let lately = self.ended.iter().filter(|(at, _)| now < after(*at, LATELY)).map(|(_, runs)| *runs).max();
        let known = self.worker.given().max(lately.unwrap_or(0));
        let told = self.worker.announce.session.active_tasks.unwrap_or(0);
        self.worker.elsewhere = told.saturating_sub(known);
    }

    /// Takes over what its card and the operator say of it. An agent that is configured no more stays in the roster,
    /// where it is not there.
    pub fn describe(&mut self, agent: Option<&Arc<Agent>>, settings: &Settings) {
        let worker = &mut self.worker;
        if let Some(agent) = agent {
            (self.agent, self.owner, self.workspace) = (agent.id, agent.owner, agent.workspace);
            self.visibility = agent.visibility;
            let skills = agent.skills.iter().flat_map(|skill| [&skill.id, &skill.name].into_iter().chain(&skill.tags));
            worker.skills = skills.cloned().collect();
        }
        let set = settings.workers.get(&*worker.name);
        let announced = &worker.announce.worker;
        let labels = set.into_iter().flat_map(|set| &set.labels).chain(&announced.labels);
        worker.labels = labels.cloned().collect::<BTreeSet<_>>();
        let account = set.and_then(|set| set.account.as_deref()).or(announced.account.as_deref());
        if worker.account.as_deref() != account {
            // What another account has used up is nothing to it.
            (worker.account, worker.paused) = (account.map(Into::into), None);
        }
    }

    /// Whose limit it works under, in its own workspace.
    pub fn account(&self) -> Option<(WorkspaceId, Arc<str>)> {
        Some((self.workspace, self.worker.account.clone()?))
    }

    /// Looks whether its repository has room for another who changes files there.
    pub fn crowd(&mut self, writers: &HashMap<String, u32>, settings: &Settings) {
        let writing = self.worker.announce.repository().and_then(|repository| writers.get(&repository));
        let full = writing.is_some_and(|writing| *writing >= settings.writers_per_repository);
        self.open |= self.worker.repository_full && !full;
        self.worker.repository_full = full;
    }

    /// Rests with the others of its account.
    pub fn rest(&mut self, pauses: &Pauses) {
        let Some(pause) = self.account().and_then(|account| pauses.get(&account)) else { return };
        // It may know more of why than the others.
        if self.worker.paused.as_ref().is_none_or(|own| own.until != pause.until) {
            self.worker.paused = Some(pause.clone());
        }
    }

    /// Looks whether it can be reached now. A connection that is open is a lease that goes on.
    pub fn look(&mut self, agent: Option<&Arc<Agent>>, now: Millis, settings: &Settings) {
        self.worker.returned |= self.worker.health(now) == Health::Offline;
        let Some(agent) = agent else {
            self.worker.present = false;
            return;
        };
        let link = &agent.link;
        let (is_dialed, reach) = (link.dialed().is_some(), link.reach());
        let absent = link.absence().is_some();
        // After that, or a connection that opens in between would be taken for the one before.
        let presence = link.presence().unwrap_or_default();
        self.latest_line = presence.line;
        self.worker.unconfirmed = self.line != presence.line;
        // One that cannot work takes nothing, but is there to say why.
        let says_why = self.worker.announce.session.broken.is_some() && presence.connections > 0;
        let away = match &reach {
            Some(reach) => reach.breaker == Breaker::Open,
            None => absent && !says_why,
        };
        self.worker.present = !away;
        let is_held = match reach {
            Some(_) => self.via == Via::Reply,
            None => is_dialed || self.via != Via::Http,
        };
        if self.worker.present && is_held {
            self.worker.lease_until = self.worker.lease_until.max(settings.lease_from(now));
        }
    }

    /// Whether work for a principal of the fleet's workspace may go to it.
    pub fn is_for(&self, principal: PrincipalId, workspace: WorkspaceId) -> bool {
        match self.visibility {
            Visibility::Public => true,
            Visibility::Workspace => self.workspace == workspace,
            Visibility::Private => self.owner == principal,
        }
    }

    pub fn kept(&self) -> Kept {
        let announce = serde_json::to_string(&*self.worker.announce).unwrap_or_default();
        let standing = standing::written(&self.worker.turns, self.worker.paused.as_ref());
        Kept { agent: self.agent, announce, at: self.announced_at, draining: self.worker.draining, standing }
    }

    pub fn changed(&self, health: &'static str) -> Changed {
        let (worker, epoch) = (Arc::clone(&self.worker.name), self.worker.announce.epoch);
        Changed { worker, agent: self.agent, owner: self.owner, health, epoch }
    }

    pub fn seen(&self, now: Millis) -> Seen {
        Seen {
            worker: self.worker.clone(),
            agent: self.agent,
            owner: self.owner,
            health: self.worker.health(now),
            via: self.via,
            announced_at: self.announced_at,
            heard_at: self.heard_at,
        }
    }
}
