//! SIGHUP: reads the configuration again and takes over what can change while the hub runs.

use super::Running;
use crate::assemble::{self, Place, Recruiter};
use crate::config::{Config, TlsConfig};
use anyhow::Result;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

pub async fn on_hangup(running: Arc<Running>) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        tracing::error!("SIGHUP cannot be listened for; the configuration is only read at the start");
        return;
    };
    while hangup.recv().await.is_some() {
        match reload(&running).await {
            Ok(()) => tracing::info!("configuration read again"),
            Err(error) => tracing::error!("configuration not changed: {error:#}"),
        }
    }
}

/// All or nothing: a file with a mistake changes nothing.
async fn reload(running: &Running) -> Result<()> {
    let config = running.overrides.apply()?;
    let tls = config.hub.tls.as_ref().map(TlsConfig::acceptor).transpose()?;
    let hub = &running.app.hub;
    let (store, roster) = (hub.store(), hub.roster());
    let kept = hub.keep_registry().await;
    let recruiter = Recruiter::new(config.clone(), Arc::clone(&running.recruiter.proven));
    let before = running.config.load_full();
    let agents = hub.registry();
    let place = Place { store, roster, state: &running.agents, here: &running.here, before: &agents };
    let registry = assemble::registry(&config, place, &recruiter).await?;
    for (what, changed) in only_at_start(&before, &config) {
        if changed {
            tracing::warn!("{what} changed, which takes effect only at the next start");
        }
    }
    running.recruiter.replace_config(Arc::new(config.clone()));
    hub.replace_registry(registry);
    running.here.install();
    hub.depart_again();
    drop(kept);
    hub.fleet().replace_settings(config.fleet.settings(), &hub.registry());
    hub.replace_keeping(config.registry.keeping());
    roster.replace_welcome(config.sockets.welcome());
    hub.replace_approval_policy(config.approvals.policy());
    hub.replace_limits(config.limits.limits());
    hub.replace_budgets(config.budgets.budgets());
    running.notifiers.store(Arc::new(config.fleet.notify.clone()));
    running.app.replace_settings(flotilla_inbound::Settings {
        // Who may come in is decided at the start, and cards must say what is.
        anonymous: before.hub.allow_anonymous,
        ..assemble::settings(&config, running.address)
    });
    running.tls.store(tls.map(Arc::new));
    running.log_level.set(config.log.level);
    running.config.store(Arc::new(config));
    Ok(())
}

fn only_at_start(before: &Config, after: &Config) -> [(&'static str, bool); 11] {
    let (old, new) = (&before.hub, &after.hub);
    let key = |config: &Config| config.hub.owner_key.as_ref().map(|secret| secret.0.clone());
    let token = |config: &Config| config.hub.auth_token.as_ref().map(|secret| secret.0.clone());
    [
        ("hub.listen", old.listen != new.listen),
        ("metrics.listen", before.metrics.listen != after.metrics.listen),
        ("hub.data_dir", old.data_dir != new.data_dir),
        ("hub.allow_anonymous", old.allow_anonymous != new.allow_anonymous),
        ("hub.owner_key", key(before) != key(after)),
        ("hub.auth_token", token(before) != token(after)),
        ("store.sync", before.store.sync != after.store.sync),
        ("hub.secret_key_file", old.secret_key_file != new.secret_key_file),
        ("push", before.push != after.push),
        ("targets", before.targets != after.targets),
        ("log.format", before.log.format != after.log.format),
    ]
}
