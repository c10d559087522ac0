//! Markdown tables: for each server a value, and how it compares with the baseline.

use crate::load::stats::Spread;
use crate::results::Results;
use crate::server::Server;

/// One measured quantity of a table.
pub struct Column {
    pub measure: String,
    /// What values are multiplied with before they are shown.
    pub scale: f64,
}

/// A table of servers, in groups.
pub struct Table<'a> {
    results: &'a Results,
    /// What ratios are against; None for a table without them.
    baseline: Option<Server>,
    text: String,
}

impl<'a> Table<'a> {
    pub fn new(results: &'a Results, baseline: Option<Server>, group: &str, headings: &[&str]) -> Table<'a> {
        let mut text = format!("| {group} | Server |");
        let mut line = "|---|---|".to_owned();
        for heading in headings {
            text += &format!(" {heading} |");
            line += "---:|";
            if baseline.is_some() {
                text += " ratio |";
                line += "---:|";
            }
        }
        Table { results, baseline, text: format!("{text}\n{line}\n") }
    }

    /// A row for each server that was asked for the first column's measure.
    pub fn group(&mut self, name: &str, columns: &[Column]) {
        let Some(first) = columns.first() else { return };
        for server in self.results.servers(&first.measure) {
            self.text += &format!("| {name} | {} |", server.label());
            for column in columns {
                let cells = self.cells(column, server);
                self.text += &cells;
            }
            self.text.push('\n');
        }
    }

    fn cells(&self, column: &Column, server: Server) -> String {
        let spread = self.results.spread(&column.measure, server);
        let gap = self.results.gap_of(&column.measure, server).unwrap_or("-");
        let value = spread.map_or(gap.to_owned(), |spread| number(spread.median * column.scale));
        let Some(baseline) = self.baseline else { return format!(" {value} |") };
        let ratio = match self.results.ratio(&column.measure, server, baseline) {
            Some(_) if server == baseline => "1".to_owned(),
            Some(ratio) => ratio_text(ratio),
            None => "-".to_owned(),
        };
        format!(" {value} | {ratio} |")
    }

    pub fn finish(self) -> String {
        self.text
    }
}

/// `1.62 (1.5 to 1.8)`; one round has no spread.
fn ratio_text(ratio: Spread) -> String {
    if ratio.least == ratio.most {
        return number(ratio.median);
    }
    format!("{} ({} to {})", number(ratio.median), number(ratio.least), number(ratio.most))
}

/// `1 reader`, `10,000 readers`
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let digits = if count < 1000 { count.to_string() } else { number(count as f64) };
    format!("{digits} {noun}{plural}")
}

/// Three digits that count, and commas between thousands.
pub fn number(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if magnitude < 3 {
        let decimals = usize::try_from(2 - magnitude).unwrap_or_default().min(4);
        return format!("{value:.decimals$}");
    }
    let unit = 10_f64.powi(magnitude - 2);
    let digits = format!("{:.0}", (value / unit).round() * unit);
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let shown = [0.0, 0.01234, 1.5, 12.345, 999.4, 1234.0, 26_543.0, 1_000_000.0].map(number);
        assert_eq!(shown, ["0.00", "0.0123", "1.50", "12.3", "999", "1,230", "26,500", "1,000,000"]);
    }

    #[test]
    fn counts_have_a_noun() {
        let shown = [(1, "reader"), (100, "reader"), (10_000, "chunk")].map(|(count, noun)| counted(count, noun));
        assert_eq!(shown, ["1 reader", "100 readers", "10,000 chunks"]);
    }

    #[test]
    fn a_missing_value_says_why() {
        let mut results = Results::default();
        for (round, ours) in [20.0, 30.0].into_iter().enumerate() {
            results.add("requests/s", Server::Hub, round, ours);
            results.add("requests/s", Server::Official, round, 10.0);
        }
        results.gap("requests/s", Server::Python, "over 20 s");
        let mut table = Table::new(&results, Some(Server::Official), "Group", &["requests/s"]);
        let column = Column { measure: "requests/s".into(), scale: 1.0 };
        table.group("one", &[column]);
        let text = table.finish();
        assert!(text.contains("| one | Flotilla, durable | 25.0 | 2.50 (2.00 to 3.00) |"), "{text}");
        assert!(text.contains("| one | a2a-server-lf | 10.0 | 1 |"), "{text}");
        assert!(text.contains("| one | a2a-sdk | over 20 s | - |"), "{text}");
    }
}
