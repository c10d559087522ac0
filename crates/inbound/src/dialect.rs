//! Which version of A2A a request is in: by its path, the spelling of its method, and the version it names.
//! The table is in docs/dialects.md, and a test walks it.

use crate::parameters::{Asked, Parameters, VERSION};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::gopherhole::is_own_method;
use flotilla_protocol::v03::{self, Form};
use http::Response;

/// A version, in the form it is spoken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    V10,
    V03(Form),
}

impl Dialect {
    pub const fn version(self) -> Version {
        match self {
            Self::V10 => Version::V10,
            Self::V03(_) => Version::V03,
        }
    }

    /// Whether a stream ends with this frame: in 0.3 with the update that says `final`, in 1.0 only with the task.
    pub fn ends_with(self, frame: &StreamResponse) -> bool {
        match (self, frame) {
            (Self::V03(_), StreamResponse::StatusUpdate(update)) => update.status.state.is_settled(),
            _ => false,
        }
    }

    /// How a JSON-RPC request is answered whose method cannot be read: no version means 0.3 (spec 3.6.2).
    pub fn by_version(parameters: &Parameters) -> Self {
        match parameters.version() {
            Asked::Nothing | Asked::For(Version::V03) => Self::V03(Form::Kind),
            Asked::For(Version::V10) | Asked::Other(_) => Self::V10,
        }
    }

    /// The dialect an answer was written in: its version stands in a header.
    pub fn of_answer<B>(answer: &Response<B>) -> Self {
        let is_10 = answer.headers().get(&VERSION).is_some_and(|version| version == Version::V10.name());
        if is_10 { Self::V10 } else { Self::V03(Form::Kind) }
    }

    /// How a method of this name is spelled, whether there is such a method or not.
    fn by_spelling(name: &str, parameters: &Parameters) -> Self {
        if v03::method::from_name(name).is_some() || (name.contains('/') && Method::from_name(name).is_none()) {
            return Self::V03(Form::Kind);
        }
        if Method::from_name(name).is_some() { Self::V10 } else { Self::by_version(parameters) }
    }
}

/// The dialect of a JSON-RPC method, and the operation it stands for.
pub fn of_method(name: &str, parameters: &Parameters) -> (Dialect, Result<Method, Refusal>) {
    let dialect = Dialect::by_spelling(name, parameters);
    let known = match dialect {
        Dialect::V10 => Method::from_name(name),
        Dialect::V03(_) => v03::method::from_name(name),
    };
    let method = match (parameters.version(), known) {
        (Asked::Other(version), _) => Err(not_spoken(version)),
        (Asked::For(Version::V03), Some(method)) if dialect == Dialect::V10 => {
            let old = v03::method::name(method);
            let text = format!("{name} is a method of A2A 1.0, and the request names 0.3. Name 1.0, or call {old}.");
            Err(not_here(Version::V03, text))
        }
        (_, Some(method)) => Ok(method),
        (_, None) => Err(no_method(dialect, name)),
    };
    (dialect, method)
}

/// Whether a path of HTTP+JSON, or a service of gRPC, which is of one version, takes the version a request names.
pub fn check(spoken: Version, parameters: &Parameters) -> Result<(), Refusal> {
    match parameters.version() {
        Asked::Nothing => Ok(()),
        Asked::For(asked) if asked == spoken => Ok(()),
        Asked::For(asked) => {
            let place = match asked {
                Version::V03 => "HTTP+JSON of 0.3 is at the same paths below /v1, gRPC the service a2a.v1.A2AService",
                Version::V10 => {
                    "HTTP+JSON of 1.0 is at the same paths without /v1, gRPC the service lf.a2a.v1.A2AService"
                }
            };
            let (here, asked_for) = (spoken.name(), asked.name());
            Err(not_here(asked, format!("A2A {here} is spoken here, and the request names {asked_for}. {place}.")))
        }
        Asked::Other(version) => Err(not_spoken(version)),
    }
}

fn not_spoken(version: &str) -> Refusal {
    let shown: String = version.chars().take(40).collect();
    let text = match shown.contains(',') {
        true => format!("A2A-Version names several versions: {shown}. Name one of: {}.", Version::list()),
        false => format!("A2A version {shown} is not supported here. Supported: {}.", Version::list()),
    };
    refused(shown, text)
}

fn not_here(asked: Version, text: String) -> Refusal {
    refused(asked.name().to_owned(), text)
}

fn refused(asked: String, text: String) -> Refusal {
    let refusal = Refusal::new(Reason::VersionNotSupported, text);
    refusal.fact("requestedVersion", asked).fact("supportedVersions", Version::list())
}

fn no_method(dialect: Dialect, name: &str) -> Refusal {
    let known: Vec<&str> = match dialect {
        Dialect::V10 => Method::ALL.into_iter().map(Method::name).collect(),
        Dialect::V03(_) => Method::ALL.into_iter().map(v03::method::name).collect(),
    };
    let shown: String = name.chars().take(80).collect();
    let version = dialect.version().name();
    let mut text = format!("There is no method '{shown}'. A2A {version} has: {}.", known.join(", "));
    if is_own_method(name) {
        text.push_str(" GopherHole's methods are at /gopherhole/a2a and /gopherhole/ws.");
    }
    Refusal::new(Reason::MethodNotFound, text)
}
