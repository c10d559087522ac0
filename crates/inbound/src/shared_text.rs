//! A text that readers without a key share: rendered at most once a second, however many ask for it.

use bytes::Bytes;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a rendered text is good.
const AGE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct SharedText(Mutex<Option<(Instant, Bytes)>>);

impl SharedText {
    pub fn get(&self, render: impl FnOnce() -> String) -> Bytes {
        // The lock is held while the text is rendered: readers that come meanwhile wait for it and get the same.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((at, text)) if at.elapsed() < AGE => text.clone(),
            _ => {
                let text = Bytes::from(render());
                *last = Some((Instant::now(), text.clone()));
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SharedText;
    use std::cell::Cell;

    #[test]
    fn readers_within_a_second_share_one_rendering() {
        let (text, rendered) = (SharedText::default(), Cell::new(0));
        let read = || {
            text.get(|| {
                rendered.set(rendered.get() + 1);
                "text".into()
            })
        };
        let (one, two) = (read(), read());
        assert_eq!((one.as_ptr(), rendered.get()), (two.as_ptr(), 1), "the same bytes");
    }
}
