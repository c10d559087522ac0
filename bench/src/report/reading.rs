//! The reading of the figures: where the durable hub is ahead of each peer, and where it is not.

use crate::results::Results;
use crate::server::Server;
use crate::subject::send;
use crate::table::number;

/// Ratios nearer to 1 than this are called even.
const EVEN: f64 = 0.1;

/// A paragraph for each peer; what the hub does worse is named in full.
pub fn in_short(results: &Results) -> String {
    let mut text = String::from(
        "\n## In short\n\nFlotilla with its store on disk, flushed before each answer, beside each peer, which keeps its \
         tasks in memory. Of all measures below that compare equal work, with the ratio where Flotilla is behind:\n\n",
    );
    for peer in Server::ALL.into_iter().filter(|server| !server.is_hub()) {
        let measures = results.measures().into_iter().filter(|measure| !send::is_own(measure));
        let ratios: Vec<(&str, f64)> =
            measures.filter_map(|measure| Some((measure, results.ratio(measure, Server::Hub, peer)?.median))).collect();
        if ratios.is_empty() {
            continue;
        }
        let ahead = ratios.iter().filter(|(_, ratio)| *ratio > 1.0 + EVEN).count();
        let behind: Vec<_> = ratios.iter().filter(|(_, ratio)| *ratio < 1.0 - EVEN).collect();
        let even = ratios.len() - ahead - behind.len();
        text += &format!("- **{}**: ahead in {ahead} of {}, ", peer.label(), ratios.len());
        text += &format!("even (within a tenth) in {even}, behind in {}", behind.len());
        // Nothing is expected to reach the ceiling, so what is behind it says little.
        let named = behind.iter().filter(|_| peer != Server::Ceiling);
        let named: Vec<String> = named.map(|(measure, ratio)| format!("{measure} ({})", number(*ratio))).collect();
        text += if named.is_empty() { "" } else { ": " };
        text += &format!("{}.\n", named.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_is_named() {
        let mut results = Results::default();
        let figures = [("a requests/s", 30.0, 10.0), ("b requests/s", 1.0, 1.0), ("cold start", 9.0, 3.0)];
        for (measure, ours, theirs) in figures {
            results.add(measure, Server::Hub, 0, ours);
            results.add(measure, Server::Official, 0, theirs);
        }
        let text = in_short(&results);
        let expected =
            "**a2a-server-lf**: ahead in 1 of 3, even (within a tenth) in 1, behind in 1: cold start (0.333).";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("a2a-sdk"), "{text}");
    }
}
