//! The load generator's command line: `send`, `chunks`, `rpc`, `fill` and `cold`.
#![forbid(unsafe_code)]

mod chunks;
mod closed;
mod cold;
mod fill;
mod http;
mod request;
mod stats;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Closed-loop load generator for A2A 1.0 servers over JSON-RPC")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Blocking SendMessage with a fresh message id each time.
    Send {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        pace: closed::Pace,
    },
    /// The same JSON-RPC body over and over.
    Rpc {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        pace: closed::Pace,
        /// File holding the JSON-RPC request.
        #[arg(long)]
        body: std::path::PathBuf,
    },
    /// SendStreamingMessage with the text `chunks N`, reading the stream to its end.
    Chunks {
        #[command(flatten)]
        server: Server,
        /// Artifact updates the stream must hold.
        #[arg(long)]
        chunks: usize,
        /// Streams to read, one after the other.
        #[arg(long, default_value_t = 5)]
        repeat: usize,
    },
    /// Send a number of messages as fast as possible; print the last task's id.
    Fill {
        #[command(flatten)]
        server: Server,
        /// Messages to send.
        #[arg(long)]
        count: u64,
        /// Connections kept busy.
        #[arg(long, default_value_t = 16)]
        connections: usize,
    },
    /// Start a command; time until GET URL answers 200; stop the command.
    Cold {
        /// For example http://127.0.0.1:4100/healthz
        #[arg(long)]
        url: String,
        /// The command and its arguments, after `--`.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

/// Where requests go.
#[derive(Args)]
struct Server {
    /// JSON-RPC endpoint, for example http://127.0.0.1:4100/
    #[arg(long)]
    url: String,
    /// Sent as `Authorization: Bearer KEY`.
    #[arg(long)]
    key: Option<String>,
}

fn main() -> ExitCode {
    // One thread: the generator shares the machine with the server under test.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime");
    match runtime.and_then(|runtime| runtime.block_on(run(Cli::parse()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<()> {
    let json = cli.json;
    match cli.command {
        Command::Send { server, pace } => {
            let target = http::Target::parse(&server.url)?;
            let text = "hello from the bench";
            let request = request::Request::message(&target, server.key.as_deref(), "SendMessage", text);
            closed::run(target, request, closed::Expect::Completed, pace, json).await
        }
        Command::Rpc { server, pace, body } => {
            let target = http::Target::parse(&server.url)?;
            let body = std::fs::read_to_string(&body).with_context(|| format!("cannot read {}", body.display()))?;
            let request = request::Request::fixed(&target, server.key.as_deref(), body.trim());
            closed::run(target, request, closed::Expect::Result, pace, json).await
        }
        Command::Chunks { server, chunks, repeat } => {
            chunks::run(&server.url, server.key.as_deref(), chunks, repeat, json).await
        }
        Command::Fill { server, count, connections } => {
            fill::run(&server.url, server.key.as_deref(), count, connections, json).await
        }
        Command::Cold { url, command } => cold::run(&url, &command, json),
    }
}
