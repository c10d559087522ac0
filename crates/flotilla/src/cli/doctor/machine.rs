//! What is on this machine: settings, configuration, clock, store, keys, port.

use super::Findings;
use super::reach::At;
use crate::cli::session::hub_key;
use crate::cli::settings::Setting;
use crate::cli::{ConfigFile, DataDir};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::data;
use crate::run::{Overrides, hurdles, preset_owner_key};
use flotilla_core::key::{is_key, sha256};
use flotilla_core::ports::{Clock as _, Store as _};
use flotilla_protocol::time::Millis;
use flotilla_store::sqlite::Sqlite;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;

/// A clock before this has never been set: 2025-01-01.
const TOO_EARLY: i64 = 1_735_689_600_000;

/// How alike names are of which one may have been meant for the other.
const ALIKE: f64 = 0.8;

/// A mistyped variable is silently ignored by every program but this one.
pub fn settings(findings: &mut Findings) {
    let known: Vec<String> = Setting::ALL.into_iter().map(Setting::variable).collect();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown: Vec<String> = names.filter(|name| name.starts_with("A2ACLI_") && !known.contains(name)).collect();
    for name in &unknown {
        findings.problem("settings", format!("{name} is set, and is no setting"), instead_of(name));
    }
    if unknown.is_empty() {
        findings.ok("settings", "every A2ACLI_ variable is a setting");
    }
}

/// What to do about a variable that is no setting.
fn instead_of(name: &str) -> String {
    if name == "A2ACLI_STREAM" {
        return "unset it: --stream is only ever written on the command line".into();
    }
    let written = name.trim_start_matches("A2ACLI_").to_ascii_lowercase().replace('_', "-");
    let alike = |setting: &Setting| strsim::jaro(setting.flag(), &written);
    let near = Setting::ALL.into_iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match near.filter(|near| alike(near) > ALIKE) {
        Some(near) => format!("did you mean {}?", near.variable()),
        None => "unset it; flotilla config show lists the settings there are".into(),
    }
}

/// Where the hub of a configuration is to be found from here, if that can be told.
pub fn hub_of(file: &ConfigFile, data: &DataDir) -> Option<String> {
    let listen = std::env::var("FLOTILLA_LISTEN").ok().and_then(|text| text.parse().ok());
    let config = overrides(file, data, listen).apply().ok()?;
    place_of(&config)
}

/// Where a hub with this configuration listens, as this machine calls it; none if that is decided when it starts.
pub fn place_of(config: &Config) -> Option<String> {
    let mut listen = config.hub.listen;
    if listen.ip().is_unspecified() {
        listen.set_ip(if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    let scheme = if config.hub.tls.is_some() { "https" } else { "http" };
    (listen.port() != 0).then(|| format!("{scheme}://{listen}"))
}

fn overrides(file: &ConfigFile, data: &DataDir, listen: Option<SocketAddr>) -> Overrides {
    let public_url = std::env::var("FLOTILLA_PUBLIC_URL").ok();
    let data_dir = data.data_dir.clone();
    let targets = std::env::var("FLOTILLA_ALLOW_TARGET").unwrap_or_default();
    let allow_targets = targets.split(',').filter(|target| !target.is_empty()).map(str::to_owned).collect();
    Overrides { config: file.path(), listen, data_dir, public_url, allow_targets, ..Overrides::default() }
}

/// The configuration as `serve` would have it: the file, and what the environment changes.
pub fn config(findings: &mut Findings, file: &ConfigFile, data: &DataDir) -> Option<Config> {
    let path = file.path();
    let name = path.as_ref().map_or_else(|| "the defaults (no file)".to_owned(), |path| path.display().to_string());
    match overrides(file, data, listen(findings)).apply() {
        Ok(config) => {
            findings.ok("configuration", format!("{name}, agents: {}", config.agent_names().join(", ")));
            for hurdle in hurdles(&config) {
                findings.problem(hurdle.about, format!("{:#}", hurdle.error), hurdle.advice);
            }
            Some(config)
        }
        Err(error) => {
            let what = format!("{error:#}").replace('\n', " ");
            let advice = "mend the file, or the FLOTILLA_ variable; flotilla config check says the same of it";
            findings.problem("configuration", what, advice);
            None
        }
    }
}

/// Where the environment says to listen.
fn listen(findings: &mut Findings) -> Option<SocketAddr> {
    let text = std::env::var("FLOTILLA_LISTEN").ok()?;
    let parsed = text.parse().ok();
    if parsed.is_none() {
        let what = format!("FLOTILLA_LISTEN is '{text}', which is no address to listen on");
        findings.problem("configuration", what, "set it to an address and a port, such as 127.0.0.1:7420, or unset it");
    }
    parsed
}

pub fn clock(findings: &mut Findings) {
    let now = SystemClock.now();
    if now.0 < TOO_EARLY {
        let advice = "set the clock (on Debian: timedatectl set-ntp true); certificates and tokens depend on it";
        return findings.problem("clock", format!("this machine thinks it is {now}"), advice);
    }
    findings.ok("clock", now.to_string());
}

pub async fn store(findings: &mut Findings, flag: &DataDir, config: Option<&Config>) {
    let configured = config.and_then(|config| config.hub.data_dir.clone());
    let dir = flag.data_dir.clone().or(configured).unwrap_or_else(data::default_dir);
    let preset = config.and_then(|config| preset_owner_key(config).ok()).flatten();
    if !dir.exists() {
        let what = format!("{} does not exist yet", dir.display());
        // The nearest that is there has to let itself be written to.
        let here =
            |above: &Path| if above.as_os_str().is_empty() { Path::new(".").to_owned() } else { above.to_owned() };
        let above = dir.ancestors().skip(1).map(here).find(|above| above.exists());
        if above.is_none_or(|above| tempfile::tempfile_in(above).is_err()) {
            let advice = "name another directory: --data-dir, FLOTILLA_DATA_DIR or hub.data_dir";
            return findings.problem("store", format!("{what}, and cannot be made"), advice);
        }
        return findings.note("store", what, "nothing: flotilla serve makes it");
    }
    directory(findings, &dir);
    let file = data::store_file(&dir);
    if !file.exists() {
        return findings.note(
            "store",
            format!("{} has no store yet", dir.display()),
            "nothing: flotilla serve makes one",
        );
    }
    match Sqlite::open_beside(&file) {
        Ok(store) => match store.ping().await {
            Ok(()) => {
                let used = data::lock(&dir).is_err();
                let about = if used { "in use by a hub" } else { "not in use" };
                findings.ok("store", format!("{} answers, {about}", file.display()));
                keys(findings, &store, preset.as_deref(), used).await;
            }
            Err(fault) => broken(findings, &file, &fault.to_string()),
        },
        Err(error) => broken(findings, &file, &error.to_string()),
    }
}

fn broken(findings: &mut Findings, file: &Path, problem: &str) {
    let advice = if problem.contains("locked") {
        "another program holds it: a hub that is starting or very busy, or an SQLite shell; look again in a moment"
    } else {
        "keep a copy of the directory first; then restore a backup with: flotilla restore --force FILE; or choose \
         another --data-dir"
    };
    findings.problem("store", format!("{} does not open: {problem}", file.display()), advice);
}

/// The hub must be able to write there, and nobody else should read it.
fn directory(findings: &mut Findings, dir: &Path) {
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    if let Err(error) = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)) {
        let what = format!("{} cannot be written: {error}", dir.display());
        findings.problem(
            "store",
            what,
            "give the directory to the user who runs the hub, or choose another --data-dir",
        );
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(dir).map(|found| found.permissions().mode() & 0o777).unwrap_or(0o700);
        if mode & 0o077 != 0 {
            let what = format!("{} can be read by others (mode {mode:o})", dir.display());
            findings.problem("store", what, format!("chmod 700 {}", dir.display()));
        }
    }
}

async fn keys(findings: &mut Findings, store: &Sqlite, preset: Option<&str>, is_in_use: bool) {
    let Ok(keys) = store.keys().await else { return };
    let now = SystemClock.now();
    let mut owners = keys.iter().filter(|key| key.is_owners() && key.is_live(now)).peekable();
    let preset = preset.map(|key| sha256(key.as_bytes()));
    if let Some(preset) = preset
        && !owners.any(|owner| owner.hash == preset)
    {
        if keys.iter().any(|known| known.hash == preset) {
            let what = "the preset owner's key (FLOTILLA_OWNER_KEY, or hub.owner_key) has ended, or is somebody else's";
            return findings.problem("keys", what, "preset a new one, or none to go on with the keys there are");
        }
        let what = "the preset owner's key (FLOTILLA_OWNER_KEY, or hub.owner_key) is not the one in use";
        findings.note("keys", what, "nothing, if it is meant to replace the owner's key when the hub starts");
    } else if preset.is_none() && owners.peek().is_none() {
        no_owner(findings, is_in_use);
    } else {
        let others = keys.iter().filter(|key| !key.is_owners() && key.is_live(now)).count();
        findings.ok("keys", format!("an owner's key and {others} others in use"));
    }
    let Some(key) = hub_key() else {
        return findings.note(
            "keys",
            "FLOTILLA_KEY is not set",
            "export the owner's key, or one from: flotilla keys create NAME",
        );
    };
    if !is_key(&key) {
        return findings.problem("keys", "FLOTILLA_KEY is not a key", "a key is flk_ and 64 hex digits: copy it again");
    }
    let hash = sha256(key.as_bytes());
    match keys.iter().find(|known| known.hash == hash) {
        Some(known) if !known.is_live(now) => {
            let how = if known.revoked_at.is_some() { "was revoked" } else { "has expired" };
            let what = format!("FLOTILLA_KEY is the key '{}', which {how}", known.name);
            findings.problem("keys", what, "make another with: flotilla keys create NAME");
        }
        Some(known) => findings.ok("keys", format!("FLOTILLA_KEY is the key '{}'", known.name)),
        None => findings.note(
            "keys",
            "FLOTILLA_KEY is not a key of the store here",
            "nothing, if it is for a hub elsewhere",
        ),
    }
}

/// A start makes the key that is missing, so only a hub that has started already goes without one.
fn no_owner(findings: &mut Findings, is_in_use: bool) {
    let what = "there is no owner's key in use";
    if is_in_use {
        let advice = "start the hub again: it makes one and prints it, once; or preset one with FLOTILLA_OWNER_KEY";
        return findings.problem("keys", what, advice);
    }
    findings.note("keys", what, "nothing: flotilla serve makes one and prints it, once");
}

/// Whether a hub could listen where it is to, or does.
pub fn port(findings: &mut Findings, listen: SocketAddr, at: At) {
    let Err(error) = TcpListener::bind(listen) else { return findings.ok("port", format!("{listen} is free")) };
    match at {
        At::Hub | At::SickHub => findings.ok("port", format!("{listen} is taken, and a hub answers")),
        At::Untrusted => findings.note(
            "port",
            format!("{listen} is taken by a program whose certificate is not accepted here: it may be the hub"),
            "to have it looked at, name it with --hub URL",
        ),
        At::Other | At::Nobody => {
            let what = match error.kind() {
                ErrorKind::AddrInUse => format!("{listen} is taken by another program"),
                _ => format!("{listen} cannot be used: {error}"),
            };
            let advice =
                "stop the program that uses it, or choose another address: hub.listen, FLOTILLA_LISTEN or --listen";
            findings.problem("port", what, advice);
        }
    }
}

/// How far two clocks are apart, from an HTTP `Date`.
pub fn apart(date: &str) -> Option<i64> {
    // Sun, 06 Nov 1994 08:49:37 GMT
    let words: Vec<&str> = date.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| name == month)? + 1;
    let there = Millis::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()?;
    Some((SystemClock.now().0 - there.0).abs() / 1000)
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn dates_are_read_as_http_writes_them() {
        assert!(apart("Sun, 06 Nov 1994 08:49:37 GMT").is_some_and(|seconds| seconds > 900_000_000));
        assert_eq!(apart("yesterday"), None);
    }
}
