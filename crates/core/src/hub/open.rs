//! Opening a task with its first message, once per key.

use super::push::NewHook;
use super::send::{InLog, Wait};
use super::{Hub, LiveRef, Tell, settled};
use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::ids::TaskId;
use crate::ports::{Dedupe, NotCommitted};
use crate::registry::Agent;
use crate::task::{Head, Say};
use std::sync::Arc;
use tokio::sync::oneshot;

impl Hub {
    pub(super) async fn open(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        mut say: Box<Say>,
        dedupe: Option<Dedupe>,
        hook: Option<Box<NewHook>>,
        wait: Wait,
    ) -> Result<InLog, Error> {
        let live = self.lives.acquire(TaskId::fresh());
        let message = Arc::make_mut(&mut say.message);
        if message.context_id.is_empty() {
            message.context_id = TaskId::fresh().to_string();
        }
        message.task_id = live.id().to_string();
        let context = message.context_id.as_str().into();
        let head = Head::new(live.id(), caller.principal, agent.id, agent.owner, context);
        match hook {
            None => {
                live.load(head);
                self.open_with(caller, agent, &live, say, dedupe, wait).await
            }
            Some(hook) => {
                live.load(head.clone());
                Box::pin(self.open_hooked(caller, agent, (&live, head), say, dedupe, *hook)).await
            }
        }
    }

    /// The same with a webhook. What was hung is taken down again if the task is not opened, so that must be known.
    async fn open_hooked(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        (live, head): (&LiveRef, Head),
        say: Box<Say>,
        dedupe: Option<Dedupe>,
        hook: NewHook,
    ) -> Result<InLog, Error> {
        // Before the task: what the agent says first must find it.
        let hook = self.hang(&head, hook).await?;
        let opened = self.open_with(caller, agent, live, say, dedupe, Wait::Commit).await;
        if !opened.as_ref().is_ok_and(|opened| opened.live.id() == live.id()) {
            self.unhang(&hook).await?;
        }
        opened
    }

    async fn open_with(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        live: &LiveRef,
        say: Box<Say>,
        dedupe: Option<Dedupe>,
        wait: Wait,
    ) -> Result<InLog, Error> {
        let permit = self.permit().await?;
        let (tell, told) = match wait {
            Wait::Rest => (Tell::AtRest, None),
            Wait::None | Wait::Commit => {
                let (tell, told) = oneshot::channel();
                (Tell::Each(tell), Some(told))
            }
        };
        match self.submit_with(live, self.saying(agent, say), dedupe, permit, tell) {
            Ok(true) => {}
            Ok(false) => return Err(Fault::new("a first message that changes nothing").into()),
            // There is no place for a new task, but a send that was made before needs none.
            Err(Error::Refused(refusal)) => return Box::pin(self.again_or(caller, agent, dedupe, refusal)).await,
            Err(failed) => return Err(failed),
        }
        let committed = match told {
            Some(told) => settled(told).await.map(|_| ()),
            None => Ok(()),
        };
        match committed {
            Ok(()) => Ok(InLog { live: live.clone(), dedupe, after: 0, repeated: false }),
            Err(why) => Box::pin(self.not_opened(caller, agent, why, dedupe)).await,
        }
    }

    /// A new task's first commit did not happen: the send may have been made before.
    pub(super) async fn not_opened(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Agent,
        why: NotCommitted,
        dedupe: Option<Dedupe>,
    ) -> Result<InLog, Error> {
        match why {
            NotCommitted::Duplicate(sent) => self.attach(caller, agent, sent, dedupe).await,
            NotCommitted::Stale => Err(Fault::new("a new task's id was taken").into()),
            NotCommitted::Failed(fault) => Err(fault.into()),
        }
    }
}
