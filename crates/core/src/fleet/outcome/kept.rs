//! What is kept of reports until the worker's last word, and the number or id they came under.

use super::{Judge, Ruling, own};
use crate::budget;
use flotilla_protocol::block::Block;
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::fleet::told::ToldResult;
use flotilla_protocol::work::Report;

impl Ruling {
    fn kept(&mut self) -> &mut Vec<Report> {
        match self {
            Self::Pass(kept) | Self::Over { reports: kept, .. } | Self::Blocked(_, kept) | Self::Again(_, kept) => kept,
        }
    }
}

impl Judge {
    /// Reads reports; what they come to, and what the worker announced in them. The number they came under is kept with
    /// what is kept of them, or what they tell would count again.
    pub fn rule(&mut self, mut reports: Vec<Report>) -> (Ruling, Vec<Announce>) {
        let received = reports.pop_if(|report| matches!(report, Report::Received { .. }));
        let (mut ruling, announced) = self.read(reports);
        let (aside, noted) = (std::mem::take(&mut self.aside), std::mem::take(&mut self.noted));
        let is_open = matches!(ruling, Ruling::Pass(_)) && self.told.is_some();
        let kept = ruling.kept();
        if !aside.is_empty() {
            kept.insert(0, Report::Note { blocks: aside });
        }
        let told: Vec<Block> = noted.iter().filter(|_| is_open).filter_map(ToldResult::block).collect();
        if !told.is_empty() {
            // Behind the words it stands with, which are no work that was begun.
            kept.push(Report::Note { blocks: told });
        }
        let is_told = !kept.is_empty() || matches!(ruling, Ruling::Pass(_));
        if is_told {
            ruling.kept().extend(received);
        }
        (ruling, announced)
    }

    /// Takes up what the ledger says of hard ceilings before the worker's last word is read.
    pub fn hold(&mut self, held: Option<Vec<budget::Held>>) {
        (self.held, self.counted) = (held, self.spent.total().unwrap_or_default());
    }

    /// A result that tells of usage and that no last word followed.
    pub fn held(&mut self) -> Option<Report> {
        let (result, _) = self.told.take()?;
        result.usage.is_some().then(|| own::report(own::artifact(None, None), &result))
    }
}
