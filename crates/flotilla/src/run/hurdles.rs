//! What would keep a hub from starting, as far as its variables and files show it without a start.

use super::{keys, secret};
use crate::config::Config;
use crate::{data, signing};
use anyhow::{Error, Result};

/// One thing a start would be refused for.
pub struct Hurdle {
    pub about: &'static str,
    pub error: Error,
    pub advice: &'static str,
}

/// All of them. It reads what a start reads, and makes nothing.
pub fn hurdles(config: &Config) -> Vec<Hurdle> {
    let dir = config.hub.data_dir.clone().unwrap_or_else(data::default_dir);
    let preset = secret::preset(config);
    // A secret that is preset keeps the file from being read.
    let kept = if matches!(preset, Ok(None)) { secret::kept(&dir).map(drop) } else { Ok(()) };
    let announce = config.announce.as_ref().map_or(Ok(()), |announce| announce.key().map(drop));
    let looked: [(_, Result<()>, _); 5] = [
        ("keys", keys::preset(config).map(drop), "correct FLOTILLA_OWNER_KEY, or unset it"),
        (
            "secret",
            preset.map(drop),
            "correct FLOTILLA_SECRET_KEY or the file of hub.secret_key_file, or take the setting away: then it is \
             secret.key in the data directory",
        ),
        (
            "secret",
            kept,
            "put the file back from a copy; or move it away: flotilla serve makes another, and the secrets of webhooks \
             that it sealed have to be set again",
        ),
        (
            "signing keys",
            signing::kept(&dir).map(drop),
            "put the file back from a copy, or move it away: flotilla serve makes a new key",
        ),
        ("configuration", announce, "correct announce.key, or put there what it names"),
    ];
    let hurdle = |(about, looked, advice): (_, Result<()>, _)| Some(Hurdle { about, error: looked.err()?, advice });
    looked.into_iter().filter_map(hurdle).collect()
}
