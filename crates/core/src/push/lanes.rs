//! Lanes: how many deliveries go to each origin at once, so that one that hangs holds up nobody else.

use crate::ids::HookId;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What a new origin is trusted with; each success adds one, each failure takes half.
const FIRST: usize = 4;
/// The most for one origin.
const WIDEST: usize = 32;
/// Origins that failed are remembered up to this number, so that callers cannot fill the memory with them.
const REMEMBERED: usize = 10_000;

struct Lane {
    width: usize,
    busy: usize,
    /// The last delivery failed, and there was nothing left to take.
    failing: bool,
    /// Whether it stands among those that have something to do.
    open: bool,
    ready: VecDeque<HookId>,
}

/// All origins that something is or was sent to.
pub struct Lanes {
    lanes: HashMap<Arc<str>, Lane>,
    /// Lanes with something to do and room for it, each once, in turn.
    open: VecDeque<Arc<str>>,
    most: usize,
    busy: usize,
    /// Deliveries to origins that fail: never more than half of all.
    busy_failing: usize,
}

impl Lanes {
    pub fn new(most: usize) -> Self {
        Self { lanes: HashMap::new(), open: VecDeque::new(), most, busy: 0, busy_failing: 0 }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// A hook has something to deliver.
    pub fn put(&mut self, origin: &str, hook: HookId) {
        let origin: Arc<str> = match self.lanes.get_key_value(origin) {
            Some((known, _)) => Arc::clone(known),
            None => origin.into(),
        };
        let lane = self.lanes.entry(Arc::clone(&origin)).or_insert_with(|| Lane {
            width: FIRST,
            busy: 0,
            failing: false,
            open: false,
            ready: VecDeque::new(),
        });
        lane.ready.push_back(hook);
        self.reopen(&origin);
    }

    fn reopen(&mut self, origin: &Arc<str>) {
        let Some(lane) = self.lanes.get_mut(origin) else { return };
        if !lane.open && !lane.ready.is_empty() && lane.busy < lane.width {
            lane.open = true;
            self.open.push_back(Arc::clone(origin));
        }
    }

    /// The next hook whose turn it is.
    pub fn take(&mut self) -> Option<(HookId, Arc<str>)> {
        if self.busy >= self.most {
            return None;
        }
        for _ in 0..self.open.len() {
            let origin = self.open.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&origin) else { continue };
            if lane.failing && self.busy_failing >= self.most.div_ceil(2) {
                self.open.push_back(origin);
                continue;
            }
            lane.open = false;
            let Some(hook) = lane.ready.pop_front() else { continue };
            lane.busy += 1;
            self.busy += 1;
            self.busy_failing += usize::from(lane.failing);
            self.reopen(&origin);
            return Some((hook, origin));
        }
        None
    }

    /// A hook that was taken is through; whether it went well, if it went at all.
    pub fn done(&mut self, origin: &str, went: Option<bool>) {
        let Some((origin, lane)) = self.lanes.get_key_value(origin) else { return };
        let (origin, was_failing) = (Arc::clone(origin), lane.failing);
        let Some(lane) = self.lanes.get_mut(&origin) else { return };
        lane.busy -= 1;
        match went {
            Some(true) => {
                lane.width = (lane.width + 1).min(WIDEST);
                lane.failing = false;
            }
            Some(false) => {
                lane.failing = lane.width == 1;
                lane.width = (lane.width / 2).max(1);
            }
            None => {}
        }
        self.busy -= 1;
        // All of a lane's deliveries count, from the moment it fails until it does not.
        self.busy_failing -= usize::from(was_failing);
        match (was_failing, lane.failing) {
            (false, true) => self.busy_failing += lane.busy,
            (true, false) => self.busy_failing -= lane.busy,
            _ => {}
        }
        let is_through = lane.busy == 0 && lane.ready.is_empty();
        if is_through && (!lane.failing || self.lanes.len() > REMEMBERED) {
            self.lanes.remove(&origin);
        } else {
            self.reopen(&origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, Lanes, REMEMBERED, WIDEST};
    use crate::ids::HookId;

    fn put(lanes: &mut Lanes, origin: &str, count: usize) {
        for _ in 0..count {
            lanes.put(origin, HookId::fresh());
        }
    }

    fn taken(lanes: &mut Lanes) -> usize {
        std::iter::from_fn(|| lanes.take()).count()
    }

    #[test]
    fn a_new_origin_gets_little_and_earns_more() {
        let mut lanes = Lanes::new(1000);
        put(&mut lanes, "a", 200);
        assert_eq!(taken(&mut lanes), FIRST);
        lanes.done("a", Some(true));
        assert_eq!(taken(&mut lanes), 2, "one is free, one more is trusted");
        for _ in 0..100 {
            lanes.done("a", Some(true));
            taken(&mut lanes);
        }
        assert_eq!(lanes.lanes["a"].busy, WIDEST);
    }

    #[test]
    fn what_hangs_holds_up_nobody_else() {
        let mut lanes = Lanes::new(16);
        put(&mut lanes, "dead", 100);
        put(&mut lanes, "well", 100);
        assert_eq!(taken(&mut lanes), 2 * FIRST, "each has its own");
        for _ in 0..FIRST {
            lanes.done("dead", Some(false));
        }
        assert_eq!(lanes.lanes["dead"].width, 1);
        assert_eq!(taken(&mut lanes), 1, "one at a time to see whether it lives");
        lanes.done("well", Some(true));
        assert_eq!(taken(&mut lanes), 2);
    }

    #[test]
    fn all_that_fails_together_takes_half_at_the_most() {
        let mut lanes = Lanes::new(8);
        for n in 0..20 {
            let origin = format!("dead-{n}");
            put(&mut lanes, &origin, 8);
        }
        // Each is tried until it is known to fail.
        for _ in 0..200 {
            while lanes.take().is_some() {}
            let busy: Vec<String> =
                lanes.lanes.iter().filter(|(_, lane)| lane.busy > 0).map(|(name, _)| name.to_string()).collect();
            for origin in busy {
                lanes.done(&origin, Some(false));
                lanes.put(&origin, HookId::fresh());
            }
        }
        while lanes.take().is_some() {}
        let failing: usize = lanes.lanes.values().filter(|lane| lane.failing).map(|lane| lane.busy).sum();
        assert_eq!(failing, lanes.busy_failing);
        assert!(failing <= 4, "{failing} of 8 are with origins that fail");
        put(&mut lanes, "well", 4);
        assert!(taken(&mut lanes) > 0, "there is room for one that is well");
    }

    #[test]
    fn not_every_origin_that_fails_is_remembered() {
        let mut lanes = Lanes::new(8);
        for n in 0..REMEMBERED + 50 {
            let origin = format!("dead-{n}");
            for _ in 0..4 {
                put(&mut lanes, &origin, 1);
                assert_eq!(taken(&mut lanes), 1);
                lanes.done(&origin, Some(false));
            }
        }
        assert!(lanes.lanes.len() <= REMEMBERED, "{} are remembered", lanes.lanes.len());
        assert_eq!((lanes.busy, lanes.busy_failing), (0, 0));
    }

    #[test]
    fn an_origin_that_is_through_is_forgotten() {
        let mut lanes = Lanes::new(8);
        put(&mut lanes, "a", 1);
        assert_eq!(taken(&mut lanes), 1);
        lanes.done("a", Some(true));
        assert!(lanes.lanes.is_empty() && lanes.open.is_empty() && lanes.busy == 0);
    }
}
