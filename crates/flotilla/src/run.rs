//! Serving: from the first line on the screen to the last stream told to come back.

mod accept;
mod activity;
mod announce;
mod banner;
mod becoming;
mod connection;
mod http1;
mod http2;
mod hurdles;
mod keys;
mod metrics_port;
mod notify;
pub use hurdles::hurdles;
pub use keys::preset as preset_owner_key;
mod pour;
mod reload;
mod rush;
mod secret;
mod secure;
mod token;

use crate::assemble::{Here, Place, Recruiter};
use crate::clock::SystemClock;
use crate::config::{Config, SyncConfig, TlsConfig};
use crate::signing::{self, KeyFile};
use crate::telemetry::{self, LogLevel};
use crate::{assemble, data};
use anyhow::{Context, Result};
use arc_swap::{ArcSwap, ArcSwapOption};
use flotilla_core::access::{Access, RECHECK};
use flotilla_core::hub::Hub;
use flotilla_core::loops;
use flotilla_core::ports::{Clock, Scout, Signer, Store};
use flotilla_core::registry::{Proven, Registry};
use flotilla_core::roster::Roster;
use flotilla_inbound::App;
use flotilla_outbound::signature::sign::Signing;
use flotilla_store::memory::Memory;
use flotilla_store::sqlite::{Sqlite, Sync};
use metrics_exporter_prometheus::PrometheusHandle;
use notify::Notifiers;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;

/// What the command line adds to the configuration.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub listen: Option<SocketAddr>,
    pub data_dir: Option<PathBuf>,
    pub public_url: Option<String>,
    pub allow_anonymous: bool,
    pub allow_anonymous_remote: bool,
    pub allow_targets: Vec<String>,
    pub memory: bool,
}

impl Overrides {
    /// File, then environment and flags.
    pub fn apply(&self) -> Result<Config> {
        let mut config = Config::load(self.config.as_deref())?;
        let hub = &mut config.hub;
        if let Some(listen) = self.listen {
            hub.listen = listen;
        }
        if let Some(dir) = &self.data_dir {
            hub.data_dir = Some(dir.clone());
        }
        if let Some(url) = &self.public_url {
            hub.public_url = Some(url.clone());
        }
        let borrowed = config.borrow_variables(self.listen.is_some(), |name| std::env::var(name).ok())?;
        let hub = &mut config.hub;
        hub.allow_anonymous |= self.allow_anonymous;
        hub.allow_anonymous_remote |= self.allow_anonymous_remote;
        config.targets.allow.extend(self.allow_targets.iter().cloned());
        config.check_whole()?;
        config.borrowed = borrowed;
        Ok(config)
    }
}

/// All that a running hub is made of.
struct Running {
    overrides: Overrides,
    config: ArcSwap<Config>,
    /// Makes agents that are added.
    recruiter: Arc<Recruiter>,
    app: Arc<App>,
    here: Arc<Here>,
    /// Where agents on this machine keep what is theirs.
    agents: PathBuf,
    address: SocketAddr,
    log_level: LogLevel,
    /// Whom alerts are told.
    notifiers: Notifiers,
    /// How TLS is spoken, if it is.
    tls: ArcSwapOption<TlsAcceptor>,
}

pub fn serve(overrides: Overrides) -> Result<()> {
    let config = overrides.apply()?;
    let log_level = telemetry::start_log(&config.log)?;
    let metrics = telemetry::start_metrics()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Readers of the store; more of them would only fight over two cores and memory.
        .max_blocking_threads(16)
        .build()
        .context("starting the runtime")?;
    runtime.block_on(serve_until_stopped(overrides, config, log_level, metrics))
}

async fn serve_until_stopped(
    overrides: Overrides,
    config: Config,
    log_level: LogLevel,
    metrics: PrometheusHandle,
) -> Result<()> {
    let tls = config.hub.tls.as_ref().map(TlsConfig::acceptor).transpose()?.map(Arc::new);
    let dir = config.hub.data_dir.clone().unwrap_or_else(data::default_dir);
    let _lock = if overrides.memory { None } else { Some(prepare(&dir)?) };
    let store = open_store(&overrides, &config, &dir)?;
    let token = token::plan(&store, &config).await?;
    let listener = TcpListener::bind(config.hub.listen).await.with_context(|| {
        format!("listening on {} (is another hub running? --listen chooses another address)", config.hub.listen)
    })?;
    let address = listener.local_addr().context("asking for the address")?;
    let metrics_listener = metrics_port::bind(config.metrics.listen).await?;

    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let roster = Roster::new(config.sockets.welcome());
    let here = Arc::new(Here::default());
    let state = (!overrides.memory).then_some(dir.as_path());
    let folder = data::Folder::of_agents(state)?;
    let place =
        Place { store: &store, roster: &roster, state: folder.path(), here: &here, before: &Registry::default() };
    let recruiter = Arc::new(Recruiter::new(config.clone(), Arc::new(Proven::load(&store).await?)));
    let registry = assemble::registry(&config, place, &recruiter).await?;
    here.install();
    let master = secret::ensure(&config, state)?;
    let push = assemble::push(&config, &master)?;
    let courier = Arc::clone(&push.courier);
    let ring = signing::ensure(state, clock.now())?;
    let signing = Arc::new(Signing::new(&master, &ring, Arc::clone(&clock)).map_err(anyhow::Error::msg)?);
    let key_file = state.map(KeyFile::new);
    let hub = Hub::new(Arc::clone(&store), Arc::clone(&clock), registry, config.limits.limits(), push, roster);
    set_up(&hub, &config, &recruiter).await?;
    // A key is shown only once: it is made when nothing can keep it from being shown any more.
    let new_key = keys::ensure_owner(&store, &config).await?;
    token.carry_out(&store).await?;
    let access = Access::new(store, clock, config.hub.allow_anonymous);
    access.refresh().await?;
    let signer = Arc::clone(&signing) as Arc<dyn Signer>;
    let app = App::new(hub, access, signer, assemble::settings(&config, address), telemetry::render(&metrics));
    tokio::spawn(telemetry::fold_metrics(metrics));

    let metrics_at = metrics_listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let shown = banner::show(&config, &app, banner::Places { data: state, metrics: metrics_at }, new_key.as_deref());
    if let (Err(error), Some(_)) = (shown, &new_key) {
        return Err(keys::not_shown(app.hub.store(), error).await);
    }
    let notifiers = Arc::new(ArcSwap::from_pointee(config.fleet.notify.clone()));
    let (config, tls) = (ArcSwap::from_pointee(config), ArcSwapOption::from(tls));
    let agents = folder.path().to_owned();
    let running =
        Arc::new(Running { overrides, config, recruiter, app, here, agents, address, log_level, notifiers, tls });
    tokio::spawn(notify::tell(Arc::clone(&running.app.hub), courier, Arc::clone(&running.notifiers)));
    begin(&running);
    if let Some(listener) = metrics_listener {
        tokio::spawn(metrics_port::serve(listener, Arc::clone(&running.app)));
    }
    let announcing = tokio::spawn(announce::keep(Arc::clone(&running)));
    tokio::spawn(watch_keys(Arc::clone(&running), signing, key_file));
    tokio::spawn(reload::on_hangup(Arc::clone(&running)));
    accept::until(listener, &running, stopped()?).await;
    announcing.abort();
    announce::withdraw(&running).await;
    tracing::info!("stopped");
    Ok(())
}

/// Gives a hub what the configuration says, and takes up what its last run left.
async fn set_up(hub: &Arc<Hub>, config: &Config, recruiter: &Arc<Recruiter>) -> Result<()> {
    hub.replace_keeping(config.registry.keeping());
    hub.send_out(Arc::clone(recruiter) as Arc<dyn Scout>);
    hub.resume_leases().await?;
    hub.replace_approval_policy(config.approvals.policy());
    hub.fleet().replace_settings(config.fleet.settings(), &hub.registry());
    hub.found_fleet().await?;
    hub.replace_budgets(config.budgets.budgets());
    let recovered = hub.recover().await?;
    if recovered != flotilla_core::hub::Recovered::default() {
        tracing::info!(
            retried = recovered.retried,
            taken_up = recovered.taken_up,
            failed = recovered.failed,
            "recovered runs the last stop left open"
        );
    }
    Ok(())
}

/// What a hub does by itself.
fn begin(running: &Arc<Running>) {
    // Reads the index of sends now rather than while the first caller waits. No send has this key.
    tokio::spawn(running.app.hub.store().sent([0; 32]));
    tokio::spawn(loops::push::deliver(Arc::clone(&running.app.hub)));
    tokio::spawn(loops::deadline::end_overdue(Arc::clone(&running.app.hub)));
    tokio::spawn(loops::vigil::look_after(Arc::clone(&running.app.hub)));
    tokio::spawn(loops::lease::end_overdue(Arc::clone(&running.app.hub)));
    tokio::spawn(loops::approval::expire(Arc::clone(&running.app.hub)));
    tokio::spawn(assemble::look_after(Arc::clone(&running.app.hub), Arc::clone(&running.here)));
    tokio::spawn(loops::fleet::watch(Arc::clone(&running.app.hub)));
    tokio::spawn(sweep(Arc::clone(running)));
}

fn prepare(dir: &std::path::Path) -> Result<data::Lock> {
    data::create(dir)?;
    data::lock(dir)
}

fn open_store(overrides: &Overrides, config: &Config, dir: &std::path::Path) -> Result<Arc<dyn Store>> {
    let sync = match config.store.sync {
        SyncConfig::Full => Sync::Full,
        SyncConfig::Normal => Sync::Normal,
    };
    if overrides.memory {
        return Ok(Arc::new(Memory::new()?));
    }
    Ok(Arc::new(Sqlite::open(&data::store_file(dir), sync)?))
}

/// Resolves when the process is asked to stop.
fn stopped() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Retention and folding, again and again.
async fn sweep(running: Arc<Running>) {
    loop {
        let config = running.config.load_full();
        match loops::sweep(&running.app.hub, config.keep()).await {
            Ok(swept) if swept.tasks > 0 || swept.logs > 0 => {
                tracing::info!(tasks = swept.tasks, logs = swept.logs, sends = swept.sends, "swept");
            }
            Ok(_) => {}
            Err(fault) => tracing::error!(%fault, "sweeping"),
        }
        tokio::time::sleep(config.retention.interval.0).await;
    }
}

/// Notices what another process does to the keys.
async fn watch_keys(running: Arc<Running>, signing: Arc<Signing>, mut key_file: Option<KeyFile>) {
    let mut tick = tokio::time::interval(RECHECK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        tick.tick().await;
        let refreshed = running.app.access.refresh().await;
        match &refreshed {
            Err(fault) if !failing => tracing::error!(%fault, "the keys cannot be read; those known stay in use"),
            Ok(()) if failing => tracing::info!("the keys can be read again"),
            _ => {}
        }
        failing = refreshed.is_err();
        match key_file.as_mut().map(|file| file.refresh(&signing)) {
            Some(Ok(true)) => tracing::info!("cards are signed with new keys"),
            Some(Err(error)) => tracing::error!("the keys of cards cannot be read; those known stay in use: {error:#}"),
            _ => {}
        }
    }
}
