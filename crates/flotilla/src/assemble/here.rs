//! The link to an agent that works in this process, spoken to in the same frames as one elsewhere.

use flotilla_core::hub::RunHandle;
use flotilla_core::ports::{Beginning, Link, Stopped, Stopping};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::work::{Assignment, Report};
use flotilla_worker::{Agent as Doer, Outbox, Stop};
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Reports an agent may be ahead of the store.
const AHEAD: usize = 256;
/// Reports that become one change.
const BATCH: usize = 64;
/// How long a run that was ended waits to be told why, before it is one that just stopped.
const CANCELED_BY_THEN: Duration = Duration::from_secs(30);

pub struct InProcess {
    doer: Doer,
    programs: Programs,
}

/// Runs that are programs, by task and number. A run is there until nothing of its program is left.
type Programs = Arc<Mutex<HashMap<(String, u32), watch::Sender<bool>>>>;

impl InProcess {
    pub fn new(doer: Doer) -> Self {
        Self { doer, programs: Programs::default() }
    }
}

impl Link for InProcess {
    fn run(&self, assignment: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let doer = self.doer.clone();
        if doer.is_supervised() {
            let programs = Arc::clone(&self.programs);
            return Box::pin(supervised(doer, assignment, run, programs));
        }
        Box::pin(async move {
            let (sender, inbox) = mpsc::channel(AHEAD);
            let (_never, stop) = Stop::pair();
            let work = doer.work(assignment, Outbox::new(sender), stop);
            talk(work, inbox, run, None).await;
        })
    }

    fn begin(&self, assignment: &dyn Fn() -> Option<Assignment>) -> Option<Beginning> {
        if self.doer.is_supervised() {
            return None;
        }
        let assignment = assignment()?;
        let (sender, mut inbox) = mpsc::channel(AHEAD);
        let (never, stop) = Stop::pair();
        let doer = self.doer.clone();
        let mut work = Box::pin(async move { doer.work(assignment, Outbox::new(sender), stop).await });
        // Nobody needs to be woken: what is not done by now is looked at again when it goes on.
        let is_done = work.as_mut().poll(&mut task::Context::from_waker(task::Waker::noop())).is_ready();
        let reports = std::iter::from_fn(|| inbox.try_recv().ok()).map(|report| *report).collect();
        let rest = move |run: RunHandle| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                let _never = never;
                match is_done {
                    true => run.finish().await,
                    false => talk(work, inbox, run, None).await,
                }
            })
        };
        Some(Beginning { reports, rest: Box::new(rest) })
    }

    fn stop(&self, stopping: Stopping) -> Pin<Box<dyn Future<Output = Result<Stopped, Refusal>> + Send>> {
        let programs = Arc::clone(&self.programs);
        Box::pin(async move {
            let task = stopping.task.to_string();
            let runs = |((of, _), say): (&(String, u32), &watch::Sender<bool>)| (*of == task).then(|| say.clone());
            let running: Vec<_> = lock(&programs).iter().filter_map(runs).collect();
            for say in running {
                say.send_replace(true);
                // The other end goes when nothing of the program is left.
                say.closed().await;
            }
            Ok(Stopped::Now(None))
        })
    }
}

fn lock(programs: &Programs) -> std::sync::MutexGuard<'_, HashMap<(String, u32), watch::Sender<bool>>> {
    programs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a run off the list when it is over, however that came about.
struct Listed(Programs, (String, u32));

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.0).remove(&self.1);
    }
}

async fn supervised(doer: Doer, assignment: Assignment, run: RunHandle, programs: Programs) {
    let (say, stop) = Stop::pair();
    let name = (assignment.task_id.clone(), assignment.run);
    lock(&programs).insert(name.clone(), say.clone());
    let _listed = Listed(programs, name);
    let (sender, inbox) = mpsc::channel(AHEAD);
    let work = doer.work(assignment, Outbox::new(sender), stop);
    talk(work, inbox, run, Some(say)).await;
}

/// Passes reports on until the work is done or the run is over. Work that takes a moment to end is asked to, and waited
/// for.
async fn talk(
    work: impl Future<Output = ()>,
    mut inbox: mpsc::Receiver<Box<Report>>,
    mut run: RunHandle,
    say: Option<watch::Sender<bool>>,
) {
    let mut work = pin!(work);
    let mut working = true;
    let mut batch = Vec::new();
    loop {
        // The agent goes first, so that what it says in one breath becomes one change.
        let over = tokio::select! {
            biased;
            () = &mut work, if working => {
                working = false;
                false
            }
            count = inbox.recv_many(&mut batch, BATCH) => {
                let reports = batch.drain(..).map(|report| *report).collect();
                count == 0 || run.report(reports).await.is_err()
            }
            () = run.fenced() => true,
        };
        if over {
            break;
        }
    }
    drop(inbox);
    let Some(say) = say else { return run.finish().await };
    let was_asked = *say.borrow();
    if working {
        say.send_replace(true);
        work.await;
    }
    if was_asked {
        let _ = tokio::time::timeout(CANCELED_BY_THEN, run.fenced()).await;
    }
    run.finish().await;
}
