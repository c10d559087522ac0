//! The hub's secret: 256 random bits that seal what callers entrust to it, made at the first start.

use crate::config::Config;
use anyhow::{Context, Result, bail};
use flotilla_outbound::webhook::keys::Master;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

const PRESET: &str = "FLOTILLA_SECRET_KEY";
const FILE: &str = "secret.key";

/// From the environment, the file the configuration names, or the data directory, where it is made if need be.
pub fn ensure(config: &Config, dir: Option<&Path>) -> Result<Master> {
    match (preset(config)?, dir) {
        (Some(master), _) => Ok(master),
        (None, None) => fresh(),
        (None, Some(dir)) => kept(dir)?.map_or_else(|| make(&dir.join(FILE)), Ok),
    }
}

/// The secret that the data directory holds.
pub fn kept(dir: &Path) -> Result<Option<Master>> {
    let file = dir.join(FILE);
    match std::fs::read_to_string(&file) {
        Ok(text) => parse(&text).map(Some).with_context(|| file.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", file.display())),
    }
}

/// The secret that the environment holds, or the file the configuration names.
pub fn preset(config: &Config) -> Result<Option<Master>> {
    if let Some(text) = std::env::var(PRESET).ok().filter(|text| !text.is_empty()) {
        return parse(&text).map(Some).with_context(|| PRESET.to_owned());
    }
    let Some(file) = &config.hub.secret_key_file else { return Ok(None) };
    let text = std::fs::read_to_string(file).with_context(|| format!("hub.secret_key_file: {}", file.display()))?;
    parse(&text).map(Some).with_context(|| format!("hub.secret_key_file: {}", file.display()))
}

fn parse(text: &str) -> Result<Master> {
    let digits = text.trim();
    let mut master = [0u8; 32];
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        bail!("must be 64 hex digits: openssl rand -hex 32");
    }
    for (index, byte) in master.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).context("hex digits")?;
    }
    Ok(master)
}

fn fresh() -> Result<Master> {
    let mut master = [0u8; 32];
    getrandom::fill(&mut master).map_err(|error| anyhow::anyhow!("random numbers: {error}"))?;
    Ok(master)
}

/// On the disk before anything is sealed with it, and readable by its user only.
fn make(file: &Path) -> Result<Master> {
    let master = fresh()?;
    let digits: String = master.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let written = options.open(file).and_then(|mut file| {
        file.write_all(format!("{digits}\n").as_bytes())?;
        file.sync_all()
    });
    written.with_context(|| format!("writing {}", file.display()))?;
    Ok(master)
}

#[cfg(test)]
mod tests {
    use super::{make, parse};

    #[test]
    fn what_is_made_is_read_again_and_a_slip_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret.key");
        let master = make(&file).unwrap();
        assert_eq!(parse(&std::fs::read_to_string(&file).unwrap()).unwrap(), master);
        assert!(make(&file).is_err(), "one that is there is never overwritten");
        for wrong in ["", "abc", &"g".repeat(64), &"a".repeat(63)] {
            assert!(parse(wrong).unwrap_err().to_string().contains("64 hex digits"));
        }
    }
}
