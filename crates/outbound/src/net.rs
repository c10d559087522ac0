//! The network as every client here uses it: bounded answers, time-outs, and a wire log that holds no secret.

pub mod address;
pub(crate) mod certificate;
mod exchange;
mod line;
pub mod redact;
pub(crate) mod redirect;
pub mod sse;

use crate::client::error::{ClientError, Code};
use crate::client::grpc;
use crate::guard::Resolver;
pub use exchange::Received;
use flotilla_protocol::decode::is_deeper;
use http::HeaderMap;
use line::Lines;
use redact::Redactor;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Is told each line of what goes over the wire, secrets already masked.
pub type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// How this program calls itself.
pub const AGENT: &str = concat!("flotilla/", env!("CARGO_PKG_VERSION"));

/// How often a quiet connection is asked whether anyone is there.
const ALIVE: Duration = Duration::from_secs(30);

/// Usual servers close a connection that is quiet for five seconds.
const KEPT: Duration = Duration::from_secs(4);

/// What an agent may cost its caller.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connect: Duration,
    /// How long an answer may take that has no reason to wait for a task.
    pub answer: Duration,
    /// The largest answer, and the largest single event of a stream.
    pub bytes: usize,
    /// How deep its JSON may be nested, not counting what the binding puts around it.
    pub depth: usize,
}

impl Limits {
    /// An envelope and the name of what is in it.
    const AROUND: usize = 2;

    /// Opaque JSON is passed on without being read, so this is the only look at how deep it is.
    pub(crate) fn check_depth(&self, json: &str) -> Result<(), ClientError> {
        if is_deeper(json.as_bytes(), self.depth.saturating_add(Self::AROUND)) {
            let depth = self.depth;
            return Err(ClientError::malformed(format!("it is nested deeper than {depth} levels (limits.json_depth)")));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            bytes: 64 * 1024 * 1024,
            depth: usize::MAX,
        }
    }
}

#[derive(Clone)]
pub struct Net {
    http: reqwest::Client,
    /// HTTP/2 without asking first, for gRPC without TLS; made when it is needed.
    h2c: Arc<OnceLock<reqwest::Client>>,
    insecure: bool,
    /// Who says where names lead; the system if nobody.
    resolver: Option<Arc<Resolver>>,
    /// How long a connection is kept for the next call; the client's own default if absent.
    idle: Option<Duration>,
    observer: Option<Observer>,
    redactor: Arc<Redactor>,
    /// For plain calls to where the operator led; the HTTP client's own connections are for all others.
    lines: Option<Arc<Lines>>,
    pub limits: Limits,
}

/// One HTTP request, not yet sent.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// Credentials that a scheme wants in the query; never in the log.
    pub query: Vec<(String, String)>,
    pub body: Option<String>,
    /// A gRPC message that is sent in the place of the body; the log shows the body.
    pub grpc: Option<Vec<u8>>,
}

impl Net {
    /// `insecure` accepts any certificate; whoever sets it says so to the user.
    pub fn new(insecure: bool, redactor: Redactor, observer: Option<Observer>) -> Result<Self, ClientError> {
        let limits = Limits::default();
        let http = builder(limits, insecure).build().map_err(unusable)?;
        let (h2c, redactor) = (Arc::default(), Arc::new(redactor));
        Ok(Self { http, h2c, insecure, resolver: None, idle: None, observer, redactor, lines: None, limits })
    }

    /// For calls from one machine to another: within other limits, and to where a resolver leads. No connection is
    /// used again that the other side may be about to close.
    pub fn between(limits: Limits, redactor: Redactor, resolver: Option<Arc<Resolver>>) -> Result<Self, ClientError> {
        let mut net = Self::new(false, redactor, None)?;
        (net.limits, net.resolver, net.idle) = (limits, resolver, Some(KEPT));
        net.http = net.builder().build().map_err(unusable)?;
        // Where a resolver leads is asked of it for each connection.
        net.lines = net.resolver.is_none().then(Arc::default);
        Ok(net)
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        let mut builder = builder(self.limits, self.insecure);
        if let Some(idle) = self.idle {
            builder = builder.pool_idle_timeout(idle);
        }
        match &self.resolver {
            Some(resolver) => builder.dns_resolver(Arc::clone(resolver)),
            None => builder,
        }
    }

    fn client(&self, outgoing: &Outgoing) -> Result<&reqwest::Client, ClientError> {
        // Over TLS the two sides agree on HTTP/2 by themselves.
        if outgoing.grpc.is_none() || outgoing.url.starts_with("https://") {
            return Ok(&self.http);
        }
        if let Some(client) = self.h2c.get() {
            return Ok(client);
        }
        let made = self.builder().http2_prior_knowledge().build().map_err(unusable)?;
        Ok(self.h2c.get_or_init(|| made))
    }

    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// Text with every known secret masked.
    pub fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    /// Has a secret masked that came to be known by now.
    pub fn learn(&self, secret: &str) {
        self.redactor.learn(secret);
    }

    /// What masks here, for another network that shows the same secrets.
    pub fn redactor(&self) -> Redactor {
        (*self.redactor).clone()
    }

    /// Puts a line into the wire log.
    pub fn note(&self, line: impl FnOnce() -> String) {
        if let Some(observer) = &self.observer {
            observer(&self.redactor.clean(&line()));
        }
    }

    /// Sends, and returns whatever is answered; `patience` bounds the wait for the answer's head.
    pub async fn send(&self, outgoing: Outgoing, patience: Option<Duration>) -> Result<Response, ClientError> {
        let request = self.build(&outgoing)?;
        self.log_request(&outgoing);
        let started = Instant::now();
        let sent = request.send();
        let sent = match patience {
            Some(patience) => tokio::time::timeout(patience, sent).await.map_err(|_| ClientError::Unreachable {
                url: origin(&outgoing.url),
                problem: format!("no answer within {} s", patience.as_secs()),
            })?,
            None => sent.await,
        };
        match sent {
            Ok(response) => {
                self.log_response(&response, started);
                Ok(response)
            }
            Err(error) => {
                let failed = failed(&outgoing.url, &error.without_url()).of_message(size_of(&outgoing));
                self.note(|| format!("! {failed}"));
                Err(failed)
            }
        }
    }

    /// Sends a body that the wire log is not shown.
    pub async fn send_unseen(&self, outgoing: Outgoing, body: String) -> Result<Response, ClientError> {
        let sent = self.build(&Outgoing { body: Some(body), ..outgoing.clone() })?.send();
        let answered = tokio::time::timeout(self.limits.answer, sent).await;
        let late = |_| ClientError::Unreachable {
            url: origin(&outgoing.url),
            problem: format!("no answer within {} s", self.limits.answer.as_secs()),
        };
        answered.map_err(late)?.map_err(|error| failed(&outgoing.url, &error.without_url()))
    }

    fn build(&self, outgoing: &Outgoing) -> Result<RequestBuilder, ClientError> {
        let mut url = address::check(&outgoing.url)?;
        if !outgoing.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&outgoing.query);
        }
        let mut call = self.client(outgoing)?.request(outgoing.method.clone(), url);
        for (name, value) in &outgoing.headers {
            let (name, value) = exchange::header(name, value)?;
            call = call.header(name, value);
        }
        Ok(match (&outgoing.grpc, &outgoing.body) {
            (Some(message), _) => call.body(message.clone()),
            (None, Some(body)) => call.body(body.clone()),
            (None, None) => call,
        })
    }

    /// The whole body as text, up to the limit.
    pub async fn text(&self, mut response: Response) -> Result<String, ClientError> {
        let mut body = Vec::new();
        loop {
            let chunk = tokio::time::timeout(self.limits.answer, response.chunk());
            let chunk = chunk.await.map_err(|_| ClientError::Broken("the answer stopped half-way".into()))?;
            let Some(chunk) = chunk.map_err(|error| ClientError::Broken(innermost(&error.without_url())))? else {
                break;
            };
            if body.len() + chunk.len() > self.limits.bytes {
                return Err(ClientError::TooLarge { limit: self.limits.bytes });
            }
            body.extend_from_slice(&chunk);
        }
        self.checked(body)
    }

    fn checked(&self, body: Vec<u8>) -> Result<String, ClientError> {
        let text = String::from_utf8(body).map_err(|_| ClientError::malformed("the answer is not UTF-8 text"))?;
        self.note(|| format!("< {text}"));
        self.limits.check_depth(&text)?;
        Ok(text)
    }

    fn log_request(&self, outgoing: &Outgoing) {
        self.note(|| {
            let query: String = outgoing.query.iter().map(|(name, _)| format!(" ?{name}=[redacted]")).collect();
            format!("> {} {}{query}", outgoing.method, outgoing.url)
        });
        for (name, value) in &outgoing.headers {
            self.note(|| format!("> {name}: {}", self.redactor.header(name, value)));
        }
        if let Some(body) = &outgoing.body {
            self.note(|| format!("> {body}"));
        }
    }

    fn log_response(&self, response: &Response, started: Instant) {
        self.note(|| format!("< {} after {} ms", response.status(), started.elapsed().as_millis()));
        self.log_headers(response.headers());
    }

    /// Those of an answer, or its trailers.
    pub(crate) fn log_headers(&self, headers: &HeaderMap) {
        for (name, value) in headers {
            let value = value.to_str().unwrap_or("(not text)");
            let shown =
                || grpc::told(name.as_str(), value).unwrap_or_else(|| self.redactor.header(name.as_str(), value));
            self.note(|| format!("< {name}: {}", shown()));
        }
    }
}

fn builder(limits: Limits, insecure: bool) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(AGENT)
        .connect_timeout(limits.connect)
        // A peer that is gone without a word must not be waited for until the end of time.
        .tcp_keepalive(ALIVE)
        .http2_keep_alive_interval(ALIVE)
        .http2_keep_alive_timeout(ALIVE)
        .tls_danger_accept_invalid_certs(insecure)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
}

fn unusable(error: reqwest::Error) -> ClientError {
    ClientError::Setting(format!("the HTTP client cannot be set up: {error}"))
}

/// Why nothing was answered.
fn failed(url: &str, error: &reqwest::Error) -> ClientError {
    let url = origin(url);
    if let Some((problem, advice)) = certificate::refused(error) {
        return ClientError::Untrusted { url, problem, advice };
    }
    let problem = match certificate::is_plain(error) {
        true => "it does not speak TLS; http:// is spoken in the clear".to_owned(),
        false => innermost(error),
    };
    match error.is_connect() {
        true => ClientError::Unconnected { url, problem },
        false => ClientError::Unreachable { url, problem },
    }
}

fn size_of(outgoing: &Outgoing) -> usize {
    outgoing.grpc.as_ref().map(|message| message.len()).or(outgoing.body.as_ref().map(String::len)).unwrap_or_default()
}

/// Whether an answer's status says that the caller is not known or not allowed.
pub fn refused(status: StatusCode) -> Option<Code> {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN).then(|| Code::Number(status.as_u16().into()))
}

/// Where a URL leads, without what might be private in it.
pub fn origin(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => address::shown(url),
    }
}

/// The cause at the bottom of the chain is the one that says something.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
