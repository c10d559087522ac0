//! A hub of its own for one measurement, which may call this machine.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

pub struct Hub {
    child: Child,
    pub address: String,
    pub key: String,
    data: PathBuf,
}

impl Hub {
    pub fn start(binary: &str, scratch: &str) -> Result<Self> {
        let data = PathBuf::from(scratch).join(format!("push-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        let key = format!("flk_{}", "b".repeat(64));
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-target", "127.0.0.0/8", "--data-dir"])
            .arg(&data)
            .env("FLOTILLA_OWNER_KEY", &key)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {binary}"))?;
        let stdout = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let told = lines.find_map(|line| line.trim().strip_prefix("JSON-RPC").map(|url| url.trim().to_owned()));
        // The rest of the banner is of no interest, but somebody must take it.
        std::thread::spawn(move || lines.for_each(drop));
        let url = told.context("the hub did not start")?;
        let address = url.trim_start_matches("http://").trim_end_matches("/a2a").to_owned();
        Ok(Self { child, address, key, data })
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// SendMessage over HTTP+JSON with a webhook for what comes of it.
pub fn request(address: &str, key: &str, url: &str, number: usize) -> Vec<u8> {
    let body = format!(
        r#"{{"message":{{"messageId":"m-{number}","role":"ROLE_USER","parts":[{{"text":"hello"}}]}},"configuration":{{"returnImmediately":true,"taskPushNotificationConfig":{{"url":"{url}","token":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}}}}}"#
    );
    let length = body.len();
    format!(
        "POST /message:send HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\na2a-version: 1.0\r\n\
         content-type: application/a2a+json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
