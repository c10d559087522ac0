//! What follows from a commit, once the store has spoken.

use super::early::Remains;
use super::queue::Places;
use super::run::Start;
use super::{Hub, LiveRef};
use crate::ports::{Done, NotCommitted};
use crate::task::{Effect, Head};
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Who hears what became of a commit.
pub(super) enum Tell {
    /// Whoever submitted it, at once.
    Each(oneshot::Sender<Result<u64, NotCommitted>>),
    /// Whoever waits for the task to rest; only if it failed. Waking them for a success in between is wasted.
    AtRest,
}

/// What comes of a change once it is committed.
pub(super) struct Follows {
    pub effects: Vec<Effect>,
    /// The rest of a run that has begun.
    pub remains: Option<Box<Remains>>,
    pub places: Places,
    pub ends: bool,
    pub was_waiting: bool,
    pub deadline_before: Option<Millis>,
}

impl Hub {
    /// What happens once the store has spoken: show the change, then start the work that follows from it.
    pub(super) fn when_committed(
        self: &Arc<Self>,
        live: &LiveRef,
        head: &Head,
        change: &Arc<Change>,
        size: usize,
        Follows { effects, mut remains, mut places, ends, was_waiting, deadline_before }: Follows,
        (tell, permit): (Tell, OwnedSemaphorePermit),
    ) -> Done {
        let (hub, live, head, change) = (Arc::clone(self), live.clone(), head.clone(), Arc::clone(change));
        Box::new(move |result| {
            drop(permit);
            let last = change.last_seq();
            match result {
                Ok(()) => {
                    hub.meters.changed(&head, &change);
                    hub.tell_of(&head, &change);
                    if ends {
                        hub.open_tasks.leave(head.principal);
                    }
                    let deadline = head.deadline.filter(|_| !head.is_over());
                    hub.deadlines.changed(live.id(), deadline_before, deadline);
                    hub.approvals.changed(live.id(), &change);
                    if was_waiting || head.waits_for_caller() {
                        hub.look_after(&head, was_waiting);
                    }
                    hub.weigh_later(&live, &head, &change);
                    let (shows, rests) = (change.peer_count() > 0, head.is_settled());
                    live.publish(head, change, size);
                    if shows {
                        hub.desk.changed(live.id());
                    }
                    for Effect::StartRun { run, watched } in effects {
                        let place = places.run.take();
                        match remains.take() {
                            Some(remains) => hub.go_on(*remains, hub.handle(&live, run, place)),
                            None => hub.start_run(&live, Start { run, watched, resumed: false }, place),
                        }
                    }
                    if let Tell::Each(tell) = tell {
                        // A caller that hung up is not told; the task goes on all the same.
                        let _ = tell.send(Ok(last));
                    }
                    // The last to be woken has the next turn: whoever waits for the task's end, if it has come.
                    live.wake(rests);
                }
                Err(why) => {
                    if places.opens {
                        hub.open_tasks.leave(head.principal);
                    }
                    match tell {
                        Tell::Each(tell) => {
                            live.forget_decided(None);
                            let _ = tell.send(Err(why));
                        }
                        Tell::AtRest => live.forget_decided(Some(why)),
                    }
                }
            }
        })
    }
}
