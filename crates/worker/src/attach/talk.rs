//! One conversation with the hub, from its welcome to the cut.

use super::Stage;
use super::dial::Socket;
use super::post::Post;
use flotilla_protocol::hub_frame::{simple, worker::Heard};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// How long the hub may take nothing of what is written to it.
const WRITE: Duration = Duration::from_secs(30);
/// After so many pings the answers are pushed out, and a hub that has read none of so many is cut off.
const PONGS: usize = 256;
const UNREAD_PONGS: usize = 4096;
/// How long a welcome may take.
const WELCOME: Duration = Duration::from_secs(20);
/// The hub asks so often whether a quiet connection is there, if it does not say.
const HEARTBEAT: u64 = 30;
/// The code of a connection whose place another has taken.
const REPLACED: u16 = 4000;

/// How a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parting {
    Cut(String),
    /// Another has taken this agent's place, and would again.
    Replaced,
    /// All is told, and no more was wanted.
    Drained,
    /// The agent can work now, or cannot any more: the hub is told so by a connection of its own.
    Anew,
}

/// Waits for the hub's first words. What to show in order to go on after a cut.
pub async fn welcomed(post: &Post, socket: &mut Socket) -> Result<(Option<String>, Duration), String> {
    let first = async {
        while let Some(frame) = socket.next().await {
            if let Message::Text(text) = frame.map_err(|error| error.to_string())? {
                return Ok(text);
            }
        }
        Err("the hub closed the connection".to_owned())
    };
    let text = tokio::time::timeout(WELCOME, first).await.map_err(|_| "the hub said nothing")??;
    match Heard::read(&text) {
        Ok(Heard::Welcome(welcome)) => {
            if let Some(bytes) = welcome.frame_bytes {
                post.set_frame(bytes);
            }
            let heartbeat = if welcome.heartbeat_seconds == 0 { HEARTBEAT } else { welcome.heartbeat_seconds };
            Ok((welcome.resume_token, Duration::from_secs(2 * heartbeat + 5)))
        }
        _ => Err("what answers there is no hub".to_owned()),
    }
}

/// Talks until the connection ends. `quiet` is how long the hub may be silent.
pub async fn talk(post: &Arc<Post>, socket: Socket, quiet: Duration, stage: &mut watch::Receiver<Stage>) -> Parting {
    let (sink, stream) = socket.split();
    let (say, said) = mpsc::unbounded_channel();
    for frame in post.hello() {
        let _ = say.send(frame);
    }
    let mut usable = post.usable.subscribe();
    let is_usable = *usable.borrow_and_update() == Some(true);
    let pongs = AtomicUsize::new(0);
    let mut speaker =
        Speaker { post, sink, said, drain_told: false, announced: None, again: quiet / 3, is_usable, pongs: &pongs };
    tokio::select! {
        Ok(_) = usable.wait_for(|now| *now != Some(is_usable)) => Parting::Anew,
        parting = hear(post, stream, say, quiet, &pongs) => parting,
        parting = speaker.speak(stage) => parting.unwrap_or_else(Parting::Cut),
    }
}

async fn hear(
    post: &Arc<Post>,
    mut stream: SplitStream<Socket>,
    say: mpsc::UnboundedSender<String>,
    quiet: Duration,
    pongs: &AtomicUsize,
) -> Parting {
    loop {
        let frame = match tokio::time::timeout(quiet, stream.next()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Parting::Cut(error.to_string()),
            Ok(None) => return Parting::Cut("the connection was cut".into()),
            Err(_) => return Parting::Cut(format!("nothing was heard of the hub for {} s", quiet.as_secs())),
        };
        match frame {
            Message::Text(text) => {
                if let Some(answer) = take(post, &text) {
                    let _ = say.send(answer);
                }
            }
            Message::Close(Some(CloseFrame { code, .. })) if u16::from(code) == REPLACED => return Parting::Replaced,
            Message::Close(Some(CloseFrame { reason, .. })) => return Parting::Cut(reason.to_string()),
            Message::Close(None) => return Parting::Cut("the hub closed the connection".into()),
            // Pings are answered below this; the speaker pushes the answers out.
            Message::Ping(_) => match pongs.fetch_add(1, Ordering::Relaxed) + 1 {
                UNREAD_PONGS.. => return Parting::Cut("the hub sends pings and reads no answers".into()),
                count if count.is_multiple_of(PONGS) => drop(say.send(String::new())),
                _ => {}
            },
            _ => {}
        }
    }
}

/// What one frame of the hub's asks for; what to answer.
fn take(post: &Arc<Post>, text: &str) -> Option<String> {
    match Heard::read(text) {
        Ok(Heard::Run(run)) => post.take(*run),
        Ok(Heard::Cancel { task, run }) => post.cancel(&task, run),
        Ok(Heard::Kept(kept)) => {
            post.kept(&kept);
            None
        }
        Ok(Heard::More(more)) => {
            post.more(*more);
            None
        }
        Ok(Heard::Decided { task, id, decision }) => {
            post.decided(&task, &id, &decision);
            None
        }
        Ok(Heard::Problem(problem)) => {
            if !problem.id.is_some_and(|id| post.not_taken(&id, &problem.message)) {
                let (agent, task) = (&post.agent.name, problem.task_id);
                tracing::warn!(agent, task, "the hub says: {}", problem.message);
            }
            None
        }
        Ok(Heard::Welcome(_) | Heard::Announced(_) | Heard::Other) => None,
        Err(error) => {
            tracing::error!(agent = post.agent.name, %error, "a frame of the hub's is not understood");
            None
        }
    }
}

struct Speaker<'a> {
    post: &'a Arc<Post>,
    sink: SplitSink<Socket, Message>,
    /// Answers, and what was known when the connection was made.
    said: mpsc::UnboundedReceiver<String>,
    drain_told: bool,
    /// The epoch that was announced, and when it is to be said again.
    announced: Option<(Option<u64>, Instant)>,
    again: Duration,
    /// Whether there is somebody to do the work.
    is_usable: bool,
    /// Pings since the answers to them were last pushed out.
    pongs: &'a AtomicUsize,
}

impl Speaker<'_> {
    async fn speak(&mut self, stage: &mut watch::Receiver<Stage>) -> Result<Parting, String> {
        self.feed(self.card()?).await?;
        loop {
            let mut woken = std::pin::pin!(self.post.wake.notified());
            woken.as_mut().enable();
            while let Ok(answer) = self.said.try_recv() {
                self.feed(answer).await?;
            }
            let is_leaving = *stage.borrow_and_update() != Stage::Working;
            if (is_leaving || !self.is_usable) && !std::mem::replace(&mut self.drain_told, true) {
                self.feed(simple("drain")).await?;
            }
            if is_leaving && self.post.is_idle() {
                return self.part().await;
            }
            self.announce().await?;
            while let Some(frame) = self.post.next_frame() {
                self.feed(frame).await?;
            }
            let pongs = self.pongs.load(Ordering::Relaxed);
            in_time(self.sink.flush()).await?;
            self.pongs.fetch_sub(pongs, Ordering::Relaxed);
            tokio::select! {
                () = woken => {}
                Some(answer) = self.said.recv() => self.feed(answer).await?,
                _ = stage.changed() => {}
                () = tokio::time::sleep(self.again) => {}
            }
        }
    }

    /// What is new is announced at once, and what is not as often as a heart beats.
    async fn announce(&mut self) -> Result<(), String> {
        let Some(epoch) = self.post.profile.current().map(|profile| profile.epoch) else { return Ok(()) };
        let is_due = self.announced.is_none_or(|(told, at)| told != epoch || at.elapsed() >= self.again);
        if is_due && let Some(frame) = self.post.announcement() {
            self.announced = Some((epoch, Instant::now()));
            self.feed(frame).await?;
        }
        Ok(())
    }

    fn card(&self) -> Result<String, String> {
        let card = RawValue::from_string(self.post.agent.card.clone()).map_err(|error| error.to_string())?;
        Ok(serde_json::json!({"type": "update_card", "agentCard": card}).to_string())
    }

    async fn part(&mut self) -> Result<Parting, String> {
        let close = CloseFrame { code: CloseCode::Normal, reason: "drained".into() };
        in_time(self.sink.send(Message::Close(Some(close)))).await?;
        Ok(Parting::Drained)
    }

    /// An empty text only asks to push out what was written.
    async fn feed(&mut self, text: String) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        in_time(self.sink.feed(Message::text(text))).await
    }
}

async fn in_time<E: std::fmt::Display>(writing: impl Future<Output = Result<(), E>>) -> Result<(), String> {
    match tokio::time::timeout(WRITE, writing).await {
        Ok(written) => written.map_err(|error| error.to_string()),
        Err(_) => Err("the hub took nothing of what was written".into()),
    }
}
