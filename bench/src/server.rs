//! The servers under test: how each is started, where it answers, and how it is stopped.

mod hop;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::load::call::{Binding, Call, Endpoint};

pub use hop::Way;

/// How long a server may take until its first answer.
const START_LIMIT: Duration = Duration::from_secs(30);
const BETWEEN_TRIES: Duration = Duration::from_micros(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    Hub,
    HubMemory,
    Official,
    OfficialMimalloc,
    Protocol,
    Javascript,
    Python,
    Ceiling,
}

impl Server {
    pub const ALL: [Server; 8] = [
        Server::Hub,
        Server::HubMemory,
        Server::Official,
        Server::OfficialMimalloc,
        Server::Protocol,
        Server::Javascript,
        Server::Python,
        Server::Ceiling,
    ];

    /// As given to `--servers` and written to the results.
    pub fn name(self) -> &'static str {
        match self {
            Server::Hub => "hub",
            Server::HubMemory => "hub-memory",
            Server::Official => "official",
            Server::OfficialMimalloc => "official-mimalloc",
            Server::Protocol => "protocol",
            Server::Javascript => "javascript",
            Server::Python => "python",
            Server::Ceiling => "ceiling",
        }
    }

    /// As shown to readers.
    pub fn label(self) -> &'static str {
        match self {
            Server::Hub => "Flotilla, durable",
            Server::HubMemory => "Flotilla, --memory",
            Server::Official => "a2a-server-lf",
            Server::OfficialMimalloc => "a2a-server-lf, mimalloc",
            Server::Protocol => "a2a-protocol-server",
            Server::Javascript => "@a2a-js/sdk",
            Server::Python => "a2a-sdk",
            Server::Ceiling => "bare axum",
        }
    }

    pub fn is_hub(self) -> bool {
        matches!(self, Server::Hub | Server::HubMemory)
    }

    /// What this repository holds, and not a package from a registry.
    pub fn is_ours(self) -> bool {
        self.is_hub() || self == Server::Ceiling
    }

    /// The ceiling keeps nothing, so it has no tasks to read or follow.
    pub fn has_tasks(self) -> bool {
        self != Server::Ceiling
    }
}

/// Where the programs are, and what all servers of a run share.
#[derive(Debug)]
pub struct Fleet {
    pub hub: PathBuf,
    /// This benchmark's folder.
    pub bench: PathBuf,
    /// Where the ceiling's program is.
    pub ours: PathBuf,
    /// Where the Rust peers' programs are, if they are built.
    pub rust_peers: Option<PathBuf>,
    pub python: Option<PathBuf>,
    pub node: Option<PathBuf>,
    pub nginx: Option<PathBuf>,
    /// For data directories and logs.
    pub scratch: PathBuf,
    pub key: String,
}

impl Fleet {
    /// Whether this server's program is there.
    pub fn has(&self, server: Server) -> bool {
        match server {
            Server::Hub | Server::HubMemory | Server::Ceiling => true,
            Server::Official | Server::OfficialMimalloc | Server::Protocol => self.rust_peers.is_some(),
            Server::Javascript => self.node.is_some(),
            Server::Python => self.python.is_some(),
        }
    }

    pub fn data_dir(&self, server: Server) -> PathBuf {
        self.scratch.join(format!("data-{}", server.name()))
    }

    fn command(&self, server: Server, http: u16, grpc: u16) -> Result<Command> {
        let missing = || format!("{} is not set up", server.label());
        let peer = |name: &str| -> Result<Command> {
            Ok(Command::new(self.rust_peers.as_ref().with_context(missing)?.join(name)))
        };
        let mut command = match server {
            Server::Hub | Server::HubMemory => {
                let mut command = Command::new(&self.hub);
                command.arg("serve").arg("--config").arg(self.bench.join("hub.yaml"));
                command.args(["--listen", &format!("127.0.0.1:{http}")]).env("FLOTILLA_OWNER_KEY", &self.key);
                if server == Server::Hub {
                    command.arg("--data-dir").arg(self.data_dir(server));
                } else {
                    command.arg("--memory");
                }
                return Ok(command);
            }
            Server::Official => peer("official")?,
            Server::OfficialMimalloc => peer("official-mimalloc")?,
            Server::Protocol => peer("protocol")?,
            Server::Ceiling => Command::new(self.ours.join("ceiling")),
            Server::Python => {
                let mut command = Command::new(self.python.as_ref().with_context(missing)?);
                command.arg("-B").arg(self.bench.join("peers/python/server.py"));
                command
            }
            Server::Javascript => {
                let mut command = Command::new(self.node.as_ref().with_context(missing)?);
                command.arg(self.bench.join("peers/javascript/server.js")).env("NODE_ENV", "production");
                command
            }
        };
        command.arg(format!("127.0.0.1:{http}")).arg(format!("127.0.0.1:{grpc}"));
        Ok(command)
    }

    /// Starts a server with an empty store and waits for its first answer.
    pub fn start(&self, server: Server) -> Result<Running> {
        let _ = std::fs::remove_dir_all(self.data_dir(server));
        self.start_again(server)
    }

    /// The same with the store as it was left.
    pub fn start_again(&self, server: Server) -> Result<Running> {
        let (http, grpc) = (free_port()?, free_port()?);
        let key = server.is_hub().then(|| self.key.clone());
        self.launch(server, self.command(server, http, grpc)?, (http, grpc), key)
    }

    /// Starts what will answer as this server does, and waits for its first answer.
    fn launch(
        &self,
        server: Server,
        mut command: Command,
        (http, grpc): (u16, u16),
        key: Option<String>,
    ) -> Result<Running> {
        let log = self.scratch.join(format!("{}-{http}.log", server.name()));
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out.try_clone().context("log")?).stderr(out);
        let began = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut running = Running { server, child, http, grpc, key, first_answer: Duration::ZERO };
        match running.wait(began) {
            Ok(took) => running.first_answer = took,
            Err(error) => {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                bail!("{error:#}; its last words: {}", last.into_iter().rev().collect::<Vec<_>>().join(" / "));
            }
        }
        Ok(running)
    }
}

/// A server that answers. It is killed when dropped.
#[derive(Debug)]
pub struct Running {
    pub server: Server,
    child: Child,
    http: u16,
    grpc: u16,
    key: Option<String>,
    /// From the start of the process to its first answered SendMessage.
    pub first_answer: Duration,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where the echo agent is.
    pub fn endpoint(&self, binding: Binding) -> Endpoint {
        let (port, path) = match (binding, self.server) {
            (Binding::JsonRpc, _) => (self.http, "/"),
            (Binding::HttpJson, Server::Official | Server::OfficialMimalloc) => (self.http, "/rest"),
            (Binding::HttpJson, _) => (self.http, ""),
            (Binding::Grpc, Server::Hub | Server::HubMemory) => (self.http, ""),
            (Binding::Grpc, _) => (self.grpc, ""),
        };
        Endpoint { binding, address: format!("127.0.0.1:{port}"), path: path.into(), key: self.key.clone() }
    }

    /// Where the agent is that streams and idles, over JSON-RPC. The peers have one agent for all.
    pub fn stream_endpoint(&self) -> Endpoint {
        let mut endpoint = self.endpoint(Binding::JsonRpc);
        if self.server.is_hub() {
            endpoint.path = "/agents/chunks".into();
        }
        endpoint
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait(&mut self, began: Instant) -> Result<Duration> {
        let endpoint = self.endpoint(Binding::JsonRpc);
        let mut call = Call::send(&endpoint)?;
        let request = call.stamp(0).to_vec();
        while began.elapsed() < START_LIMIT {
            if answers(&endpoint.address, &request) {
                return Ok(began.elapsed());
            }
            if let Some(status) = self.child.try_wait().context("cannot watch the server")? {
                bail!("{} stopped before it answered: {status}", self.server.label());
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
        bail!("{} did not answer within {START_LIMIT:?}", self.server.label())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a request is answered with 200 now.
fn answers(address: &str, request: &[u8]) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(request)?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        Ok(start.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

/// A port that nobody listens on, below the range that the system gives to clients, so that none takes it in between.
fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 2_000) as u16 * 4;
    for _ in 0..1_000 {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port from {first} on")
}

/// Whether there is a program at this path.
pub fn program(path: PathBuf) -> Result<PathBuf> {
    if !Path::is_file(&path) {
        bail!("there is no program at {}", path.display());
    }
    Ok(path)
}
