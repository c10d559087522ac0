//! Plots as SVG: bars with their spread, and lines. Readable on light and on dark paper.

use std::fmt::Write;

use crate::load::stats::Spread;
use crate::server::Server;
use crate::table::number;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 170.0;
const RIGHT: f64 = 70.0;
const ROW: f64 = 22.0;
const STYLE: &str = "<style>\
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}.faint{fill:#59636e}\
line{stroke:#d1d9e0}.whisker{stroke:#1f2328;stroke-width:1.5}\
.ours{fill:#0969da;stroke:#0969da}.ours-too{fill:#54aeff;stroke:#54aeff}.theirs{fill:#8c959f;stroke:#8c959f}\
.first{fill:#bc4c00;stroke:#bc4c00}.second{fill:#8250df;stroke:#8250df}.third{fill:#1a7f37;stroke:#1a7f37}\
.fourth{fill:#bf8700;stroke:#bf8700}polyline{fill:none!important;stroke-width:2}rect{stroke:none!important}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.faint{fill:#9198a1}line{stroke:#3d444d}\
.whisker{stroke:#f0f6fc}}</style>";

/// The bars below one heading.
pub struct Group {
    pub heading: String,
    pub bars: Vec<(Server, Spread)>,
}

/// One server's line.
pub struct Line {
    pub server: Server,
    pub points: Vec<(f64, f64)>,
}

fn class(server: Server) -> &'static str {
    match server {
        Server::Hub => "ours",
        Server::HubMemory => "ours-too",
        Server::Official | Server::OfficialMimalloc => "first",
        Server::Protocol => "second",
        Server::Javascript => "third",
        Server::Python => "fourth",
        Server::Ceiling => "theirs",
    }
}

/// Places values on a logarithmic axis.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis of whole powers of ten around these values.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        let (least, most) = if least.is_finite() { (least, most.max(least + 1.0)) } else { (0.0, 1.0) };
        Axis { least, most, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).log10() - self.least) / (self.most - self.least);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        (self.least as i32..=self.most as i32).map(|power| {
            let value = 10_f64.powi(power);
            let text = if power >= 0 { number(value).replace(".00", "").replace(".0", "") } else { value.to_string() };
            (self.place(value), text)
        })
    }
}

/// Horizontal bars on a logarithmic axis, with a line from the least to the most.
pub fn bars(title: &str, groups: &[Group]) -> String {
    let spreads = groups.iter().flat_map(|group| group.bars.iter().map(|(_, spread)| spread));
    let axis = Axis::around(spreads.flat_map(|spread| [spread.least, spread.most]), LABELS, WIDTH - RIGHT);
    let rows: usize = groups.iter().map(|group| group.bars.len() + 1).sum();
    let bottom = 30.0 + rows as f64 * ROW;
    let mut out = open(title, bottom + 24.0);
    for (x, text) in axis.ticks() {
        let _ = write!(out, r#"<line x1="{x:.1}" y1="30" x2="{x:.1}" y2="{bottom:.1}"/>"#);
        let _ = write!(
            out,
            r#"<text class="faint" x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            bottom + 16.0
        );
    }
    let mut y = 30.0;
    for group in groups {
        let _ = write!(out, r#"<text class="faint" x="8" y="{:.1}">{}</text>"#, y + 16.0, escaped(&group.heading));
        y += ROW;
        for (server, spread) in &group.bars {
            bar(&mut out, &axis, y, *server, *spread);
            y += ROW;
        }
    }
    out + "</svg>\n"
}

fn bar(out: &mut String, axis: &Axis, y: f64, server: Server, spread: Spread) {
    let (end, least, most) = (axis.place(spread.median), axis.place(spread.least), axis.place(spread.most));
    let (width, middle) = ((end - LABELS).max(1.0), y + ROW / 2.0);
    let label = escaped(server.label());
    let _ = write!(out, r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"#, LABELS - 8.0, y + 15.0);
    let _ = write!(
        out,
        r#"<rect class="{}" x="{LABELS}" y="{:.1}" width="{width:.1}" height="{}"/>"#,
        class(server),
        y + 4.0,
        ROW - 8.0
    );
    let _ = write!(out, r#"<line class="whisker" x1="{least:.1}" y1="{middle:.1}" x2="{most:.1}" y2="{middle:.1}"/>"#);
    let text = number(spread.median);
    let _ = write!(out, r#"<text x="{:.1}" y="{:.1}">{text}</text>"#, most.max(end) + 6.0, y + 15.0);
}

/// Lines on two logarithmic axes.
pub fn lines(title: &str, across: &str, up: &str, lines: &[Line]) -> String {
    let (top, bottom) = (56.0, 340.0);
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let x_axis = Axis::around(points().map(|point| point.0), 70.0, WIDTH - 190.0);
    let y_axis = Axis::around(points().map(|point| point.1), bottom, top);
    let mut out = open(title, bottom + 48.0);
    let _ = write!(out, r#"<text class="faint" x="8" y="44">{}</text>"#, escaped(up));
    let _ = write!(out, r#"<text class="faint" x="70" y="{:.1}">{}</text>"#, bottom + 40.0, escaped(across));
    for (y, text) in y_axis.ticks() {
        let _ = write!(out, r#"<line x1="70" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/>"#, WIDTH - 190.0);
        let _ = write!(out, r#"<text class="faint" x="62" y="{:.1}" text-anchor="end">{text}</text>"#, y + 4.0);
    }
    for (x, text) in x_axis.ticks() {
        let _ = write!(
            out,
            r#"<text class="faint" x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            bottom + 20.0
        );
    }
    // Names stand at the lines' ends, pushed apart where they would cover each other.
    let mut ends: Vec<(f64, &Line)> =
        lines.iter().filter_map(|line| line.points.last().map(|point| (y_axis.place(point.1), line))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = f64::NEG_INFINITY;
    for (y, line) in ends {
        let placed: Vec<(f64, f64)> =
            line.points.iter().map(|point| (x_axis.place(point.0), y_axis.place(point.1))).collect();
        let text: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let class = class(line.server);
        let _ = write!(out, r#"<polyline class="{class}" points="{}"/>"#, text.join(" "));
        for (x, y) in &placed {
            let _ = write!(out, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3"/>"#);
        }
        above = y.max(above + 16.0);
        let x = placed.last().map_or(0.0, |(x, _)| *x) + 10.0;
        let _ = write!(out, r#"<text x="{x:.1}" y="{:.1}">{}</text>"#, above + 4.0, escaped(line.server.label()));
    }
    out + "</svg>\n"
}

fn open(title: &str, height: f64) -> String {
    let title = escaped(title);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{title}">{STYLE}<text class="title" x="8" y="20">{title}</text>"#
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_for_each_server_and_no_markup_from_names() {
        let spread = Spread { median: 2.0, least: 1.0, most: 30.0 };
        let group = Group { heading: "a<b".into(), bars: vec![(Server::Hub, spread), (Server::Official, spread)] };
        let svg = bars("T & t", &[group]);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("a&lt;b") && svg.contains("T &amp; t"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn powers_of_ten_are_evenly_spaced() {
        let axis = Axis::around([2.0, 70.0].into_iter(), 0.0, 200.0);
        assert_eq!([1.0, 10.0, 100.0].map(|value| axis.place(value)), [0.0, 100.0, 200.0]);
        assert_eq!(axis.ticks().map(|(_, text)| text).collect::<Vec<_>>(), ["1", "10", "100"]);
        assert_eq!(Axis::around([].into_iter(), 0.0, 1.0).ticks().count(), 2);
    }
}
