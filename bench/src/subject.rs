//! The subjects of the benchmark, and how much of each is done.

pub mod hop;
pub mod idle;
pub mod reads;
pub mod recovery;
pub mod send;
pub mod start;
pub mod streams;

use std::time::{Duration, Instant};

use crate::results::Results;
use crate::server::{Fleet, Running, Server};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Send,
    Hop,
    Streams,
    Reads,
    Start,
    Idle,
    Recovery,
}

impl Subject {
    pub const ALL: [Subject; 7] = [
        Subject::Send,
        Subject::Hop,
        Subject::Streams,
        Subject::Reads,
        Subject::Start,
        Subject::Idle,
        Subject::Recovery,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Subject::Send => "send",
            Subject::Hop => "hop",
            Subject::Streams => "streams",
            Subject::Reads => "reads",
            Subject::Start => "start",
            Subject::Idle => "idle",
            Subject::Recovery => "recovery",
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
pub struct Size {
    /// Rounds of SendMessage; the other subjects take at most `short_rounds`.
    pub rounds: usize,
    pub short_rounds: usize,
    /// How often within a round what each server can do is measured, in turn: the machine is not as fast at all times.
    pub turns: usize,
    pub warmup: Duration,
    pub window: Duration,
    pub chunks: Vec<usize>,
    pub readers: Vec<usize>,
    /// Tasks in the store that all servers are read from.
    pub tasks: u64,
    /// Tasks in the store that only the hub is read from.
    pub many_tasks: u64,
    pub idle_streams: usize,
    pub recovered_tasks: u64,
}

impl Size {
    pub fn full() -> Size {
        Size {
            rounds: 3,
            short_rounds: 3,
            turns: 3,
            warmup: Duration::from_millis(300),
            window: Duration::from_millis(1000),
            chunks: vec![100, 1_000, 10_000],
            readers: vec![1, 100],
            tasks: 10_000,
            many_tasks: 1_000_000,
            idle_streams: 1_000,
            recovered_tasks: 100_000,
        }
    }

    /// Everything once and little of it: to see that it works, not how fast it is.
    pub fn quick() -> Size {
        Size {
            rounds: 1,
            short_rounds: 1,
            turns: 1,
            warmup: Duration::from_millis(50),
            window: Duration::from_millis(250),
            chunks: vec![100, 1_000],
            readers: vec![1, 10],
            tasks: 500,
            many_tasks: 2_000,
            idle_streams: 50,
            recovered_tasks: 2_000,
        }
    }
}

/// One run: what is measured, with what, and what came of it.
pub struct Bench {
    pub fleet: Fleet,
    pub servers: Vec<Server>,
    pub size: Size,
    pub results: Results,
}

impl Bench {
    /// Measures a subject; what goes wrong is in the results, and the other subjects go on.
    pub async fn measure(&mut self, subject: Subject) {
        let started = Instant::now();
        eprintln!("== {}", subject.name());
        match subject {
            Subject::Send => send::run(self).await,
            Subject::Hop => hop::run(self).await,
            Subject::Streams => streams::run(self).await,
            Subject::Reads => reads::run(self).await,
            Subject::Start => start::run(self).await,
            Subject::Idle => idle::run(self).await,
            Subject::Recovery => recovery::run(self).await,
        }
        eprintln!("== {}: {} s", subject.name(), started.elapsed().as_secs());
    }

    /// Ratios are against the official Rust server, or what there is instead of it.
    pub fn baseline(&self) -> Server {
        let preferred = [Server::Official, Server::Ceiling, Server::Hub];
        let there = preferred.into_iter().find(|server| self.servers.contains(server));
        there.or(self.servers.first().copied()).unwrap_or(Server::Official)
    }

    /// Starts a server; one that does not start is reported and left out for the rest of the run.
    pub fn start(&mut self, server: Server) -> Option<Running> {
        match self.fleet.start(server) {
            Ok(running) => Some(running),
            Err(error) => {
                self.results.fault(server, "left out from here on", &error);
                self.servers.retain(|other| *other != server);
                None
            }
        }
    }
}
