//! W3C trace context: which trace a call belongs to, as `traceparent` and `tracestate` tell it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest `tracestate` that is handed on; W3C asks for 512 at least.
const MOST_STATE: usize = 2048;
/// Flags that are handed on: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 0b11;
/// The caller may have recorded this trace. The hub does: its log is one.
const SAMPLED: u8 = 1;

/// A trace. Never all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// Zeros are no trace; one that begins here gets its number from what it is about.
    pub fn of(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One step of a trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId(u64);

impl SpanId {
    pub fn of(number: u64) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A place in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Trace {
    pub id: TraceId,
    pub span: SpanId,
    flags: u8,
    /// What tracing systems say to each other, handed on as it is.
    pub state: Option<String>,
}

impl Trace {
    /// A trace that begins here.
    pub fn begun(id: TraceId, span: SpanId) -> Self {
        Self { id, span, flags: SAMPLED, state: None }
    }

    /// The same trace at a span of one's own.
    #[must_use]
    pub fn at(&self, span: SpanId) -> Self {
        Self { span, ..self.clone() }
    }

    /// Reads the two headers. What is malformed is no trace context, and then its state is none either.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let parent = parent.trim_matches([' ', '\t']);
        let (version, rest) = (number(parent.get(..2)?)?, parent.get(2..)?);
        let [b'-', ..] = rest.as_bytes() else { return None };
        let mut fields = rest[1..].splitn(4, '-');
        let (id, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
        // Later versions may add fields; the first one and no other ends here.
        if version == 0xff || (version == 0 && fields.next().is_some()) || flags.len() != 2 {
            return None;
        }
        let id = TraceId::of(wide(id)?)?;
        let span = SpanId::of(u64::from_be_bytes(wide(span)?))?;
        let flags = number(flags)? & KNOWN_FLAGS;
        let fits = |state: &&str| !state.is_empty() && state.len() <= MOST_STATE && state.bytes().all(printable);
        Some(Self { id, span, flags, state: state.filter(fits).map(str::to_owned) })
    }

    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.id, self.span, self.flags)
    }
}

fn printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t')
}

/// Two digits, which W3C wants in lower case.
fn number(text: &str) -> Option<u8> {
    wide::<1>(text).map(|[byte]| byte)
}

fn wide<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// A trace as its headers have it.
#[derive(Serialize, Deserialize)]
struct Written {
    traceparent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl From<Trace> for Written {
    fn from(trace: Trace) -> Self {
        Self { traceparent: trace.traceparent(), tracestate: trace.state }
    }
}

impl TryFrom<Written> for Trace {
    type Error = &'static str;
    fn try_from(written: Written) -> Result<Self, Self::Error> {
        Self::parse(&written.traceparent, written.tracestate.as_deref()).ok_or("no traceparent")
    }
}
