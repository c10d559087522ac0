//! What is kept of reports until the worker's last word, and the number or id they came under.

use super::{Judge, Ruling, own};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::work::Report;

impl Judge {
    /// Reads reports; what they come to, and what the worker announced in them. The number they came under is kept with
    /// what is kept of them, or what they tell would count again.
    pub fn rule(&mut self, mut reports: Vec<Report>) -> (Ruling, Vec<Announce>) {
        let received = reports.pop_if(|report| matches!(report, Report::Received { .. }));
        let (mut ruling, announced) = self.read(reports);
        match &mut ruling {
            Ruling::Pass(kept) | Ruling::Over { reports: kept, .. } => kept.extend(received),
            Ruling::Blocked(_, kept) | Ruling::Again(_, kept) if !kept.is_empty() => kept.extend(received),
            Ruling::Blocked(..) | Ruling::Again(..) => {}
        }
        (ruling, announced)
    }

    /// A result that tells of usage and that no last word followed.
    pub fn held(&mut self) -> Option<Report> {
        let (result, _) = self.told.take()?;
        result.usage.is_some().then(|| own::report(own::artifact(None, None), &result))
    }
}
