//! The way out to the hub: a WebSocket, with or without TLS, and why there is none.

use flotilla_protocol::hub_frame::worker::SUBPROTOCOL;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls_platform_verifier::Verifier;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{StatusCode, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Error};

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is read and written at once.
const BUFFER: usize = 16 * 1024;
/// The largest frame of the hub's that is taken.
const FRAME: usize = 64 * 1024 * 1024;

/// A pipe to the hub, whatever it is made of.
pub trait Pipe: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Pipe for T {}

pub type Socket = WebSocketStream<Box<dyn Pipe>>;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoWay {
    /// The hub does not want this worker, and will not the next time either.
    Refused(String),
    /// It may be there later.
    Later(String),
}

/// Where the hub is, and what opens its door.
pub struct Hub {
    host: String,
    port: u16,
    /// The address of its WebSocket, without a query.
    address: String,
    tls: Option<TlsConnector>,
    key: HeaderValue,
}

impl Hub {
    /// `ca` is a file with certificates that are trusted beside those of this machine.
    pub fn new(url: &str, key: &str, ca: Option<&Path>) -> Result<Self, String> {
        let wrong = || format!("'{url}' is no address of a hub; write one such as https://hub.example.com");
        let (scheme, rest) = url.trim_end_matches('/').split_once("://").ok_or_else(wrong)?;
        let secure = match scheme {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(wrong()),
        };
        let address = format!("{}://{rest}/ws", if secure { "wss" } else { "ws" });
        let uri: Uri = address.parse().map_err(|_| wrong())?;
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) || uri.query().is_some() {
            return Err(wrong());
        }
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = if secure { Some(trust(ca)?) } else { None };
        let mut key = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| "the key holds what no key holds")?;
        key.set_sensitive(true);
        Ok(Self { host, port, address, tls, key })
    }

    /// Connects as an agent that takes so many runs at once.
    pub async fn dial(&self, agent: &str, places: usize, resume: Option<&str>) -> Result<Socket, NoWay> {
        match tokio::time::timeout(PATIENCE, self.try_dial(agent, places, resume)).await {
            Ok(dialed) => dialed,
            Err(_) => Err(NoWay::Later(format!("no connection within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn try_dial(&self, agent: &str, places: usize, resume: Option<&str>) -> Result<Socket, NoWay> {
        let later = |problem: String| NoWay::Later(problem);
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| later(error.to_string()))?;
        // Frames are small, and somebody waits for each.
        stream.set_nodelay(true).map_err(|error| later(error.to_string()))?;
        let pipe: Box<dyn Pipe> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|error| later(error.to_string()))?;
                let secured = tls.connect(name, stream).await;
                Box::new(secured.map_err(|error| {
                    later(format!("TLS: {error}; a certificate of one's own is trusted with --ca FILE"))
                })?)
            }
        };
        let mut address = format!("{}?places={places}&agent={}", self.address, escaped(agent));
        if let Some(token) = resume {
            address = format!("{address}&resume={}", escaped(token));
        }
        let mut request = address.into_client_request().map_err(|error| NoWay::Refused(error.to_string()))?;
        request.headers_mut().insert(AUTHORIZATION, self.key.clone());
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(FRAME))
            .max_frame_size(Some(FRAME));
        let opened = tokio_tungstenite::client_async_with_config(request, pipe, Some(config)).await;
        opened.map(|(socket, _)| socket).map_err(told)
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// What this machine trusts, and what the file says beside it.
fn trust(ca: Option<&Path>) -> Result<TlsConnector, String> {
    let mut extra = Vec::new();
    if let Some(file) = ca {
        let unread = |error: String| format!("the certificates in {}: {error}", file.display());
        let read = CertificateDer::pem_file_iter(file).map_err(|error| unread(error.to_string()))?;
        for certificate in read {
            extra.push(certificate.map_err(|error| unread(error.to_string()))?);
        }
        if extra.is_empty() {
            return Err(unread("there are none in it".into()));
        }
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let unusable = |error: tokio_rustls::rustls::Error| format!("TLS cannot be set up: {error}");
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(unusable)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // A WebSocket begins as HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[derive(Deserialize, Default)]
struct Answer {
    #[serde(default)]
    error: Problem,
}

#[derive(Deserialize, Default)]
struct Problem {
    #[serde(default)]
    message: String,
}

/// A hub that answers with something else than a WebSocket says why.
fn told(error: tungstenite::Error) -> NoWay {
    let Error::Http(response) = error else { return NoWay::Later(error.to_string()) };
    let body = response.body().as_deref().unwrap_or_default();
    let said = serde_json::from_slice::<Answer>(body).unwrap_or_default().error.message;
    let status = response.status();
    let said = if said.is_empty() { format!("it answered {status}") } else { said };
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    if status.is_client_error() && !passes { NoWay::Refused(said) } else { NoWay::Later(said) }
}

#[cfg(test)]
mod tests {
    use super::Hub;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let at = |url: &str| Hub::new(url, "flk_x", None).map(|hub| (hub.address, hub.host, hub.port));
        let expected = |address: &str, host: &str, port| Ok((address.to_owned(), host.to_owned(), port));
        assert_eq!(at("http://127.0.0.1:7420/"), expected("ws://127.0.0.1:7420/ws", "127.0.0.1", 7420));
        assert_eq!(at("ws://[::1]:80/fleet"), expected("ws://[::1]:80/fleet/ws", "::1", 80));
        for wrong in ["hub.example.com", "ftp://x", "http://", "http://me:secret@x", "http://x?y=1"] {
            assert!(at(wrong).is_err_and(|problem| problem.contains("no address")), "{wrong}");
        }
        let missing = Hub::new("https://x", "k", Some(std::path::Path::new("/no/such/file")));
        assert!(missing.is_err_and(|problem| problem.contains("/no/such/file")));
    }
}
