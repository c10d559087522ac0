//! Lanes: how many deliveries each principal has under way, to each origin and in all, so that what hangs for one of
//! them holds up nobody else.

use crate::ids::{HookId, PrincipalId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What a new origin is trusted with; each success adds one, each failure takes half.
const FIRST: usize = 4;
/// The most for one origin.
const WIDEST: usize = 32;
/// Origins are remembered up to this number for each principal, so that callers cannot fill the memory with them.
const REMEMBERED: usize = 1_000;

/// One principal's deliveries to one origin.
struct Lane {
    width: usize,
    busy: usize,
    /// It never answered yet, or its last delivery failed and there was nothing left to take.
    doubtful: bool,
    /// Whether it stands among those that have something to do.
    open: bool,
    ready: VecDeque<HookId>,
}

/// What one principal has under way and waiting.
#[derive(Default)]
struct Share {
    lanes: HashMap<Arc<str>, Lane>,
    /// Lanes with something to do and room for it, each once, in turn: those that answer, and those in doubt.
    well: VecDeque<Arc<str>>,
    doubtful: VecDeque<Arc<str>>,
    /// Whose turn is next, so that neither kind starves the other.
    doubtful_next: bool,
    busy: usize,
    /// Whether it stands among those that wait for their turn.
    waits: bool,
}

impl Share {
    fn reopen(&mut self, origin: &Arc<str>) {
        let Some(lane) = self.lanes.get_mut(origin) else { return };
        if !lane.open && !lane.ready.is_empty() && lane.busy < lane.width {
            lane.open = true;
            let queue = if lane.doubtful { &mut self.doubtful } else { &mut self.well };
            queue.push_back(Arc::clone(origin));
        }
    }

    /// The next of its open lanes, of the kind whose turn it is if that may be taken.
    fn next(&mut self, may_doubt: bool) -> Option<Arc<str>> {
        let doubtful_first = self.doubtful_next;
        self.doubtful_next = !doubtful_first;
        let doubtful = if may_doubt { Some(&mut self.doubtful) } else { None };
        match doubtful {
            None => self.well.pop_front(),
            Some(doubtful) if doubtful_first => doubtful.pop_front().or_else(|| self.well.pop_front()),
            Some(doubtful) => self.well.pop_front().or_else(|| doubtful.pop_front()),
        }
    }

    /// An open lane whose standing changed stands with the others of its kind.
    fn move_over(&mut self, origin: &Arc<str>, doubtful: bool) {
        let (from, to) =
            if doubtful { (&mut self.well, &mut self.doubtful) } else { (&mut self.doubtful, &mut self.well) };
        from.retain(|other| other != origin);
        to.push_back(Arc::clone(origin));
    }
}

/// The deliveries of all principals.
pub struct Lanes {
    shares: HashMap<PrincipalId, Share>,
    /// Principals with open lanes, each once, in turn.
    turns: VecDeque<PrincipalId>,
    most: usize,
    busy: usize,
    /// Deliveries to origins in doubt: never more than half of all.
    busy_doubtful: usize,
}

impl Lanes {
    pub fn new(most: usize) -> Self {
        Self { shares: HashMap::new(), turns: VecDeque::new(), most, busy: 0, busy_doubtful: 0 }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// A hook has something to deliver.
    pub fn put(&mut self, principal: PrincipalId, origin: &str, hook: HookId) {
        let share = self.shares.entry(principal).or_default();
        let origin: Arc<str> = match share.lanes.get_key_value(origin) {
            Some((known, _)) => Arc::clone(known),
            None => origin.into(),
        };
        let lane = share.lanes.entry(Arc::clone(&origin)).or_insert_with(|| Lane {
            width: FIRST,
            busy: 0,
            doubtful: true,
            open: false,
            ready: VecDeque::new(),
        });
        lane.ready.push_back(hook);
        share.reopen(&origin);
        self.wait(principal);
    }

    fn wait(&mut self, principal: PrincipalId) {
        let Some(share) = self.shares.get_mut(&principal) else { return };
        let is_idle = share.well.is_empty() && share.doubtful.is_empty();
        if !share.waits && !is_idle {
            share.waits = true;
            self.turns.push_back(principal);
        }
    }

    /// The next hook whose turn it is: principals take turns, and each its origins.
    pub fn take(&mut self) -> Option<(HookId, PrincipalId, Arc<str>)> {
        if self.busy >= self.most {
            return None;
        }
        let may_doubt = self.busy_doubtful < self.most.div_ceil(2);
        for _ in 0..self.turns.len() {
            let principal = self.turns.pop_front()?;
            let Some(share) = self.shares.get_mut(&principal) else { continue };
            share.waits = false;
            // Nobody holds more than a quarter, so that there is room for others at any time.
            let next = if share.busy < self.most.div_ceil(4) { share.next(may_doubt) } else { None };
            let taken = next.and_then(|origin| {
                let lane = share.lanes.get_mut(&origin)?;
                lane.open = false;
                let hook = lane.ready.pop_front()?;
                lane.busy += 1;
                share.busy += 1;
                self.busy += 1;
                self.busy_doubtful += usize::from(lane.doubtful);
                share.reopen(&origin);
                Some((hook, principal, origin))
            });
            self.wait(principal);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// A hook that was taken is through; whether it went well, if it went at all.
    pub fn done(&mut self, principal: PrincipalId, origin: &str, went: Option<bool>) {
        let Some(share) = self.shares.get_mut(&principal) else { return };
        let Some((origin, lane)) = share.lanes.get_key_value(origin) else { return };
        let (origin, was_doubtful) = (Arc::clone(origin), lane.doubtful);
        let Some(lane) = share.lanes.get_mut(&origin) else { return };
        lane.busy -= 1;
        match went {
            Some(true) => {
                lane.width = (lane.width + 1).min(WIDEST);
                lane.doubtful = false;
            }
            Some(false) => {
                lane.doubtful |= lane.width == 1;
                lane.width = (lane.width / 2).max(1);
            }
            None => {}
        }
        share.busy -= 1;
        self.busy -= 1;
        // All of a lane's deliveries count, from the moment it is in doubt until it is not.
        self.busy_doubtful -= usize::from(was_doubtful);
        let (doubtful, busy, open) = (lane.doubtful, lane.busy, lane.open);
        let is_through = busy == 0 && lane.ready.is_empty();
        if was_doubtful != doubtful {
            match doubtful {
                true => self.busy_doubtful += busy,
                false => self.busy_doubtful -= busy,
            }
            if open {
                share.move_over(&origin, doubtful);
            }
        }
        if is_through && (went.is_none() && doubtful || share.lanes.len() > REMEMBERED) {
            share.lanes.remove(&origin);
        } else {
            share.reopen(&origin);
        }
        if share.lanes.is_empty() {
            self.shares.remove(&principal);
        }
        self.wait(principal);
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, Lanes, REMEMBERED, WIDEST};
    use crate::ids::{HookId, PrincipalId};

    const ANN: PrincipalId = PrincipalId(1);
    const BEN: PrincipalId = PrincipalId(2);

    fn put(lanes: &mut Lanes, principal: PrincipalId, origin: &str, count: usize) {
        for _ in 0..count {
            lanes.put(principal, origin, HookId::fresh());
        }
    }

    fn taken(lanes: &mut Lanes) -> usize {
        std::iter::from_fn(|| lanes.take()).count()
    }

    fn busy(lanes: &Lanes, principal: PrincipalId) -> usize {
        lanes.shares.get(&principal).map_or(0, |share| share.busy)
    }

    #[test]
    fn a_new_origin_gets_little_and_earns_more() {
        let mut lanes = Lanes::new(1000);
        put(&mut lanes, ANN, "a", 200);
        assert_eq!(taken(&mut lanes), FIRST);
        lanes.done(ANN, "a", Some(true));
        assert_eq!(taken(&mut lanes), 2, "one is free, one more is trusted");
        for _ in 0..100 {
            lanes.done(ANN, "a", Some(true));
            taken(&mut lanes);
        }
        assert_eq!(lanes.shares[&ANN].lanes["a"].busy, WIDEST);
    }

    #[test]
    fn what_hangs_holds_up_nobody_else() {
        let mut lanes = Lanes::new(64);
        put(&mut lanes, ANN, "dead", 100);
        put(&mut lanes, ANN, "well", 100);
        assert_eq!(taken(&mut lanes), 2 * FIRST, "each has its own");
        for _ in 0..FIRST {
            lanes.done(ANN, "dead", Some(false));
        }
        assert_eq!(lanes.shares[&ANN].lanes["dead"].width, 1);
        assert_eq!(taken(&mut lanes), 1, "one at a time to see whether it lives");
        lanes.done(ANN, "well", Some(true));
        assert_eq!(taken(&mut lanes), 2);
    }

    #[test]
    fn one_origin_serves_others_while_it_hangs_for_one() {
        let mut lanes = Lanes::new(1000);
        put(&mut lanes, ANN, "shared", 40);
        assert_eq!(taken(&mut lanes), FIRST);
        put(&mut lanes, BEN, "shared", 1);
        assert_eq!((taken(&mut lanes), busy(&lanes, BEN)), (1, 1), "nobody has to end first");
        for _ in 0..FIRST {
            lanes.done(ANN, "shared", Some(false));
        }
        lanes.done(BEN, "shared", Some(true));
        put(&mut lanes, BEN, "shared", 5);
        taken(&mut lanes);
        assert_eq!((busy(&lanes, ANN), busy(&lanes, BEN)), (1, FIRST + 1), "each is trusted by what it brought");
    }

    #[test]
    fn one_principal_holds_a_quarter_at_the_most_and_others_come_next() {
        let mut lanes = Lanes::new(64);
        for n in 0..700 {
            put(&mut lanes, ANN, &format!("hangs-{n}"), 2);
        }
        assert_eq!(taken(&mut lanes), 16, "new origins, of which none has answered");
        put(&mut lanes, BEN, "new", 1);
        assert_eq!((taken(&mut lanes), busy(&lanes, BEN)), (1, 1));
        lanes.done(BEN, "new", Some(true));
        // Three more take what is left for origins in doubt; one that answered has a place all the same.
        for other in 3..=5 {
            for n in 0..20 {
                put(&mut lanes, PrincipalId(other), &format!("hangs-{n}"), 1);
            }
        }
        assert_eq!(taken(&mut lanes), 16, "half of all are for origins in doubt");
        put(&mut lanes, BEN, "new", 1);
        assert_eq!((taken(&mut lanes), busy(&lanes, BEN)), (1, 1));
    }

    #[test]
    fn all_that_fails_together_takes_half_at_the_most() {
        let mut lanes = Lanes::new(8);
        let principals: Vec<PrincipalId> = (1..=20).map(PrincipalId).collect();
        for principal in &principals {
            put(&mut lanes, *principal, "dead", 8);
        }
        for _ in 0..200 {
            while lanes.take().is_some() {}
            for principal in &principals {
                for _ in 0..busy(&lanes, *principal) {
                    lanes.done(*principal, "dead", Some(false));
                    put(&mut lanes, *principal, "dead", 1);
                }
            }
        }
        while lanes.take().is_some() {}
        assert_eq!((lanes.busy, lanes.busy_doubtful), (4, 4), "half, and all of it in doubt");
        let each: usize = principals.iter().map(|principal| busy(&lanes, *principal)).sum();
        assert_eq!(each, lanes.busy);
    }

    #[test]
    fn an_origin_that_answers_again_is_among_the_well_at_once() {
        let mut lanes = Lanes::new(8);
        put(&mut lanes, ANN, "a", 3);
        assert_eq!(taken(&mut lanes), 2, "a quarter");
        lanes.done(ANN, "a", Some(true));
        assert_eq!(lanes.busy_doubtful, 0, "what is under way counts no more");
        let share = &lanes.shares[&ANN];
        assert_eq!((share.well.len(), share.doubtful.len()), (1, 0));
        assert_eq!(taken(&mut lanes), 1);
    }

    #[test]
    fn not_every_origin_is_remembered() {
        let mut lanes = Lanes::new(8);
        for n in 0..REMEMBERED + 50 {
            let origin = format!("origin-{n}");
            for round in 0..4 {
                put(&mut lanes, ANN, &origin, 1);
                assert_eq!(taken(&mut lanes), 1);
                lanes.done(ANN, &origin, Some(n % 2 == 0 && round == 3));
            }
        }
        let count = lanes.shares[&ANN].lanes.len();
        assert!(count <= REMEMBERED, "{count} are remembered");
        assert_eq!((lanes.busy, lanes.busy_doubtful), (0, 0));
        put(&mut lanes, BEN, "untried", 1);
        assert_eq!(taken(&mut lanes), 1);
        lanes.done(BEN, "untried", None);
        assert!(!lanes.shares.contains_key(&BEN), "nothing is known of it");
    }
}
