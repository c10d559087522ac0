//! Ends that the hub makes itself: what is dispatched work is told of as such, whoever ends it.

use super::judged::count_blocked;
use super::{Hub, LiveRef};
use crate::error::Error;
use crate::fleet::FLEET;
use crate::fleet::contract::{self, Carried, Past};
use crate::registry::Agent;
use crate::task::conclude::Account;
use crate::task::{Command, Say};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::Dispatch;
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// Dispatched work, as its log tells of it.
struct Work {
    account: Arc<Account>,
    /// No worker has it yet, or any more.
    is_sought: bool,
    /// That of its contract.
    deadline: Option<Millis>,
}

impl Hub {
    /// Makes a change that may end the task; dispatched work comes to its end with a TASK_RESULT.
    pub(super) async fn end(
        self: &Arc<Self>,
        live: &LiveRef,
        command: impl Fn() -> Command,
    ) -> Result<Option<u64>, Error> {
        match self.work_of(live).await {
            None => self.change(live, command).await,
            Some(Work { account, .. }) => {
                let under = || Command::Under { account: Arc::clone(&account), command: Box::new(command()) };
                self.change(live, under).await
            }
        }
    }

    /// Whether a worker is looked for until a time that has come: then that ends it.
    pub(super) async fn is_sought_until(&self, live: &LiveRef, now: Millis) -> bool {
        if live.committed().is_none_or(|head| head.is_over()) {
            return false;
        }
        let work = self.work_of(live).await.filter(|work| work.is_sought);
        work.and_then(|work| work.deadline).is_some_and(|deadline| deadline <= now)
    }

    /// What the log says of dispatched work; none if it is none.
    async fn work_of(&self, live: &LiveRef) -> Option<Work> {
        let head = live.committed()?;
        let changes = match live.whole() {
            Some((_, changes)) => changes,
            None => match self.whole_log(live.id()).await {
                Ok(changes) => changes,
                Err(fault) => {
                    tracing::error!(task = %live.id(), %fault, "work ends without its result: its log cannot be read");
                    return None;
                }
            },
        };
        let events = || changes.iter().flat_map(|change| &change.events);
        let first = events().find_map(|event| match event {
            Event::Asked { message, .. } => Some(message),
            _ => None,
        })?;
        let agent = self.registry.load().by_id(head.agent).cloned();
        let dispatch = self.dispatched(agent.as_deref(), first)?;
        let past = Past::of(&changes);
        let is_unbegun = !(past.begun || past.started || past.made);
        let account = Account {
            task_id: dispatch.task.task_id,
            artifact: Some(past.titles.result(None)),
            unbegun: is_unbegun,
            spent: past.spent,
        };
        let (is_sought, deadline) = (is_unbegun && past.given.is_none(), past.deadline.or(dispatch.deadline));
        Some(Work { account: Arc::new(account), is_sought, deadline })
    }

    /// The dispatch a task began with. Whoever is not here any more was sent no more than its metadata says.
    fn dispatched(&self, agent: Option<&Agent>, first: &Message) -> Option<Dispatch> {
        match contract::carried(first, agent.is_some_and(|agent| self.reads_texts(agent))) {
            Ok(Carried::Dispatch(dispatch)) => Some(*dispatch),
            _ => agent.filter(|agent| agent.name == FLEET).map(|_| contract::plain(first)),
        }
    }

    /// A message as a command. One that is rejected as it comes says so with a result, if it carries a dispatch.
    pub(super) fn saying(&self, agent: &Agent, say: Box<Say>) -> Command {
        let rejected = say.broke.is_some() || say.descent.as_ref().is_some_and(|descent| descent.objection().is_some());
        let dispatch = rejected.then(|| self.dispatched(Some(agent), &say.message)).flatten();
        let command = Command::Say(say);
        match dispatch {
            None => command,
            Some(dispatch) => {
                if let Command::Say(say) = &command
                    && say.broke.is_some()
                {
                    count_blocked(&BlockedReason::BudgetTooSmall);
                }
                let account = Account { task_id: dispatch.task.task_id, ..Account::default() };
                Command::Under { account: Arc::new(account), command: Box::new(command) }
            }
        }
    }
}
