//! The reading of the figures: where the durable hub is ahead of each peer, and where it is not.

use crate::results::Results;
use crate::server::Server;
use crate::table::ratio_text;

/// Ratios nearer to 1 than this are called even.
const EVEN: f64 = 0.1;

/// A paragraph for each peer; what the hub does worse is named in full.
pub fn in_short(results: &Results) -> String {
    let mut text = String::from(
        "\n## In short\n\nFlotilla with its store on disk, flushed before each answer, beside each peer, which keeps its \
         tasks in memory. Of all measures below:\n\n",
    );
    for peer in Server::ALL.into_iter().filter(|server| !server.is_hub()) {
        let ratios: Vec<_> = results
            .measures()
            .into_iter()
            .filter_map(|measure| Some((measure, results.ratio(measure, Server::Hub, peer)?)))
            .collect();
        if ratios.is_empty() {
            continue;
        }
        let ahead = ratios.iter().filter(|(_, ratio)| ratio.median > 1.0 + EVEN).count();
        let behind: Vec<_> = ratios.iter().filter(|(_, ratio)| ratio.median < 1.0 - EVEN).collect();
        let even = ratios.len() - ahead - behind.len();
        text += &format!(
            "- **{}**: ahead in {ahead} of {}, even (within a tenth) in {even}, behind in {}.\n",
            peer.label(),
            ratios.len(),
            behind.len()
        );
        // Nothing is expected to reach the ceiling, so what is behind it says little.
        for (measure, ratio) in behind.iter().filter(|_| peer != Server::Ceiling) {
            text += &format!("  - behind: {measure}: {}\n", ratio_text(*ratio));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_is_named() {
        let mut results = Results::default();
        for (measure, ours, theirs) in
            [("a requests/s", 30.0, 10.0), ("b requests/s", 1.0, 1.0), ("cold start", 9.0, 3.0)]
        {
            results.add(measure, Server::Hub, 0, ours);
            results.add(measure, Server::Official, 0, theirs);
        }
        let text = in_short(&results);
        assert!(
            text.contains("**a2a-server-lf**: ahead in 1 of 3, even (within a tenth) in 1, behind in 1."),
            "{text}"
        );
        assert!(text.contains("behind: cold start: 0.333"), "{text}");
        assert!(!text.contains("a2a-sdk"), "{text}");
    }
}
