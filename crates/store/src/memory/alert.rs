//! Alerts that people have yet to be told.

use super::Memory;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{AlertStore, Later, MOST_OWED, Owed};

impl AlertStore for Memory {
    fn owe(&self, owed: Owed) -> Later<()> {
        self.now(|tables| {
            tables.owed.insert(owed.id, owed);
            if tables.owed.len() > MOST_OWED {
                tables.owed.pop_first();
            }
        })
    }
    fn owed(&self) -> Later<Vec<Owed>> {
        self.now(|tables| tables.owed.values().cloned().collect())
    }
    fn forget_owed(&self, id: TaskId) -> Later<()> {
        self.now(|tables| drop(tables.owed.remove(&id)))
    }
}
