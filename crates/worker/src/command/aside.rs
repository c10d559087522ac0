//! What a program says aside, gathered: lines that come together are told together, and only so much of them.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long lines are waited for that go with the first.
const TOGETHER: Duration = Duration::from_millis(200);
/// So much is told without waiting for more, in bytes.
const ENOUGH: usize = 16 * 1024;
/// How often something is told; what is said after that is told once more at the end, as far as it is the last of it.
const MOST: usize = 1_000;
/// How much of the end that is, in bytes.
const LAST: usize = 4 * 1024;
/// The last lines that are told when a program fails.
const LAST_WORDS: usize = 5;

#[derive(Default)]
pub struct Aside {
    text: String,
    since: Option<Instant>,
    told: usize,
    /// Bytes that nobody is told.
    left_out: usize,
}

impl Aside {
    pub fn add(&mut self, line: &str) {
        if self.since.is_some() {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.since.get_or_insert_with(Instant::now);
        if self.told >= MOST && self.text.len() > 2 * LAST {
            let cut = self.text.floor_char_boundary(self.text.len() - LAST);
            self.left_out += cut;
            self.text.drain(..cut);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.since.is_none()
    }

    /// When it is to be told, whatever comes; none if there is nothing, or only at the end.
    pub fn due(&self) -> Option<Instant> {
        self.since.filter(|_| self.told < MOST).map(|since| since + TOGETHER)
    }

    /// What is to be told now. Before the program says something else, that is all there is.
    pub fn ready(&mut self, is_pressing: bool) -> Option<String> {
        let due = self.due()?;
        (is_pressing || self.text.len() >= ENOUGH || due <= Instant::now()).then(|| self.take())
    }

    /// At the end, all that is left.
    pub fn rest(&mut self) -> Option<String> {
        (!self.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> String {
        self.told += 1;
        self.since = None;
        let text = std::mem::take(&mut self.text);
        match std::mem::take(&mut self.left_out) {
            0 => text,
            bytes => format!("[{bytes} bytes on standard error are left out here]\n{text}"),
        }
    }
}

/// The last lines a program said aside, which may tell why it failed.
#[derive(Debug, Default)]
pub struct LastWords(VecDeque<String>);

impl LastWords {
    pub fn take(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        self.0.extend(lines[lines.len().saturating_sub(LAST_WORDS)..].iter().map(|line| (*line).to_owned()));
        self.0.drain(..self.0.len().saturating_sub(LAST_WORDS));
    }

    pub fn told(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{Aside, ENOUGH, LastWords, MOST, TOGETHER};

    #[tokio::test(start_paused = true)]
    async fn lines_that_come_together_are_told_together() {
        let mut aside = Aside::default();
        assert_eq!((aside.due(), aside.ready(true)), (None, None));
        aside.add("");
        aside.add("one");
        assert_eq!(aside.ready(false), None, "more may come");
        assert_eq!(aside.ready(true).as_deref(), Some("\none"), "what comes next stands after it");
        aside.add("two");
        tokio::time::advance(TOGETHER).await;
        assert_eq!(aside.ready(false).as_deref(), Some("two"), "it has waited long enough");
        aside.add(&"x".repeat(ENOUGH));
        assert!(aside.ready(false).is_some(), "it is enough");
        assert_eq!((aside.rest(), aside.is_empty()), (None, true));
    }

    #[test]
    fn only_so_much_is_told_and_the_end_of_it() {
        let mut aside = Aside::default();
        for number in 0..MOST {
            aside.add(&number.to_string());
            assert!(aside.ready(true).is_some());
        }
        for _ in 0..100_000 {
            aside.add("ä");
            assert_eq!((aside.ready(true), aside.due()), (None, None));
        }
        aside.add("it broke");
        let rest = aside.rest().expect("the end");
        assert!(rest.starts_with('[') && rest.ends_with("ä\nit broke") && rest.len() < 10_000, "{}", rest.len());
        let mut words = LastWords::default();
        words.take(&rest);
        words.take("really");
        assert_eq!(words.told(), "ä\nä\nä\nit broke\nreally");
    }
}
