//! Agents as such: echo, and what happens when the hub stops listening.

use crate::transcript::{line, saying, script, sending, transcript, uuid_v7};
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::work::Report;
use flotilla_worker::{Agent, Outbox, Stop, Stopped};
use tokio::sync::mpsc;

#[tokio::test(start_paused = true)]
async fn echo_gives_the_parts_back_unchanged() {
    let parts: Vec<Part> =
        serde_json::from_str(r#"[{"text":"hi","x":1},{"raw":"AAAA","filename":"f"},{"data":null}]"#).unwrap();
    let expected = "artifact {\"name\":\"echo\"} {\"text\":\"hi\",\"x\":1} {\"raw\":\"AAAA\",\"filename\":\"f\"} \
                    {\"data\":null} last\nCOMPLETED";
    assert_eq!(transcript(&Agent::Echo, sending("m", parts)).await, expected);
}

#[tokio::test(start_paused = true)]
async fn artifacts_get_fresh_ids() {
    for agent in [Agent::Echo, script("{}").unwrap()] {
        let (sender, mut receiver) = mpsc::channel(8);
        agent.work(saying("a"), Outbox::new(sender.clone()), Stop::pair().1).await;
        agent.work(saying("b"), Outbox::new(sender), Stop::pair().1).await;
        let mut ids = Vec::new();
        while let Some(report) = receiver.recv().await {
            if let Report::Artifact { artifact, .. } = *report {
                assert!(uuid_v7(&artifact.artifact_id));
                ids.push(artifact.artifact_id);
            }
        }
        assert_eq!(ids.len(), 2);
        assert_ne!(ids[0], ids[1]);
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_keep_their_id() {
    let agent = script("otherwise: [artifact: {name: a, chunks: [x, y]}]").unwrap();
    let (sender, mut receiver) = mpsc::channel(8);
    agent.work(saying("a"), Outbox::new(sender), Stop::pair().1).await;
    let mut ids = Vec::new();
    while let Some(report) = receiver.recv().await {
        if let Report::Artifact { artifact, .. } = *report {
            ids.push(artifact.artifact_id);
        }
    }
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_nobody_listens() {
    let agent = script("otherwise: [working, delay: 10m, completed]").unwrap();
    let (sender, mut receiver) = mpsc::channel(1);
    let started = tokio::time::Instant::now();
    let work = tokio::spawn(async move { agent.work(saying("a"), Outbox::new(sender), Stop::pair().1).await });
    assert_eq!(receiver.recv().await.map(|report| line(&report)).as_deref(), Some("WORKING"));
    drop(receiver);
    work.await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_endless_talker_stops_when_nobody_listens() {
    let agent = script("otherwise: [artifact: {chunks: {count: 1000000, text: x}}]").unwrap();
    let (sender, mut receiver) = mpsc::channel(1);
    let work = tokio::spawn(async move { agent.work(saying("a"), Outbox::new(sender), Stop::pair().1).await });
    receiver.recv().await.unwrap();
    drop(receiver);
    work.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_outbox_says_when_it_is_closed() {
    let (sender, receiver) = mpsc::channel(1);
    let outbox = Outbox::new(sender);
    drop(receiver);
    let report = Report::status(flotilla_protocol::a2a::model::TaskState::Working);
    assert_eq!(outbox.report(report).await, Err(Stopped));
    outbox.stopped().await;
    assert_eq!(Stopped.to_string(), "the run was stopped");
}
