//! Alerts on their way to people: a signed webhook, or a program of the operator's own.

use crate::config::NotifyConfig;
use arc_swap::ArcSwap;
use flotilla_core::hub::Hub;
use flotilla_core::notice::{Heard, Notice, What};
use flotilla_core::ports::{Courier, Parcel};
use flotilla_core::push::{Came, Target};
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::lineage::Trace;
use flotilla_worker::supervise::{Exit, Launch, Limits, Streams};
use metrics::counter;
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// How often a webhook is tried, and how long is waited before it is tried again.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it has to end once it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Whom alerts are told, as it is configured now.
pub type Notifiers = Arc<ArcSwap<Vec<NotifyConfig>>>;

/// Runs until the hub stops.
pub async fn tell(hub: Arc<Hub>, courier: Arc<dyn Courier>, notifiers: Notifiers) {
    let mut listener = hub.notices().listen_to_alerts();
    loop {
        let heard = tokio::select! {
            heard = listener.next() => heard,
            () = hub.stopped() => return,
        };
        match heard {
            Some(Heard::Notice(notice)) => {
                for notifier in notifiers.load().iter().cloned() {
                    tokio::spawn(one(Arc::clone(&hub), Arc::clone(&courier), notifier, Arc::clone(&notice)));
                }
            }
            Some(Heard::Missed(count)) => tracing::warn!(count, "alerts were not told to their notifiers"),
            None => return,
        }
    }
}

async fn one(hub: Arc<Hub>, courier: Arc<dyn Courier>, notifier: NotifyConfig, notice: Arc<Notice>) {
    let What::Alert { task, reason, text } = &notice.what else { return };
    let agent = hub.registry().by_id(notice.agent).map(|agent| agent.name.clone());
    let told = json!({"type": "alert", "at": notice.at, "taskId": task.map(|task| task.to_string()), "agent": agent,
        "reason": reason, "text": text});
    let body = told.to_string().into_bytes();
    let told = match notifier {
        NotifyConfig::Webhook(url) => {
            let trace = task.map(|task| Trace::begun(task.trace(), task.span(0)));
            webhook(&*courier, url, body, &notice, trace).await
        }
        NotifyConfig::Command(words) => command(words, body).await,
    };
    let outcome = if told.is_ok() { "delivered" } else { "failed" };
    counter!("flotilla_notifications_total", "outcome" => outcome).increment(1);
    if let Err(problem) = told {
        tracing::error!(problem, "an alert could not be told");
    }
}

async fn webhook(
    courier: &dyn Courier,
    url: String,
    body: Vec<u8>,
    notice: &Notice,
    trace: Option<Trace>,
) -> Result<(), String> {
    let Some(trace) = trace else { return Err("an alert without a task has no webhook".into()) };
    let target = Target { url, origin: String::new(), scheme: String::new(), sealed: Vec::new() };
    let id = uuid::Uuid::now_v7().to_string();
    // The version only says how the body is labelled: this one is plain JSON.
    let (at, options, version) = (notice.at, PushOptions::default(), Version::V03);
    let parcel = Parcel { id, at, target, options, version, trace, body };
    let mut problem = String::new();
    for pause in PAUSES {
        problem = match courier.carry(parcel.clone()).await {
            Came::Answer { status: 200..=299, .. } => return Ok(()),
            Came::Answer { status, .. } => format!("the webhook answered {status}"),
            Came::Failure(why) | Came::Locked(why) => why,
        };
        tokio::time::sleep(pause).await;
    }
    Err(problem)
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
