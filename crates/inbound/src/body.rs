//! Request bodies, read within their limit and at a pace, and checked for depth and type.

use crate::load::Load;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use flotilla_core::limits::{Limit, Limits};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::decode;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::BodyExt as _;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a refused caller may take to finish a body nobody reads, and how long it may pause.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);
/// How many times the largest body is taken and thrown away: most clients read the answer only when they have sent all.
const DISCARDED: usize = 8;

/// The whole body, or a refusal as soon as it is known to be too large or too slow.
pub async fn read(request: &Parts, body: &mut Body, limits: &Limits) -> Result<Bytes, Refusal> {
    let load = Load::of(request);
    let declared = request.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limits.body) {
        return Err(too_large(limits.body));
    }
    let started = Instant::now();
    // Most bodies come in one piece, which is taken as it is. Room is made for what has come, not for what was claimed.
    let (mut only, mut whole) = (Bytes::new(), BytesMut::new());
    while let Some(more) = next(body, started, only.len() + whole.len(), limits).await? {
        if only.len() + whole.len() + more.len() > limits.body {
            return Err(too_large(limits.body));
        }
        if let Some(load) = load {
            load.grow(more.len())?;
        }
        if only.is_empty() && whole.is_empty() {
            only = more;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut only));
            whole.extend_from_slice(&more);
        }
    }
    Ok(if whole.is_empty() { only } else { whole.freeze() })
}

/// The next data of a body. Every byte that came buys the time it may take at the slowest pace.
async fn next(body: &mut Body, started: Instant, came: usize, limits: &Limits) -> Result<Option<Bytes>, Refusal> {
    let deadline = started + limits.body_time + Duration::from_secs(1).mul_f64(came as f64 / limits.body_rate as f64);
    loop {
        match timeout_at(deadline, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                // Trailers, which A2A has no use for.
                _ => {}
            },
            Ok(Some(Err(error))) => {
                let text = format!("The request's body could not be read: {error}.");
                return Err(Refusal::new(Reason::InvalidRequest, text));
            }
            Err(_) => return Err(too_slow(limits)),
        }
    }
}

/// Opaque JSON is not parsed later, so this is the only look at how deep it is, and what is parsed takes more memory the
/// more it holds. `around` is what the binding itself
/// puts around a request: the same request is deep enough, or not, in every binding.
pub fn check_depth(bytes: &[u8], limits: &Limits, around: usize) -> Result<(), Refusal> {
    if decode::is_crowded(bytes) {
        return Err(decode::too_crowded());
    }
    let most = limits.json_depth;
    if decode::is_deeper(bytes, most + around) { Err(decode::too_deep(most)) } else { Ok(()) }
}

/// Takes what is left of a body that nobody will read: an answer sent before it would be lost with the connection.
/// Says whether the connection can go on.
pub async fn discard(mut body: Body, limits: &Limits) -> bool {
    let mut left = limits.body.saturating_mul(DISCARDED);
    let drained = async {
        loop {
            let frame = match tokio::time::timeout(PAUSE, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return true,
                Ok(Some(Err(_))) | Err(_) => return false,
            };
            let size = frame.data_ref().map_or(0, Bytes::len);
            if size > left {
                return false;
            }
            left -= size;
        }
    };
    tokio::time::timeout(PATIENCE, drained).await.unwrap_or(false)
}

fn too_large(most: usize) -> Refusal {
    let text = format!("The body is larger than {most} bytes. Send large files as a url part instead.");
    Limit::Body.refuse(most, text)
}

fn too_slow(limits: &Limits) -> Refusal {
    let (time, rate) = (limits.body_time, limits.body_rate);
    let text = format!(
        "The body came too slowly: {time:?} are allowed, and a second more for every {rate} bytes. Send it again without \
         pauses, or large files as a url part."
    );
    Limit::BodyTime.refuse(format!("{time:?}"), text)
}

/// JSON under either of its names; nothing said at all is taken as JSON.
pub fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    check_type_among(headers, &["application/json", "application/a2a+json"])
}

/// A change of some members, under its own name (RFC 7396) or as the JSON it is.
pub fn check_patch_type(headers: &HeaderMap) -> Result<(), Refusal> {
    check_type_among(headers, &["application/merge-patch+json", "application/json", "application/a2a+json"])
}

fn check_type_among(headers: &HeaderMap, known: &[&str]) -> Result<(), Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let given = value.to_str().unwrap_or("an unreadable one");
    let bare = given.split(';').next().unwrap_or_default().trim();
    if known.iter().any(|known| bare.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let text = format!("The body's media type is {given}; send {}.", known.join(" or "));
    Err(Refusal::new(Reason::MediaTypeNotSupported, text).fact("mediaType", given))
}

#[cfg(test)]
mod tests {
    use super::read;
    use axum::body::Body;
    use bytes::Bytes;
    use flotilla_core::limits::{Limits, limit_of};
    use futures_util::stream::{self, StreamExt as _};
    use std::convert::Infallible;
    use std::time::Duration;

    const LIMITS: (Duration, usize) = (Duration::from_secs(10), 100);

    fn limits() -> Limits {
        Limits { body: 10_000, body_time: LIMITS.0, body_rate: LIMITS.1, ..Limits::default() }
    }

    /// A body whose pieces come after pauses, in seconds; the last of them never ends if it is said to stall.
    fn body(pieces: &[(u64, usize)], stalls: bool) -> Body {
        let pieces: Vec<_> = pieces.to_vec();
        let pieces = stream::iter(pieces).then(|(pause, size)| async move {
            tokio::time::sleep(Duration::from_secs(pause)).await; // polling
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; size]))
        });
        if stalls { Body::from_stream(pieces.chain(stream::pending())) } else { Body::from_stream(pieces) }
    }

    async fn came(mut body: Body) -> Result<usize, String> {
        let (request, ()) = http::Request::new(()).into_parts();
        let read = read(&request, &mut body, &limits()).await;
        read.map(|bytes| bytes.len()).map_err(|refusal| limit_of(&refusal).unwrap_or_default().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_time_and_what_its_bytes_buy() {
        assert_eq!(came(body(&[(9, 100)], false)).await, Ok(100));
        assert_eq!(came(body(&[(11, 100)], false)).await, Err("body_time".to_owned()));
        assert_eq!(came(body(&[(0, 500), (14, 100)], false)).await, Ok(600), "five seconds more for 500 bytes");
        assert_eq!(came(body(&[(0, 500), (16, 100)], false)).await, Err("body_time".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_keeps_its_pace_is_read_to_the_end_and_one_that_dribbles_is_not() {
        assert_eq!(came(body(&[(1, 100); 90], false)).await, Ok(9_000));
        assert_eq!(came(body(&[(1, 10); 90], false)).await, Err("body_time".to_owned()));
        let started = tokio::time::Instant::now();
        assert_eq!(came(body(&[(1, 1); 5], true)).await, Err("body_time".to_owned()));
        assert_eq!(started.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_are_joined_up_to_the_limit() {
        assert_eq!(came(body(&[(0, 4_000), (0, 3_000), (0, 3_000)], false)).await, Ok(10_000));
        assert_eq!(came(body(&[(0, 4_000), (0, 3_000), (0, 3_001)], false)).await, Err("body".to_owned()));
        assert_eq!(came(body(&[], false)).await, Ok(0));
    }
}
