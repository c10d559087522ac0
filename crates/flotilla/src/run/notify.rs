//! Alerts on their way to people: a signed webhook, or a program of the operator's own.

use crate::config::NotifyConfig;
use arc_swap::ArcSwap;
use flotilla_core::hub::Hub;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Courier, Owed, Parcel};
use flotilla_core::push::{Came, Target};
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::lineage::Trace;
use flotilla_worker::supervise::{Exit, Launch, Limits, Streams};
use metrics::counter;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How often a webhook is tried, and how long is waited before it is tried again.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it has to end once it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Programs that are told something at once.
const PROGRAMS: usize = 8;

/// Whom alerts are told, as it is configured now.
pub type Notifiers = Arc<ArcSwap<Vec<NotifyConfig>>>;

/// What notifying goes on with.
struct Teller {
    hub: Arc<Hub>,
    courier: Arc<dyn Courier>,
    notifiers: Notifiers,
    /// Alerts that are on their way, and whether that is over.
    in_hand: Mutex<HashMap<TaskId, bool>>,
    programs: Semaphore,
}

/// Runs until the hub stops. What an earlier process did not bring to its notifiers is told first.
pub async fn tell(hub: Arc<Hub>, courier: Arc<dyn Courier>, notifiers: Notifiers) {
    let mut listener = hub.notices().listen_to_alerts();
    let programs = Semaphore::new(PROGRAMS);
    let teller = Arc::new(Teller { hub, courier, notifiers, in_hand: Mutex::default(), programs });
    loop {
        teller.tell_owed().await;
        // What is owed is in the store: that an alert was given only says that it is time to look.
        tokio::select! {
            heard = listener.next() => if heard.is_none() { return },
            () = teller.hub.stopped() => return,
        }
    }
}

impl Teller {
    fn in_hand(&self) -> MutexGuard<'_, HashMap<TaskId, bool>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell_owed(self: &Arc<Self>) {
        // What is over by now is not in the store any more. What comes to its end while that is read may be read all the same.
        self.in_hand().retain(|_, is_over| !*is_over);
        let owed = match self.hub.store().owed().await {
            Ok(owed) => owed,
            Err(fault) => return tracing::error!(%fault, "which alerts are to be told is not known"),
        };
        for owed in owed {
            if let Entry::Vacant(unknown) = self.in_hand().entry(owed.id) {
                unknown.insert(false);
                let teller = Arc::clone(self);
                tokio::spawn(teller.one(Arc::new(owed)));
            }
        }
    }

    /// Tells an alert to each notifier, and forgets it when all have it or cannot be told.
    async fn one(self: Arc<Self>, owed: Arc<Owed>) {
        let mut telling = JoinSet::new();
        for notifier in self.notifiers.load().iter().cloned() {
            let (teller, owed) = (Arc::clone(&self), Arc::clone(&owed));
            telling.spawn(async move { teller.notify(notifier, &owed).await });
        }
        telling.join_all().await;
        match self.hub.store().forget_owed(owed.id).await {
            Ok(()) => drop(self.in_hand().insert(owed.id, true)),
            Err(fault) => tracing::error!(%fault, "an alert that was told may be told again after a restart"),
        }
    }

    async fn notify(&self, notifier: NotifyConfig, owed: &Owed) {
        let told = match notifier {
            NotifyConfig::Webhook(url) => self.webhook(url, owed).await,
            NotifyConfig::Command(words) => match self.programs.acquire().await {
                Ok(_place) => command(words, owed.body.clone().into_bytes()).await,
                Err(_) => return,
            },
        };
        let outcome = if told.is_ok() { "delivered" } else { "failed" };
        counter!("flotilla_notifications_total", "outcome" => outcome).increment(1);
        if let Err(problem) = told {
            tracing::error!(problem, "an alert could not be told");
        }
    }

    async fn webhook(&self, url: String, owed: &Owed) -> Result<(), String> {
        let Owed { id, at, task, body } = owed;
        let target = Target { url, origin: String::new(), scheme: String::new(), sealed: Vec::new() };
        let trace = Trace::begun(task.trace(), task.span(0));
        let (id, at, body) = (id.to_string(), *at, body.clone().into_bytes());
        // The version only says how the body is labelled: this one is plain JSON.
        let (options, version) = (PushOptions::default(), Version::V03);
        let parcel = Parcel { id, at, target, options, version, trace, body };
        let mut problem = String::new();
        for pause in PAUSES {
            problem = match self.courier.carry(parcel.clone()).await {
                Came::Answer { status: 200..=299, .. } => return Ok(()),
                Came::Answer { status, .. } => format!("the webhook answered {status}"),
                Came::Failure(why) | Came::Locked(why) => why,
            };
            tokio::time::sleep(pause).await;
        }
        Err(problem)
    }
}

/// The program gets the alert on standard input.
async fn command(words: Vec<String>, body: Vec<u8>) -> Result<(), String> {
    let mut words = words.into_iter();
    let program = words.next().ok_or("no program is named")?;
    let path = OsString::from("/usr/local/bin:/usr/bin:/bin");
    let home = std::env::var_os("HOME").map(|home| ("HOME".into(), home));
    let launch = Launch {
        program: PathBuf::from(program),
        arguments: words.map(OsString::from).collect(),
        environment: [("PATH".into(), path)].into_iter().chain(home).collect(),
        folder: std::env::current_dir().map_err(|error| error.to_string())?,
        mark: format!("notify.{}", uuid::Uuid::now_v7()),
        grace: GRACE,
        limits: Limits::default(),
    };
    let reaper = std::env::current_exe().map_err(|error| error.to_string())?;
    let (mut running, Streams { mut stdin, stdout, stderr }) = launch.start(&reaper)?;
    drop((stdout, stderr));
    let told = async {
        // A program may do without what it is told.
        let _ = stdin.write_all(&body).await;
        drop(stdin);
        running.ended().await
    };
    match tokio::time::timeout(PATIENCE, told).await {
        Ok(Exit::Code(0)) => Ok(()),
        Ok(exit) => Err(format!("the program ended with {exit:?}")),
        Err(_) => {
            running.kill().await;
            Err(format!("the program did not end within {} s", PATIENCE.as_secs()))
        }
    }
}
