//! What was seen of a worker beside what it announced, as it is kept: how its turns went, and until when it is paused.

use crate::dispatch::{Pause, Turns};
use flotilla_protocol::time::Millis;
use serde_json::{Value, json};

pub fn written(turns: &Turns, paused: Option<&Pause>) -> String {
    let mut standing = json!({
        "last_success": turns.last_success.map(|at| at.0),
        "failures": turns.failures,
        "last_failure": turns.last_failure,
        "success": turns.success,
    });
    if let Some(pause) = paused {
        standing["paused"] = json!({"until": pause.until.0, "reason": &*pause.reason});
    }
    standing.to_string()
}

/// What cannot be read was not seen.
pub fn read(standing: &str) -> (Turns, Option<Pause>) {
    let told: Value = serde_json::from_str(standing).unwrap_or_default();
    let turns = Turns {
        last_success: told["last_success"].as_i64().map(Millis),
        failures: told["failures"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        last_failure: told["last_failure"].as_str().map(str::to_owned),
        success: told["success"].as_f64(),
    };
    let paused = told["paused"]["until"].as_i64().map(|until| {
        let reason = told["paused"]["reason"].as_str().unwrap_or_default();
        Pause { until: Millis(until), reason: reason.into() }
    });
    (turns, paused)
}

#[cfg(test)]
mod tests {
    use super::{read, written};
    use crate::dispatch::{End, Pause, Turns};
    use flotilla_protocol::time::Millis;

    #[test]
    fn what_is_written_is_read_and_what_is_not_was_not_seen() {
        let mut turns = Turns::default();
        turns.count(Millis(7), End::Well);
        turns.count(Millis(8), End::Failed("it broke".into()));
        let pause = Pause { until: Millis(9), reason: "weekly limit".into() };
        assert_eq!(read(&written(&turns, Some(&pause))), (turns.clone(), Some(pause)));
        assert_eq!(read(&written(&turns, None)), (turns, None));
        assert_eq!(read("{}"), (Turns::default(), None));
    }
}
