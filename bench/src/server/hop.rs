//! What stands between a client and an upstream server: nothing, nginx as a plain reverse proxy, or the hub.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Fleet, Running, Server, free_port};
use crate::load::call::Binding;

/// How a call reaches the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Direct,
    Nginx,
    Hub,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Direct, Way::Nginx, Way::Hub];

    /// As shown to readers.
    pub fn label(self) -> &'static str {
        match self {
            Way::Direct => "directly",
            Way::Nginx => "through nginx",
            Way::Hub => "through Flotilla, durable",
        }
    }
}

impl Fleet {
    /// Starts nginx in front of a server.
    pub fn start_nginx(&self, upstream: &Running) -> Result<Running> {
        let http = free_port()?;
        let folder = self.scratch.join("nginx");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let config = folder.join("nginx.conf");
        fs::write(&config, nginx_config(http, upstream.http)).context("cannot write the configuration of nginx")?;
        let mut command = Command::new(self.nginx.as_ref().context("nginx is not set up")?);
        command.arg("-p").arg(&folder).arg("-c").arg(&config).args(["-e", "error.log"]);
        self.launch(upstream.server, command, (http, upstream.grpc), upstream.key.clone())
    }

    /// Starts a durable hub whose only agent is a server elsewhere.
    pub fn start_hub_before(&self, upstream: &Running) -> Result<Running> {
        let (http, grpc) = (free_port()?, free_port()?);
        let data = self.scratch.join("data-hop");
        let _ = fs::remove_dir_all(&data);
        let card = self.scratch.join("upstream.json");
        fs::write(&card, card_of(upstream)).context("cannot write the upstream's card")?;
        let mut command = Command::new(&self.hub);
        command.arg("serve").arg("--config").arg(self.bench.join("hop.yaml"));
        command.arg("--listen").arg(format!("127.0.0.1:{http}")).arg("--data-dir").arg(&data);
        command.env("FLOTILLA_OWNER_KEY", &self.key).env("FLOTILLA_BENCH_CARD", &card);
        self.launch(Server::Hub, command, (http, grpc), Some(self.key.clone()))
    }
}

/// One process without a master, which ends when it is killed; it keeps connections to the upstream open.
fn nginx_config(http: u16, upstream: u16) -> String {
    format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\nevents {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path body;\n  proxy_temp_path proxy;\n  fastcgi_temp_path fastcgi;\n  \
         uwsgi_temp_path uwsgi;\n  scgi_temp_path scgi;\n  keepalive_requests 100000000;\n  \
         upstream agent {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 100000000; }}\n  \
         server {{\n    listen 127.0.0.1:{http};\n    location / {{\n      proxy_pass http://agent;\n      \
         proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n    }}\n  }}\n}}\n"
    )
}

/// The card of a server that publishes none. The ceiling answers, but does not stream.
fn card_of(upstream: &Running) -> String {
    let endpoint = upstream.endpoint(Binding::JsonRpc);
    let url = format!("http://{}{}", endpoint.address, endpoint.path);
    let card = json!({
        "name": upstream.server.name(),
        "description": "Echoes the message back.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": upstream.server.has_tasks()},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    });
    card.to_string()
}
