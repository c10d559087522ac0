//! Measures the subjects that are asked for and writes the report; started by `bench/run`, which builds what it needs.
#![forbid(unsafe_code)]

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use flotilla_bench::options::Options;
use flotilla_bench::server::{Fleet, Server};
use flotilla_bench::subject::Bench;
use flotilla_bench::{process::Machine, report, results::Results};
use tokio::signal::unix::{SignalKind, signal};

/// Percent of the machine that others may take before the figures are in doubt.
const TOO_BUSY: f64 = 5.0;

fn main() -> ExitCode {
    // One thread: the generator shares the machine with the servers under test.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.context("cannot start the runtime").and_then(|runtime| runtime.block_on(run_until_stopped()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// On a signal everything is dropped, and with it every server that was started.
async fn run_until_stopped() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    tokio::select! {
        done = run() => done,
        _ = terminate.recv() => bail!("stopped"),
        _ = interrupt.recv() => bail!("stopped"),
    }
}

async fn run() -> Result<()> {
    let began = Instant::now();
    let options = Options::parse(std::env::args().skip(1))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let fleet = Fleet {
        hub: options.hub.clone(),
        bench: options.bench.clone(),
        ours: program.parent().context("this program has no folder")?.to_owned(),
        rust_peers: options.rust_peers.clone(),
        python: options.python.clone(),
        node: options.node.clone(),
        nginx: options.nginx.clone(),
        scratch: options.scratch.clone(),
        key: key()?,
    };
    let wanted = options.servers.clone().unwrap_or_else(|| Server::ALL.to_vec());
    let servers: Vec<Server> = wanted.into_iter().filter(|server| fleet.has(*server)).collect();
    let mut bench = Bench { fleet, servers, size: options.size.clone(), results: Results::default() };
    let before = Machine::now()?;
    for subject in &options.subjects {
        bench.measure(*subject).await;
    }
    let mut about = options.about.clone();
    let others = Machine::now()?.others_since(&before);
    about.push(format!(
        "Time taken: {} s, {others:.0} % of the machine went to other programs",
        began.elapsed().as_secs()
    ));
    if others > TOO_BUSY {
        bench.results.note(format!("other programs took {others:.0} % of the machine: repeat the run on a quiet one"));
    }
    if let Some(parent) = options.results.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    let raw = serde_json::to_string_pretty(&bench.results.to_json(&about)).context("results")?;
    fs::write(&options.results, raw + "\n").with_context(|| format!("cannot write {}", options.results.display()))?;
    report::write(&options, &about, &bench)?;
    match bench.results.our_faults {
        0 => Ok(()),
        faults => bail!("{faults} of our own servers' figures are missing; the end of the report says why"),
    }
}

/// An owner key for the hubs of this run.
fn key() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0; 32];
    let mut random = fs::File::open("/dev/urandom").context("/dev/urandom")?;
    random.read_exact(&mut bytes).context("/dev/urandom")?;
    Ok(bytes.iter().fold("flk_".to_owned(), |key, byte| format!("{key}{byte:02x}")))
}
