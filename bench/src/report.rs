//! The report: benchmarks.md with a table for each subject, and its plots.

mod reading;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::load::call::Binding;
use crate::options::Options;
use crate::plot::{self, Group, Line};
use crate::results::Results;
use crate::server::Server;
use crate::subject::{Bench, Size, Subject, hop, idle, reads, recovery, send, start, streams};
use crate::table::{Column, Table, counted};

/// How figures are taken and what each server is given.
const METHOD: &str = include_str!("report/method.md");

/// Writes the report and prints its tables.
pub fn write(options: &Options, about: &[String], bench: &Bench) -> Result<()> {
    let results = &bench.results;
    let report = Report { results, size: &options.size, baseline: bench.baseline() };
    let plots = options.out.join("benchmarks");
    fs::create_dir_all(&plots).with_context(|| format!("cannot make {}", plots.display()))?;
    let mut text = report.opening(about, options.quick);
    for subject in &options.subjects {
        text += &report.subject(*subject, &plots)?;
    }
    text += METHOD;
    if !results.notes.is_empty() {
        text += "\n## What spoils a figure, or explains a missing one\n\n";
        for note in &results.notes {
            text += &format!("- {}\n", note.replace('\n', " ").replace('|', "\\|"));
        }
    }
    let file = options.out.join("benchmarks.md");
    fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{text}");
    eprintln!("written to {}", file.display());
    Ok(())
}

struct Report<'a> {
    results: &'a Results,
    size: &'a Size,
    baseline: Server,
}

impl Report<'_> {
    fn opening(&self, about: &[String], quick: bool) -> String {
        let mut text =
            "# Benchmarks\n\nWritten by `bench/run`; what is edited here is lost at the next run.\n\n".to_owned();
        if quick {
            text += "**This was a quick run: it shows that the benchmark works, and its figures mean nothing.**\n\n";
        }
        for line in about {
            text += &format!("- {line}\n");
        }
        if !quick {
            text += &reading::in_short(self.results);
        }
        text
    }

    fn subject(&self, subject: Subject, plots: &Path) -> Result<String> {
        let (title, svgs, tables) = match subject {
            Subject::Send => ("SendMessage", self.send_plots(), self.send_tables()),
            Subject::Hop => ("One hop to a remote agent", Vec::new(), hop::table(self.results, self.size.rounds)),
            Subject::Streams => ("Streams", vec![("streams.svg", self.streams_plot())], self.streams_table()),
            Subject::Reads => ("GetTask and ListTasks", Vec::new(), self.reads_table()),
            Subject::Start => ("Cold start and idle memory", Vec::new(), self.start_table()),
            Subject::Idle => ("Memory per idle stream", Vec::new(), self.idle_table()),
            Subject::Recovery => ("Start after SIGKILL", Vec::new(), self.recovery_table()),
        };
        let mut text = format!("\n## {title}\n\n");
        for (name, svg) in svgs {
            let file = plots.join(name);
            fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
            text += &format!("![{title}](benchmarks/{name})\n\n");
        }
        Ok(text + &tables)
    }

    fn table(&self, group: &str, headings: &[&str]) -> Table<'_> {
        Table::new(self.results, Some(self.baseline), group, headings)
    }

    fn send_tables(&self) -> String {
        let mut text = String::new();
        for binding in Binding::ALL {
            let column = |connections, what: &str| column(send::measure(binding, connections, what));
            let mut table = self.table("Connections", &["requests/s", "p50 ms", "p99 ms", "CPU us/request"]);
            for connections in send::CONNECTIONS {
                let [p50, p99] = send::SAME;
                table.group(
                    &connections.to_string(),
                    &[send::RATE, p50, p99, send::CPU].map(|what| column(connections, what)),
                );
            }
            text += &format!("### {}\n\n{}\n", binding.name(), table.finish());
            // Under different loads a ratio would say nothing.
            let mut table = Table::new(self.results, None, "Load", &["p50 ms", "p99 ms"]);
            for load in send::LOADS {
                let columns = send::own(load).map(|what| column(send::LOADED_CONNECTIONS, &what));
                table.group(&format!("{load} %"), &columns);
            }
            text += &format!(
                "Latency with {} connections at a share of what each server can do itself:\n\n{}\n",
                send::LOADED_CONNECTIONS,
                table.finish()
            );
        }
        text
    }

    fn send_plots(&self) -> Vec<(&'static str, String)> {
        let [_, p99] = send::SAME;
        let connections = counted(send::LOADED_CONNECTIONS, "connection");
        vec![
            (
                "send.svg",
                self.send_plot(&format!("Requests/s with {connections} (more is better, logarithmic)"), send::RATE),
            ),
            (
                "latency.svg",
                self.send_plot(
                    &format!("p99 in ms at the same rate, {connections} (less is better, logarithmic)"),
                    p99,
                ),
            ),
        ]
    }

    fn send_plot(&self, title: &str, what: &str) -> String {
        let group = |binding: Binding| {
            let measure = send::measure(binding, send::LOADED_CONNECTIONS, what);
            let bar = |server| Some((server, self.results.spread(&measure, server)?));
            Group { heading: binding.name().to_owned(), bars: Server::ALL.into_iter().filter_map(bar).collect() }
        };
        plot::bars(title, &Binding::ALL.map(group))
    }

    fn streams_table(&self) -> String {
        let mut table = self.table("Stream", &["total ms", "us/chunk"]);
        for readers in &self.size.readers {
            for chunks in &self.size.chunks {
                let measure = streams::measure(*readers, *chunks);
                let each = Column { measure: measure.clone(), scale: 1000.0 / *chunks as f64 };
                let name = format!("{}, {}", counted(*readers, "reader"), counted(*chunks, "chunk"));
                table.group(&name, &[column(measure), each]);
            }
        }
        table.finish()
    }

    fn streams_plot(&self) -> String {
        let readers = self.size.readers.first().copied().unwrap_or(1);
        let line = |server: Server| {
            let point = |chunks: &usize| {
                let spread = self.results.spread(&streams::measure(readers, *chunks), server)?;
                Some((*chunks as f64, spread.median * 1000.0 / *chunks as f64))
            };
            Line { server, points: self.size.chunks.iter().filter_map(point).collect() }
        };
        let lines: Vec<Line> = Server::ALL.into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
        let title = format!("Streams, time per chunk with {} (less is better)", counted(readers, "reader"));
        plot::lines(&title, "chunks in the stream", "us per chunk", &lines)
    }

    fn reads_table(&self) -> String {
        let mut table = self.table("Operation, store", &["requests/s"]);
        for tasks in [self.size.tasks, self.size.many_tasks] {
            let store = counted(tasks as usize, "task");
            table.group(&format!("GetTask, {store}"), &[column(reads::get(tasks))]);
            table.group(&format!("ListTasks, page of {}, {store}", reads::PAGE), &[column(reads::list(tasks))]);
        }
        table.finish()
    }

    fn start_table(&self) -> String {
        let mut table = self.table("Store", &["cold start ms", "idle memory MiB"]);
        table.group("empty", &[column(start::COLD.into()), column(start::MEMORY.into())]);
        table.finish()
    }

    fn idle_table(&self) -> String {
        let mut table = self.table("Open", &["KiB for each"]);
        table.group(&counted(self.size.idle_streams, "stream"), &[column(idle::MEASURE.into())]);
        table.finish()
    }

    fn recovery_table(&self) -> String {
        let mut table = self.table("Store", &["first answer ms"]);
        table.group(&counted(self.size.recovered_tasks as usize, "task"), &[column(recovery::MEASURE.into())]);
        table.finish() + "\nThe other servers keep their tasks in memory; nothing of them is left to recover.\n"
    }
}

fn column(measure: String) -> Column {
    Column { measure, scale: 1.0 }
}
