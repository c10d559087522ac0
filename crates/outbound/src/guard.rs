//! Safe targets: every URL that comes from outside is checked here, its address again at the moment of connecting.

mod range;

pub use range::Cidr;

use flotilla_protocol::a2a::validate::is_invisible;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// The longest URL a caller may give.
const LONGEST: usize = 2048;
/// Names that are looked up at once.
const MOST_LOOKUPS: usize = 64;
/// How long whoever gives a URL is made to wait for the lookup of its name.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a URL is not called, in words for whoever gave it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Finds the addresses of a name. A test puts its own in the place of the system's.
pub type Lookup = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync>;

/// Which addresses may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// What the operator admits beyond public addresses, in the clear too.
    pub allow: Vec<Cidr>,
    /// Whether public addresses may be called without TLS.
    pub allow_http: bool,
}

impl Rules {
    fn is_listed(&self, address: IpAddr) -> bool {
        let plain = match address {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map(IpAddr::V4),
            IpAddr::V4(_) => None,
        };
        self.allow.iter().any(|cidr| cidr.contains(address) || plain.is_some_and(|plain| cidr.contains(plain)))
    }

    /// The one decision about an address.
    pub fn admit(&self, address: IpAddr, secure: bool) -> Result<(), Refused> {
        if self.is_listed(address) {
            return Ok(());
        }
        if let Some(kind) = range::refused(address) {
            let text = format!(
                "the address {address} is {kind}, and the hub calls public addresses only; its operator can admit it \
                 with --allow-target"
            );
            return Err(Refused(text));
        }
        if secure || self.allow_http {
            return Ok(());
        }
        Err(Refused(format!("the address {address} is public, and public addresses are called over https only")))
    }

    /// Of a name's addresses those that may be called; a reason if there are none.
    fn admitted(&self, addresses: Vec<IpAddr>, secure: bool) -> Result<Vec<IpAddr>, Refused> {
        let mut first = None;
        let admitted: Vec<IpAddr> = addresses
            .into_iter()
            .filter(|address| match self.admit(*address, secure) {
                Ok(()) => true,
                Err(refused) => {
                    first.get_or_insert(refused);
                    false
                }
            })
            .collect();
        match (admitted.is_empty(), first) {
            (false, _) => Ok(admitted),
            (true, Some(refused)) => Err(refused),
            (true, None) => Err(Refused("the name has no address".into())),
        }
    }
}

/// Rules, and the names they are applied to.
#[derive(Clone)]
pub struct Guard {
    rules: Rules,
    lookup: Lookup,
}

impl Guard {
    pub fn new(rules: Rules) -> Self {
        Self { rules, lookup: Arc::new(|name| Box::pin(system(name))) }
    }

    /// Whether it admits what another does.
    pub fn is_like(&self, other: &Self) -> bool {
        self.rules == other.rules
    }

    /// The same with another way to find addresses.
    #[must_use]
    pub fn with_lookup(self, lookup: Lookup) -> Self {
        Self { lookup, ..self }
    }

    /// What can be said of a URL without asking anybody: its form, and its address if it is written out.
    pub fn parse(&self, text: &str) -> Result<Url, Refused> {
        let refuse = |text: &str| Err(Refused(text.to_owned()));
        if text.len() > LONGEST {
            return refuse(&format!("must be at most {LONGEST} bytes long"));
        }
        // The parser drops some of these silently, and others make the URL look like another one.
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\' || is_invisible(c)) {
            return refuse("must not hold spaces, backslashes, control or invisible characters");
        }
        // The parser puts right what is wrong here, and two readers may do so differently.
        if !names_host(text) {
            return refuse("must be of the form https://HOST/PATH");
        }
        let url = Url::parse(text).map_err(|error| Refused(format!("is not a URL: {error}")))?;
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return refuse(&format!("must be an http or https URL, not {other}")),
        };
        if !url.username().is_empty() || url.password().is_some() || has_userinfo(text) {
            return refuse("must not hold credentials; give them as authentication instead");
        }
        if url.port() == Some(0) {
            return refuse("must not name port 0, where nobody can listen");
        }
        match url.host() {
            None => return refuse("must name a host"),
            Some(url::Host::Domain(name)) if is_local(name) => self.rules.admit(Ipv4Addr::LOCALHOST.into(), secure)?,
            Some(url::Host::Domain(_)) => {}
            Some(url::Host::Ipv4(address)) => self.rules.admit(address.into(), secure)?,
            Some(url::Host::Ipv6(address)) => self.rules.admit(address.into(), secure)?,
        }
        Ok(url)
    }

    /// The same, and where a name leads now. One that leads nowhere today may tomorrow: connecting decides.
    pub async fn check(&self, text: &str) -> Result<Url, Refused> {
        let url = self.parse(text)?;
        let Some(url::Host::Domain(name)) = url.host() else { return Ok(url) };
        let secure = url.scheme() == "https";
        let found = tokio::time::timeout(PATIENCE, self.find(name)).await;
        match found.unwrap_or_else(|_| Err(io::Error::other("no answer in time"))) {
            Ok(addresses) => {
                let told = |refused: Refused| Refused(format!("{name} cannot be called: {refused}"));
                self.rules.admitted(addresses, secure).map_err(told)?;
            }
            Err(_) if secure || self.rules.allow_http => {}
            Err(error) => {
                return Err(Refused(format!(
                    "{name} is not found ({error}), and http is for addresses that the operator admits; use https"
                )));
            }
        }
        Ok(url)
    }

    /// The addresses of a name. This machine's own names lead here, whatever a resolver says of them (RFC 6761).
    async fn find(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if is_local(name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        (self.lookup)(name.to_owned()).await
    }

    /// The resolver of a client: what it hands out may be connected to.
    pub fn resolver(&self, secure: bool) -> Arc<Resolver> {
        Arc::new(Resolver { guard: self.clone(), secure })
    }
}

/// Characters that take no place or turn the direction of text.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a scheme that is known is followed by `//` and the beginning of a host.
fn names_host(text: &str) -> bool {
    let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
    let is_ours = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    !is_ours || rest.strip_prefix("//").is_some_and(|rest| !rest.starts_with('/'))
}

/// `http://user@host`: empty credentials are credentials too.
fn has_userinfo(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Asks the system, in a thread of its own: it may take long and cannot be stopped, and the runtime's few threads for
/// such things have other work.
async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    static LOOKUPS: OnceLock<Arc<Semaphore>> = OnceLock::new();
    let lookups = LOOKUPS.get_or_init(|| Arc::new(Semaphore::new(MOST_LOOKUPS)));
    let permit = Arc::clone(lookups).acquire_owned().await.map_err(io::Error::other)?;
    let (tell, told) = oneshot::channel();
    let ask = move || {
        let found = (name.as_str(), 0).to_socket_addrs();
        // Whoever asked may have given up.
        let _ = tell.send(found.map(|found| found.map(|address| address.ip()).collect()));
        drop(permit);
    };
    std::thread::Builder::new().name("lookup".into()).spawn(ask)?;
    told.await.map_err(io::Error::other)?
}

/// Looks names up for an HTTP client and hands out only what the rules admit: between a check and the connection a
/// name may have come to lead elsewhere.
pub struct Resolver {
    guard: Guard,
    secure: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, secure) = (self.guard.clone(), self.secure);
        Box::pin(async move {
            let addresses = guard.find(name.as_str()).await?;
            let admitted = guard.rules.admitted(addresses, secure)?;
            let addresses: Addrs = Box::new(admitted.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests;
