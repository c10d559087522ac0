//! Who did the last work of each context, as far back as is worth remembering.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// So many contexts are remembered; the oldest are forgotten.
const REMEMBERED: usize = 10_000;

#[derive(Default)]
pub struct Contexts {
    workers: HashMap<Arc<str>, Arc<str>>,
    order: VecDeque<Arc<str>>,
}

impl Contexts {
    pub fn get(&self, context: &str) -> Option<&Arc<str>> {
        self.workers.get(context)
    }

    pub fn put(&mut self, context: Arc<str>, worker: Arc<str>) {
        if self.workers.insert(Arc::clone(&context), worker).is_some() {
            return;
        }
        self.order.push_back(context);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.workers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Contexts, REMEMBERED};

    #[test]
    fn the_oldest_are_forgotten() {
        let mut contexts = Contexts::default();
        for number in 0..=REMEMBERED {
            contexts.put(number.to_string().into(), "a".into());
        }
        contexts.put("1".into(), "b".into());
        assert_eq!((contexts.get("0"), contexts.get("1").map(|w| &**w)), (None, Some("b")));
        assert_eq!(contexts.order.len(), REMEMBERED);
    }
}
