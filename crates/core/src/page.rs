//! Where a page of tasks ends, and where it goes on: a token that means nothing to callers.

use crate::ids::TaskId;
use crate::ports::ListFilter;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::time::Millis;

impl ListFilter {
    /// Whether a page with so much in it has room for one more task.
    pub fn has_room(&self, used: usize, task: usize) -> bool {
        used == 0 || used.saturating_add(task) <= self.bytes
    }
}

/// The place of the last task shown.
pub fn token(status_at: Millis, id: TaskId) -> String {
    let mut bytes = status_at.0.to_be_bytes().to_vec();
    bytes.extend_from_slice(id.bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place a token stands for; an empty one is the start.
pub fn parse(token: &str) -> Result<Option<(Millis, TaskId)>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let parsed = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| {
        let (time, id) = bytes.split_at_checked(8)?;
        Some((Millis(i64::from_be_bytes(time.try_into().ok()?)), TaskId::from_bytes(id.try_into().ok()?)))
    });
    parsed.map(Some).ok_or_else(|| Refusal::invalid("pageToken", "is not a token this hub gave; leave it out to start"))
}
