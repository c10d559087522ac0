//! What the runs of dispatched work used, as their reports tell it: each thing once.

use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::TaskResult;
use flotilla_protocol::fleet::result::Usage as Told;
use flotilla_protocol::usage::Usage;
use flotilla_protocol::work::{Contents, Report};

/// What was used in the runs before this one, and in this one so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    before: Usage,
    run: Usage,
}

impl Spent {
    /// Reads along with a log.
    pub fn event(&mut self, event: &Event) {
        if let Event::RunQueued { .. } = event {
            self.before.add(&std::mem::take(&mut self.run));
        }
        if let Some(usage) = Usage::of(std::slice::from_ref(event)) {
            self.run.add(&usage);
        }
    }

    /// Reads along with a worker's reports.
    pub fn report(&mut self, report: &Report) {
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

    /// All of it; none if nothing was told.
    pub fn total(&self) -> Option<Usage> {
        let mut all = self.before;
        all.add(&self.run);
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
    use flotilla_protocol::event::Event;
    use flotilla_protocol::fleet::TaskResult;
    use flotilla_protocol::fleet::result::Usage;
    use flotilla_protocol::wire::Json;
    use serde_json::json;

    fn used(input: u64) -> Event {
        let json = json!({"type": "usage", "input_tokens": input, "cost_usd": 0.5});
        Event::Noted { blocks: vec![Block::new(Json::of(&json).unwrap()).unwrap()] }
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
}
