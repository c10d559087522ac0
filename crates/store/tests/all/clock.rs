//! Webhooks of a hub whose clock jumps: attempts go by the time that passes, and by the clock only over a restart.

use flotilla_core::hub::{Hub, Push, RunHandle, SendOptions};
use flotilla_core::ids::{AgentId, PrincipalId, WorkspaceId};
use flotilla_core::limits::Limits;
use flotilla_core::loops;
use flotilla_core::ports::{Accepting, Clock, Courier, Link, Parcel, Store};
use flotilla_core::push::{Came, Schedule, Target};
use flotilla_core::registry::{Agent, DedupeBy, LeftOpen, OnLost, Registry, Source, Visibility};
use flotilla_protocol::a2a::card::AgentCapabilities;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::{PushConfig, SendMessageRequest};
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Report};
use flotilla_store::memory::Memory;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A clock that says what it is told to.
#[derive(Default)]
struct Told(AtomicI64);

impl Clock for Told {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::Relaxed))
    }
}

/// Ends every task at once.
struct Done;

impl Link for Done {
    fn run(&self, _: Assignment, mut run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let report = Report::Status { state: TaskState::Completed, contents: None, metadata: None };
            let _ = run.report(vec![report]).await;
            run.finish().await;
        })
    }
}

/// Fails so often, tells of every attempt, and sets the clock to something else each time.
struct Failing {
    left: AtomicUsize,
    clock: Arc<Told>,
    jumps: Vec<i64>,
    attempts: mpsc::UnboundedSender<(String, Instant)>,
}

impl Courier for Failing {
    fn accept(&self, config: PushConfig, _: PushOptions) -> Accepting {
        let target = Target { origin: config.url.clone(), url: config.url, scheme: String::new(), sealed: Vec::new() };
        Box::pin(std::future::ready(Ok(target)))
    }

    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Came> + Send>> {
        let _ = self.attempts.send((parcel.id, Instant::now()));
        let left = self.left.load(Ordering::Relaxed);
        let came = if left == 0 {
            Came::Answer { status: 200, retry_after: None }
        } else {
            self.left.store(left - 1, Ordering::Relaxed);
            self.clock.0.store(self.jumps[left % self.jumps.len()], Ordering::Relaxed);
            Came::Failure("not yet".into())
        };
        Box::pin(std::future::ready(came))
    }

    fn is_locked(&self, _: &Target) -> bool {
        false
    }
}

fn agent() -> Agent {
    Agent {
        id: AgentId(1),
        name: "done".into(),
        owner: PrincipalId::OWNER,
        workspace: WorkspaceId::DEFAULT,
        visibility: Visibility::Public,
        description: String::new(),
        version: String::new(),
        capabilities: AgentCapabilities { push_notifications: true, ..AgentCapabilities::default() },
        input_modes: vec!["*/*".into()],
        output_modes: vec!["*/*".into()],
        checks_modes: true,
        extended: None,
        skills: Vec::new(),
        dedupe: DedupeBy::MessageId,
        on_lost: OnLost::Fail,
        versions: Vec::new(),
        left_open: LeftOpen::default(),
        source: Source::Registered,
        link: Arc::new(Done),
    }
}

fn request() -> SendMessageRequest {
    let text = r#"{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]},
        "configuration": {"returnImmediately": true, "taskPushNotificationConfig": {"url": "https://example.com"}}}"#;
    serde_json::from_str(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_changes_nothing_about_the_schedule() {
    let clock = Arc::new(Told(AtomicI64::new(1_700_000_000_000)));
    let (attempts, mut told) = mpsc::unbounded_channel();
    let jumps = vec![0, i64::MAX / 4, 1_700_000_000_000, -5];
    let courier = Arc::new(Failing { left: AtomicUsize::new(9), clock: Arc::clone(&clock), jumps, attempts });
    let store: Arc<dyn Store> = Arc::new(Memory::new().unwrap());
    let push = Push { courier, schedule: Schedule::default() };
    let hub = Hub::new(store, clock, Registry::new([agent()], None), Limits::default(), push, Arc::default());
    tokio::spawn(loops::push::deliver(Arc::clone(&hub)));
    let caller = flotilla_core::caller::Caller::anonymous();
    let registry = hub.registry();
    let agent = registry.by_name("done").unwrap();
    assert!(hub.send(&caller, agent, Box::new(request()), SendOptions::default()).await.is_ok());
    let (first, mut last) = told.recv().await.unwrap();
    for seconds in [5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0] {
        let (id, at) = told.recv().await.unwrap();
        let waited = (at - last).as_secs_f64();
        assert!((0.9 * seconds..=1.1 * seconds + 0.01).contains(&waited), "{waited} s instead of {seconds}");
        assert_eq!(id, first, "the same delivery");
        last = at;
    }
    let (next, at) = told.recv().await.unwrap();
    assert!(next != first && at - last < Duration::from_secs(1), "then the next one, at once");
}
