//! `cold`: the time from starting a server to its first answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::http::Target;
use crate::stats::print;

const GIVE_UP: Duration = Duration::from_secs(30);
const BETWEEN_TRIES: Duration = Duration::from_micros(200);

pub fn run(url: &str, command: &[String], as_json: bool) -> Result<()> {
    let target = Target::parse(url)?;
    if answers(&target) {
        bail!("{url} answers before the command is started");
    }
    let (program, arguments) = command.split_first().context("no command given")?;
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let waited = wait(&mut child, &target, started);
    let _ = child.kill();
    child.wait().context("cannot reap the command")?;
    let milliseconds = waited?.as_secs_f64() * 1000.0;
    print(&json!({"cold_ms": (milliseconds * 100.0).round() / 100.0}), as_json);
    Ok(())
}

fn wait(child: &mut Child, target: &Target, started: Instant) -> Result<Duration> {
    while started.elapsed() < GIVE_UP {
        if answers(target) {
            return Ok(started.elapsed());
        }
        if let Some(status) = child.try_wait().context("cannot watch the command")? {
            bail!("the command stopped before it answered: {status}");
        }
        sleep(BETWEEN_TRIES);
    }
    bail!("no answer within {GIVE_UP:?}")
}

/// Whether a GET is answered with 200 now.
fn answers(target: &Target) -> bool {
    let get = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(&target.authority)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let (path, host) = (&target.path, &target.authority);
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        Ok(start.ends_with(b" 200"))
    };
    get().unwrap_or(false)
}
