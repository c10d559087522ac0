//! Logs and metrics of the process.

use crate::config::{Level, Log, LogFormat};
use anyhow::{Context, Result};
use flotilla_inbound::Render;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

/// Turns the log's level while the hub runs.
pub struct LogLevel(reload::Handle<LevelFilter, Registry>);

impl LogLevel {
    pub fn set(&self, level: Level) {
        // Fails only if the subscriber is gone, and then there is no log to turn.
        let _ = self.0.reload(filter(level));
    }
}

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}

/// Logs go to standard error, so that standard output stays for what was asked for.
pub fn start_log(log: &Log) -> Result<LogLevel> {
    let (level, handle) = reload::Layer::new(filter(log.level));
    let registry = tracing_subscriber::registry().with(level);
    match log.format {
        LogFormat::Text => registry
            .with(
                fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(std::io::stderr().is_terminal())
                    .with_target(false)
                    .log_internal_errors(false),
            )
            .try_init(),
        LogFormat::Json => {
            registry.with(fmt::layer().json().with_writer(std::io::stderr).log_internal_errors(false)).try_init()
        }
    }
    .context("starting the log")?;
    Ok(LogLevel(handle))
}

const SECONDS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];
const COMMITS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Must come before anything that counts.
pub fn start_metrics() -> Result<PrometheusHandle> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_commits".into()), &COMMITS))
        .context("preparing metrics")?
        .install_recorder()
        .context("starting metrics")
        .inspect(|_| describe())
}

/// What `/metrics` says of each series; `docs/operations.md` says the same.
fn describe() {
    for (name, help) in [
        ("flotilla_requests_total", "Answered requests by binding and method."),
        ("flotilla_refusals_total", "Refused requests by binding and reason."),
        ("flotilla_over_limit_total", "How often each limit was gone beyond, by binding, run or connection."),
        ("flotilla_limit_warnings_total", "Tasks that have used four fifths of what they may hold, by limit."),
        ("flotilla_tasks_opened_total", "Exchanges that became a task."),
        ("flotilla_tasks_ended_total", "Tasks that ended, by state."),
        ("flotilla_messages_answered_total", "Exchanges that were a direct Message."),
        ("flotilla_sends_deduplicated_total", "Sends recognised as made before."),
        ("flotilla_changes_committed_total", "Decisions committed to the log."),
        ("flotilla_events_committed_total", "Events committed to the log."),
        ("flotilla_push_attempts_total", "Attempts at webhooks, by result."),
        ("flotilla_approvals_asked_total", "What agents asked their owners leave for."),
        ("flotilla_approvals_settled_total", "What came of that, by state."),
        ("flotilla_agent_checks_total", "Checks of agents elsewhere, by result."),
        ("flotilla_dispatches_total", "Dispatched work, by what came of it: assigned, ended, rejected."),
        ("flotilla_blocked_total", "Answers of workers that they cannot, by reason."),
        ("flotilla_alerts_total", "Alerts about work no worker takes, by reason."),
        ("flotilla_notifications_total", "Alerts told to notifiers, by outcome."),
        ("flotilla_store_flushes_total", "Batches of commits flushed to the store's journal."),
    ] {
        metrics::describe_counter!(name, help);
    }
    for (name, help) in [
        ("flotilla_agents", "Agents by state."),
        ("flotilla_held_bytes", "Bytes held for requests under way and answers that are not taken yet."),
        ("flotilla_connections_open", "Connections that are served."),
        ("flotilla_streams_open", "Streams that are being read."),
        ("flotilla_runs_live", "Runs under way."),
        ("flotilla_workers", "Workers that announced themselves, by health."),
        ("flotilla_fleet_waiting", "Dispatched work that waits for a worker."),
        ("flotilla_push_configs_active", "Webhooks that are still told of their tasks."),
        ("flotilla_approvals_open", "Approvals that wait for an answer."),
        ("flotilla_workers", "Workers of the fleet, by health."),
        ("flotilla_fleet_waiting", "Dispatched work that waits for a worker."),
        ("flotilla_remote_breaker", "Whether an agent elsewhere is called: 0 yes, 1 once to see, 2 not for a while."),
        ("flotilla_tasks_in_memory", "Tasks somebody is working on or looking at."),
    ] {
        metrics::describe_gauge!(name, help);
    }
    for (name, help) in [
        ("flotilla_request_seconds", "Time to answer a request, by binding and method; for a stream, to begin it."),
        ("flotilla_agent_check_seconds", "Time a check of an agent elsewhere took."),
        ("flotilla_store_batch_commits", "Commits flushed together."),
        ("flotilla_fleet_decision_seconds", "Time to choose among workers."),
        ("flotilla_store_flush_seconds", "Time to write and flush a batch of commits."),
        ("flotilla_store_apply_seconds", "Time to put gathered commits into the store's tables."),
    ] {
        metrics::describe_histogram!(name, help);
    }
}

pub fn render(handle: &PrometheusHandle) -> Render {
    let handle = handle.clone();
    Arc::new(move || handle.render())
}

/// Histograms collect samples until somebody folds them; do it also when nobody scrapes.
pub async fn fold_metrics(handle: PrometheusHandle) {
    let mut tick = tokio::time::interval(Duration::from_secs(5));
    loop {
        tick.tick().await;
        handle.run_upkeep();
    }
}
