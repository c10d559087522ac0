//! What every server under test does with a message.

use std::time::Duration;

/// The text of each streamed chunk.
pub const CHUNK: &str = "chunk";
/// How long an idle task stays at work.
pub const IDLE: Duration = Duration::from_secs(3600);

/// What a message asks for, by its first text.
pub enum Ask {
    /// Anything: the message's parts come back as one artifact.
    Echo,
    /// `idle`: WORKING, and then nothing.
    Idle,
    /// `chunks 1000 250ms`: WORKING, a wait, and so many pieces of one artifact.
    Chunks { count: usize, delay: Duration },
}

impl Ask {
    pub fn of(text: Option<&str>) -> Ask {
        let mut words = text.unwrap_or_default().split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("idle"), None, None) => Ask::Idle,
            (Some("chunks"), Some(count), Some(delay)) => Ask::Chunks {
                count: count.parse().unwrap_or_default(),
                delay: Duration::from_millis(delay.trim_end_matches("ms").parse().unwrap_or_default()),
            },
            _ => Ask::Echo,
        }
    }
}
