//! Counters: the totals of lists stay exact, whatever happens to tasks.

use crate::author::{Author, Draft, WORDS, id_at, outcomes, queue};
use crate::home::Home;
use crate::random::Random;
use crate::sweep::sweep_all;
use flotilla_core::ids::{AgentId, PrincipalId};
use flotilla_core::ports::{Dedupe, ListFilter, Retention, Store};
use flotilla_core::task::Kind;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

pub async fn totals_are_exact_under_random_histories(home: &impl Home) {
    let store = home.open();
    for seed in 1..=4 {
        let mut history = History::new(seed, home);
        for round in 1..=40 {
            let (drafts, expected) = history.batch(round);
            assert_eq!(outcomes(queue(&store, drafts)).await, expected, "seed {seed}, round {round}");
            if history.random.once_in(6) {
                let before = Millis(round - 15);
                sweep_all(&store, Retention { tasks_before: Some(before), ..Retention::default() }).await;
                history.tasks.retain(|task| !task.head.is_over() || last(task) >= before);
            }
            if history.random.once_in(3) {
                compare(&store, &history, round).await;
            }
        }
        compare(&store, &history, 0).await;
    }
}

fn last(task: &Author) -> Millis {
    task.head.status_at.max(task.head.created_at)
}

/// Random tasks of two principals with two agents, and what must be true of them.
struct History {
    random: Random,
    principals: [PrincipalId; 2],
    tasks: Vec<Author>,
    used: Option<Dedupe>,
    /// Whether some drafts are not fit to be kept.
    spoils: bool,
}

const AGENTS: [AgentId; 2] = [AgentId(21), AgentId(22)];

impl History {
    fn new<H: Home>(seed: u64, _: &H) -> Self {
        let principals = [PrincipalId(100 + 2 * seed as i64), PrincipalId(101 + 2 * seed as i64)];
        Self { random: Random::new(seed), principals, tasks: Vec::new(), used: None, spoils: H::WRITES }
    }

    /// Some drafts to be handed over together, good and bad, and what must become of each.
    fn batch(&mut self, at: i64) -> (Vec<Draft>, Vec<&'static str>) {
        let (mut drafts, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..=self.random.below(25) {
            let index = self.any_task(at);
            let word = self.random.pick(&WORDS);
            let Some(draft) = self.tasks[index].draft(word, at) else { continue };
            let (draft, mut outcome) = self.twist(draft);
            if outcome == "kept" {
                self.tasks[index].kept(&draft);
                if self.random.once_in(8) {
                    // Handed over twice: the second comes too late, or was sent before.
                    drafts.push(draft.clone());
                    expected.push("kept");
                    outcome = if draft.has_key() { "duplicate" } else { "stale" };
                }
            }
            drafts.push(draft);
            expected.push(outcome);
        }
        (drafts, expected)
    }

    fn any_task(&mut self, at: i64) -> usize {
        if self.tasks.is_empty() || self.random.once_in(4) {
            let (principal, agent) = (self.random.pick(&self.principals), self.random.pick(&AGENTS));
            let id = id_at(at, &mut self.random);
            self.tasks.push(Author::of(id, principal, agent, "context"));
            return self.tasks.len() - 1;
        }
        self.random.below(self.tasks.len())
    }

    /// Mostly as it is; now and then with a new key, with one that was used, or not fit to be kept.
    fn twist(&mut self, draft: Draft) -> (Draft, &'static str) {
        match (self.random.below(16), self.used) {
            (0, _) if self.spoils => (draft.spoiled(), "failed"),
            (1, Some(used)) => (draft.with_key(used), "duplicate"),
            (2, None) => {
                let dedupe = Dedupe { key: self.random.digest(), hash: self.random.digest() };
                self.used = Some(dedupe);
                (draft.with_key(dedupe), "kept")
            }
            _ => (draft, "kept"),
        }
    }

    fn count(&self, principal: PrincipalId, agent: AgentId, state: Option<TaskState>) -> u64 {
        let counts = |task: &&Author| {
            let head = &task.head;
            let mine = head.principal == principal && head.agent == agent && head.kind == Kind::Task;
            mine && state.is_none_or(|state| head.state == state)
        };
        self.tasks.iter().filter(counts).count() as u64
    }
}

async fn compare(store: &Arc<dyn Store>, history: &History, round: i64) {
    let open = store.open_tasks().await.unwrap();
    for principal in history.principals {
        let told = open.iter().find(|(known, _)| *known == principal).map_or(0, |(_, count)| *count);
        let mine = |task: &&Author| task.head.principal == principal && !task.head.is_over() && task.head.version > 0;
        assert_eq!(told, history.tasks.iter().filter(mine).count(), "round {round}: open tasks of {principal:?}");
    }
    let states = TaskState::ALL.iter().skip(1).copied().map(Some).chain([None]);
    for state in states {
        for principal in history.principals {
            for agent in AGENTS {
                let filter = ListFilter { state, limit: 1, ..ListFilter::default() };
                let total = store.list(principal, agent, filter).await.unwrap().total;
                let expected = history.count(principal, agent, state);
                assert_eq!(total, expected, "round {round}: {principal:?}, {agent:?}, {state:?}");
            }
        }
    }
}
