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
    baseline: Server,
    text: String,
}

impl<'a> Table<'a> {
    pub fn new(results: &'a Results, baseline: Server, group: &str, headings: &[&str]) -> Table<'a> {
        let mut text = format!("| {group} | Server |");
        let mut line = "|---|---|".to_owned();
        for heading in headings {
            text += &format!(" {heading} | ratio |");
            line += "---:|---:|";
        }
        Table { results, baseline, text: format!("{text}\n{line}\n") }
    }

    /// A row for each server that was asked for the first column's measure.
    pub fn group(&mut self, name: &str, columns: &[Column]) {
        let Some(first) = columns.first() else { return };
        for server in self.results.servers(&first.measure) {
            self.text += &format!("| {name} | {} |", server.label());
            for column in columns {
                let [value, ratio] = self.cells(column, server);
                self.text += &format!(" {value} | {ratio} |");
            }
            self.text.push('\n');
        }
    }

    fn cells(&self, column: &Column, server: Server) -> [String; 2] {
        let Some(spread) = self.results.spread(&column.measure, server) else {
            let gap = self.results.gap_of(&column.measure, server).unwrap_or("-");
            return [gap.to_owned(), "-".to_owned()];
        };
        let ratio = self.results.ratio(&column.measure, server, self.baseline);
        let ratio = match ratio {
            Some(_) if server == self.baseline => "1".to_owned(),
            Some(ratio) => ratio_text(ratio),
            None => "-".to_owned(),
        };
        [number(spread.median * column.scale), ratio]
    }

    pub fn finish(self) -> String {
        self.text
    }
}

/// `1.62 (1.5 to 1.8)`
pub fn ratio_text(ratio: Spread) -> String {
    format!("{} ({} to {})", number(ratio.median), number(ratio.least), number(ratio.most))
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
    fn a_missing_value_says_why() {
        let mut results = Results::default();
        for (server, value) in [(Server::Hub, 20.0), (Server::Official, 10.0)] {
            results.add("requests/s", server, 0, value);
        }
        results.gap("requests/s", Server::Python, "over 20 s");
        let mut table = Table::new(&results, Server::Official, "Group", &["requests/s"]);
        let column = Column { measure: "requests/s".into(), scale: 1.0 };
        table.group("one", &[column]);
        let text = table.finish();
        assert!(text.contains("| one | Flotilla, durable | 20.0 | 2.00 (2.00 to 2.00) |"), "{text}");
        assert!(text.contains("| one | a2a-server-lf | 10.0 | 1 |"), "{text}");
        assert!(text.contains("| one | a2a-sdk | over 20 s | - |"), "{text}");
    }
}
