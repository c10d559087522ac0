//! `grpc-timeout`: how long the caller waits.

use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::{HeaderMap, HeaderName};
use std::time::Duration;

static TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

pub fn of(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.get(&TIMEOUT) else { return Ok(None) };
    let wrong = || Refusal::invalid(TIMEOUT.as_str(), "must be at most eight digits and one of H, M, S, m, u and n");
    value.to_str().ok().and_then(parse).map(Some).ok_or_else(wrong)
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

pub fn exceeded() -> Refusal {
    let text = "The deadline of the call is over. A task that was begun goes on: read it with GetTask or ListTasks, or \
                send the same message again to be given the same task.";
    Refusal::new(Reason::DeadlineExceeded, text)
}

/// Nobody waits for the answer, so nothing is begun for it.
pub fn over_before() -> Refusal {
    Refusal::new(
        Reason::DeadlineExceeded,
        "The deadline of the call was over before it came; nothing was begun for it.",
    )
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn units_are_those_of_grpc() {
        assert_eq!(parse("5S"), Some(Duration::from_secs(5)));
        assert_eq!(parse("99999999n"), Some(Duration::from_nanos(99_999_999)));
        assert_eq!(parse("2H"), Some(Duration::from_secs(7200)));
        for wrong in ["", "S", "5", "5s", "-5S", "123456789S", "5é"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
