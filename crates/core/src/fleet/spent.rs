//! What the runs of dispatched work used, as their reports tell it: each thing once.

use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::TaskResult;
use flotilla_protocol::fleet::result::Usage as Told;
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::usage::Usage;
use flotilla_protocol::work::{Contents, Report};

/// What was used in the runs before this one, and in this one so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    before: Usage,
    run: Usage,
    number: u32,
    /// Its worker has begun.
    begun: bool,
    /// A bit for each run before it that was begun and told nothing.
    silent: u64,
}

fn bit(run: u32) -> u64 {
    1 << (run % u64::BITS)
}

impl Spent {
    /// Reads along with a log.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::RunQueued { run } => {
                self.silent |= if self.is_silent() { bit(self.number) } else { 0 };
                self.before.add(&std::mem::take(&mut self.run));
                (self.number, self.begun) = (*run, false);
            }
            Event::RunStarted { .. } => self.begun = true,
            Event::Routed { step, .. } if matches!(**step, Step::Blocked { .. }) => self.begun = false,
            _ => {}
        }
        let Some(usage) = Usage::of(std::slice::from_ref(event)) else { return };
        match event {
            Event::Noted { of: Some(earlier), .. } => {
                self.before.add(&usage);
                self.silent &= !bit(earlier.run);
            }
            _ => self.run.add(&usage),
        }
    }

    /// Takes from a log what the runs before this one used; of this one, what was read along counts.
    pub fn recount<'a>(&mut self, events: impl IntoIterator<Item = &'a Event>) {
        let mut all = Self::default();
        events.into_iter().for_each(|event| all.event(event));
        (self.before, self.silent) = (all.before, all.silent);
    }

    /// Whether this run was begun, and told nothing.
    fn is_silent(&self) -> bool {
        self.begun && !self.run_told()
    }

    /// Reads along with a worker's reports.
    pub fn report(&mut self, report: &Report) {
        self.begun = true;
        let blocks = match report {
            Report::Note { blocks } => blocks,
            Report::Artifact { contents: Contents::Blocks(blocks), .. }
            | Report::Status { contents: Some(Contents::Blocks(blocks)), .. }
            | Report::Answer { contents: Contents::Blocks(blocks), .. } => blocks,
            _ => return,
        };
        self.run.add(&Usage::of_blocks(blocks));
    }

    /// What only a result tells is for the ledger too. A run that told of its usage before has told it all.
    pub fn result(&mut self, result: &TaskResult) -> Option<Report> {
        if self.run_told() {
            return None;
        }
        let note = Report::Note { blocks: vec![result.usage.as_ref()?.block()?] };
        self.report(&note);
        Some(note)
    }

    /// Whether this run has told of any.
    pub fn run_told(&self) -> bool {
        self.run.reports > 0
    }

    /// Whether this run has told of anything that costs.
    pub fn run_used(&self) -> bool {
        self.run.figures.iter().flatten().any(|figure| *figure > 0)
    }

    /// All of it; none if nothing was told. What a run used that told nothing is not known, and never nothing.
    pub fn total(&self) -> Option<Usage> {
        let mut all = self.before;
        all.add(&self.run);
        let all = if self.silent != 0 || self.is_silent() { all.with_unknown() } else { all };
        (all.reports > 0).then_some(all)
    }

    /// The hub's own word in a result: what it only claims is kept as a claim.
    pub fn write(&self, result: &mut TaskResult) {
        let total = self.total();
        let tokens = total.as_ref().and_then(Usage::tokens);
        if result.tokens_spent != tokens {
            result.tokens_claimed = result.tokens_claimed.or(result.tokens_spent);
        }
        let more = result.usage.take().map(|usage| usage.more).unwrap_or_default();
        result.tokens_spent = tokens;
        result.usage = total.map(|total| Told { more, ..Told::counted(&total) });
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;
    use flotilla_protocol::block::Block;
    use flotilla_protocol::event::{Earlier, Event};
    use flotilla_protocol::fleet::TaskResult;
    use flotilla_protocol::fleet::result::Usage;
    use flotilla_protocol::wire::Json;
    use serde_json::json;

    fn used(input: u64) -> Event {
        let json = json!({"type": "usage", "input_tokens": input, "cost_usd": 0.5});
        Event::Noted { blocks: vec![Block::new(Json::of(&json).unwrap()).unwrap()], of: None }
    }

    fn tells(input: Option<u64>) -> TaskResult {
        TaskResult { usage: Some(Usage { input_tokens: input, ..Usage::default() }), ..TaskResult::default() }
    }

    fn written(spent: &Spent, mut result: TaskResult) -> (Option<u64>, Option<f64>) {
        spent.write(&mut result);
        (result.tokens_spent, result.usage.and_then(|usage| usage.cost_usd))
    }

    #[test]
    fn a_result_s_usage_counts_only_where_the_run_told_none() {
        let mut silent = Spent::default();
        assert!(silent.result(&tells(Some(7))).is_some() && silent.result(&tells(Some(7))).is_none(), "once");
        assert_eq!(written(&silent, tells(Some(7))), (Some(7), None));
        let mut talks = Spent::default();
        talks.event(&used(3));
        assert!(talks.result(&tells(Some(7))).is_none());
        assert_eq!(written(&talks, tells(Some(7))), (Some(3), Some(0.5)));
        assert!(Spent::default().result(&tells(None)).is_none(), "what says nothing is not counted");
    }

    #[test]
    fn runs_are_added_up_and_each_has_its_own_word() {
        let mut spent = Spent::default();
        spent.event(&used(3));
        spent.event(&Event::RunQueued { run: 2 });
        assert!(spent.result(&tells(Some(7))).is_some(), "the second run has told nothing yet");
        assert_eq!(written(&spent, tells(Some(7))), (Some(10), Some(0.5)));
    }

    fn incomplete(spent: &Spent) -> Vec<String> {
        let mut result = TaskResult::default();
        spent.write(&mut result);
        result.usage.map(|usage| usage.incomplete).unwrap_or_default()
    }

    fn all(late: Option<u32>) -> Event {
        let json = json!({"type": "usage", "input_tokens": 1, "output_tokens": 1, "cache_write_tokens": 1,
            "cache_read_tokens": 1, "cost_usd": 0.5});
        let of = late.map(|run| Earlier { run, worker: "ada".into() });
        Event::Noted { blocks: vec![Block::new(Json::of(&json).unwrap()).unwrap()], of }
    }

    #[test]
    fn a_sum_says_what_of_it_is_not_known() {
        let mut spent = Spent::default();
        spent.event(&used(3));
        assert_eq!(incomplete(&spent), ["tokens_spent"], "output was not told, and counts");
        let mut spent = Spent::default();
        for event in [Event::RunQueued { run: 1 }, Event::RunStarted { run: 1 }, Event::RunQueued { run: 2 }, all(None)]
        {
            spent.event(&event);
        }
        assert_eq!(incomplete(&spent).len(), 6, "the first run told nothing");
        spent.event(&all(Some(1)));
        assert!(incomplete(&spent).is_empty(), "and then it does");
        assert!(spent.run_told() && written(&spent, TaskResult::default()) == (Some(6), Some(1.0)));
        spent.event(&Event::RunQueued { run: 3 });
        assert!(incomplete(&spent).is_empty() && !spent.run_told(), "what was not begun used nothing");
        spent.event(&all(Some(1)));
        assert!(!spent.run_told(), "that was another run");
        spent.event(&Event::RunStarted { run: 3 });
        assert_eq!(incomplete(&spent).len(), 6);
    }
}
