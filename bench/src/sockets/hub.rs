//! A hub of its own for the measurement, with a key for agents.

use anyhow::{Context, Result, ensure};
use flotilla_bench::load::http::Connection;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

pub struct Hub {
    child: Child,
    pub address: String,
    key: String,
    pub agent_key: String,
    data: PathBuf,
}

impl Hub {
    pub fn start(binary: &str, scratch: &str) -> Result<Self> {
        let data = PathBuf::from(scratch).join(format!("sockets-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        let key = format!("flk_{}", "b".repeat(64));
        let (child, address) = launch(binary, &data, &key)?;
        let scopes = "agents:connect,tasks:read,tasks:write";
        let made = Command::new(binary)
            .args(["keys", "create", "swarm", "--scope", scopes, "--data-dir"])
            .arg(&data)
            .output()
            .context("cannot make a key")?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let agent_key = String::from_utf8(made.stdout)?.trim().to_owned();
        Ok(Self { child, address, key, agent_key, data })
    }

    /// The same hub in a new process, which holds no memory of what was before.
    pub fn restart(&mut self, binary: &str) -> Result<()> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        (self.child, self.address) = launch(binary, &self.data, &self.key)?;
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SendMessage to an agent, which returns at once.
    pub fn request(&self, agent: &str, number: usize) -> Vec<u8> {
        let body = format!(
            r#"{{"message":{{"messageId":"m-{number}","role":"ROLE_USER","parts":[{{"text":"hello"}}]}},"configuration":{{"returnImmediately":true}}}}"#
        );
        let (address, key, length) = (&self.address, &self.key, body.len());
        format!(
            "POST /agents/{agent}/message:send HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             a2a-version: 1.0\r\ncontent-type: application/a2a+json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>> {
        let (address, key) = (&self.address, &self.key);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\na2a-version: 1.0\r\n\r\n"
        );
        let mut body = Vec::new();
        let status = Connection::open(address).await?.call(request.as_bytes(), &mut body).await?;
        ensure!(status == 200, "{path}: {status}");
        Ok(body)
    }

    /// A task, once it has ended.
    pub async fn task(&self, agent: &str, id: &str) -> Result<Value> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let task: Value = serde_json::from_slice(&self.get(&format!("/agents/{agent}/tasks/{id}")).await?)?;
            let state = task["status"]["state"].as_str().unwrap_or_default();
            if !matches!(state, "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING") || Instant::now() > deadline {
                return Ok(task);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.get("/readyz").await.is_err() {
            ensure!(Instant::now() < deadline, "the hub is not ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Waits until so many sockets are open.
    pub async fn until_open(&self, sockets: usize) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let metrics = String::from_utf8(self.get("/metrics").await?)?;
            let open = metrics.lines().find_map(|line| line.strip_prefix("flotilla_sockets_open "));
            if open.and_then(|open| open.trim().parse::<f64>().ok()) == Some(sockets as f64) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{sockets} sockets are not open: {open:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn launch(binary: &str, data: &Path, key: &str) -> Result<(Child, String)> {
    let mut child = Command::new(binary)
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .env("FLOTILLA_OWNER_KEY", key)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {binary}"))?;
    let stdout = child.stdout.take().context("no output")?;
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let told = lines.find_map(|line| line.trim().strip_prefix("JSON-RPC").map(|url| url.trim().to_owned()));
    // The rest of the banner is of no interest, but somebody must take it.
    std::thread::spawn(move || lines.for_each(drop));
    let address = told.context("the hub did not start")?;
    Ok((child, address.trim_start_matches("http://").trim_end_matches("/a2a").to_owned()))
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}
