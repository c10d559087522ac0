//! This machine's agents as members of a hub elsewhere: each has a connection out, its runs, and a folder for what is
//! not told yet (docs/worker.md).

mod ask;
pub mod dial;
mod hand;
mod leftover;
mod look;
mod post;
mod profile;
pub mod receipt;
mod spool;
mod talk;

pub use look::{Looking, PAUSE, look_for, see};
pub use post::LocalAgent;
pub use profile::{Find, Found, Looks, Profile, now};

use dial::{Hub, NoWay};
use post::Post;
use spool::Room;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use talk::Parting;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The first pause before the hub is tried again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A connection that held so long was a good one.
const GOOD: Duration = Duration::from_secs(10);
/// For programs to end and for the last word to reach the hub, when a drain took too long.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How a worker is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it keeps what is not told yet.
    pub state: PathBuf,
    /// How much of that there may be, in bytes.
    pub buffer: u64,
    /// How long programs run on without a hub.
    pub grace: Duration,
    /// How long runs may take to end when it is asked to stop.
    pub drain: Duration,
    /// How often agents, their servers and their repositories are looked at.
    pub look: Duration,
}

/// How far a worker is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Working,
    Draining,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything was done and told.
    Drained,
    /// So many runs were cut short, or are still to be told of at the next start.
    CutShort(usize),
}

/// Works until asked to stop: the first word drains, the second ends at once. Fails if the hub does not want an agent.
pub async fn attach(
    hub: Hub,
    agents: Vec<LocalAgent>,
    options: &Options,
    mut asked: mpsc::Receiver<()>,
) -> Result<Ended, String> {
    let posts = posts(agents, options).await?;
    let (tell, stage) = watch::channel(Stage::Working);
    let hub = Arc::new(hub);
    let mut attending = JoinSet::new();
    for post in &posts {
        attending.spawn(attend(Arc::clone(post), Arc::clone(&hub), options.grace, stage.clone()));
    }
    let mut looking = JoinSet::new();
    for post in &posts {
        looking.spawn(look::keep_looking(Arc::clone(post), options.look));
    }
    let mut until: Option<Instant> = None;
    let mut stopped = false;
    let untold = || posts.iter().map(|post| post.untold()).sum();
    loop {
        let over = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = attending.join_next() => match ended {
                None if stopped => return Ok(Ended::CutShort(0)),
                None => return Ok(Ended::Drained),
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(problem))) => return Err(problem),
                Some(Err(panic)) => return Err(format!("a connection broke off: {panic}")),
            },
            Some(()) = asked.recv() => {
                if until.is_some() {
                    return Ok(Ended::CutShort(untold()));
                }
                let working: usize = posts.iter().map(|post| post.working()).sum();
                tracing::info!(working, "draining: no new runs; a second signal stops at once");
                until = Some(Instant::now() + options.drain);
                posts.iter().for_each(|post| post.drain());
                tell.send_replace(Stage::Draining);
            }
            () = over => {
                if stopped {
                    return Ok(Ended::CutShort(untold()));
                }
                let reason = format!("its worker was stopped, and waited {} s for it to end", options.drain.as_secs());
                stopped = posts.iter().any(|post| post.working() > 0);
                posts.iter().for_each(|post| post.stop_all(&reason));
                if !stopped {
                    return Ok(Ended::CutShort(untold()));
                }
                until = Some(Instant::now() + LAST_WORDS);
            }
        }
    }
}

/// A post for every agent, with what an earlier process left of its runs.
async fn posts(agents: Vec<LocalAgent>, options: &Options) -> Result<Vec<Arc<Post>>, String> {
    let room = Room::new(options.buffer);
    let mut posts = Vec::new();
    for agent in agents {
        let folder = options.state.join("runs").join(&agent.name);
        let unusable = |folder: &Path, error: std::io::Error| {
            format!("the state folder {} cannot be used: {error}; choose another with --state", folder.display())
        };
        std::fs::create_dir_all(&folder).map_err(|error| unusable(&folder, error))?;
        let (place, shared) = (folder.clone(), Arc::clone(&room));
        let swept = tokio::task::spawn_blocking(move || leftover::sweep(&place, &shared)).await;
        let swept = swept.map_err(std::io::Error::other).and_then(|swept| swept);
        let leftovers = swept.map_err(|error| unusable(&folder, error))?;
        posts.push(Post::new(agent, folder, Arc::clone(&room), leftovers));
    }
    Ok(posts)
}

/// Keeps one agent connected. Ends when a drain is done, or with the reason why the hub does not want it.
async fn attend(
    post: Arc<Post>,
    hub: Arc<Hub>,
    grace: Duration,
    mut stage: watch::Receiver<Stage>,
) -> Result<(), String> {
    let name = &post.agent.name;
    // What it says when it connects depends on whether it can work.
    let mut usable = post.usable.subscribe();
    tokio::select! {
        _ = usable.wait_for(Option::is_some) => {}
        _ = stage.changed() => {}
    }
    let (mut resume, mut pause) = (None, FIRST_PAUSE);
    let (mut heard, mut cut) = (Instant::now(), None);
    loop {
        let reached = {
            let reaching = reach(&post, &hub, &mut resume, (&mut pause, cut.take()), &mut stage);
            tokio::pin!(reaching);
            tokio::select! {
                reached = &mut reaching => reached?,
                () = tokio::time::sleep(grace.saturating_sub(heard.elapsed())) => {
                    end_what_is_at_work(&post, grace);
                    reaching.await?
                }
            }
        };
        let Some((socket, quiet)) = reached else { break };
        tracing::info!(agent = name, "connected");
        let connected = Instant::now();
        let parting = talk::talk(&post, socket, quiet, &mut stage).await;
        pause = if connected.elapsed() > GOOD { FIRST_PAUSE } else { pause };
        heard = Instant::now();
        match parting {
            Parting::Drained => break,
            Parting::Replaced => return Err(replaced(name)),
            Parting::Anew => {}
            Parting::Cut(problem) => cut = Some(problem),
        }
    }
    tracing::info!(agent = name, "drained");
    Ok(())
}

fn end_what_is_at_work(post: &Post, grace: Duration) {
    if post.working() > 0 {
        let agent = &post.agent.name;
        tracing::warn!(agent, "the hub is away for too long; what is at work is ended (worker.grace)");
        post.stop_all(&format!("its worker could not reach the hub for {} s", grace.as_secs()));
    }
}

/// Tries until the hub answers; nothing if a drain was done meanwhile. After a cut the first try comes after a pause.
async fn reach(
    post: &Arc<Post>,
    hub: &Hub,
    resume: &mut Option<String>,
    (pause, cut): (&mut Duration, Option<String>),
    stage: &mut watch::Receiver<Stage>,
) -> Result<Option<(dial::Socket, Duration)>, String> {
    let agent = &post.agent.name;
    let (mut problem, mut is_told) = (cut, false);
    while *stage.borrow() == Stage::Working || !post.is_idle() {
        if let Some(problem) = problem.take() {
            if !std::mem::replace(&mut is_told, true) {
                let working = post.working();
                tracing::warn!(agent, working, "the hub cannot be reached, and is tried again: {problem}");
            }
            tokio::select! {
                () = tokio::time::sleep(jittered(*pause)) => {}
                _ = stage.changed() => {}
            }
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            continue;
        }
        match connect(post, hub, resume).await {
            Ok(connected) => return Ok(Some(connected)),
            Err(NoWay::Refused(problem)) => {
                return Err(format!("the hub does not take the agent '{agent}': {problem}"));
            }
            Err(NoWay::Later(why)) => problem = Some(why),
        }
    }
    Ok(None)
}

async fn connect(post: &Arc<Post>, hub: &Hub, resume: &mut Option<String>) -> Result<(dial::Socket, Duration), NoWay> {
    let mut socket = hub.dial(&post.agent.name, post.agent.places, resume.as_deref()).await?;
    let (token, quiet) = talk::welcomed(post, &mut socket).await.map_err(NoWay::Later)?;
    *resume = token;
    Ok((socket, quiet))
}

fn replaced(name: &str) -> String {
    format!(
        "another connection has taken the place of the agent '{name}': is there a second worker? Give it another name, or \
         have the hub share the work (sockets.connections: share)"
    )
}

/// Between half of it and all of it, so that workers which were cut off together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_u64_pair().1 % 1_000;
    pause / 2 + (pause / 2).mul_f64(random as f64 / 1_000.0)
}
