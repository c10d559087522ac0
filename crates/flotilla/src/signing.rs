//! The file that says which keys cards are signed with. The keys themselves come of it and the hub's secret.

use anyhow::{Context, Result};
use flotilla_outbound::signature::ring::Ring;
use flotilla_outbound::signature::sign::Signing;
use flotilla_protocol::time::Millis;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub const FILE: &str = "signing-keys.json";

/// What there is, or a first key; in memory only if there is no directory.
pub fn ensure(dir: Option<&Path>, now: Millis) -> Result<Ring> {
    let ring = dir.map(kept).transpose()?.flatten().unwrap_or_default();
    match dir {
        _ if ring.keys.iter().any(|key| key.until.is_none()) => Ok(ring),
        Some(dir) => rotate(dir, now, Duration::ZERO),
        None => rotated(ring, now, Duration::ZERO),
    }
}

/// What the directory says of the keys.
pub fn kept(dir: &Path) -> Result<Option<Ring>> {
    read(&dir.join(FILE))
}

/// Puts a new key in use; the old ones sign along for the overlap.
pub fn rotate(dir: &Path, now: Millis, overlap: Duration) -> Result<Ring> {
    let file = dir.join(FILE);
    let ring = rotated(read(&file)?.unwrap_or_default(), now, overlap)?;
    write(&file, &ring).with_context(|| format!("writing {}", file.display()))?;
    Ok(ring)
}

fn rotated(mut ring: Ring, now: Millis, overlap: Duration) -> Result<Ring> {
    ring.rotate(now, overlap).map_err(anyhow::Error::msg)?;
    Ok(ring)
}

fn read(file: &Path) -> Result<Option<Ring>> {
    let shown = || format!("{} (put it back from a copy, or remove it to get a new key)", file.display());
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).with_context(shown).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", file.display())),
    }
}

/// Whole or not at all, whenever the machine stops.
fn write(file: &Path, ring: &Ring) -> Result<()> {
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut new = options.open(&beside)?;
    new.write_all(format!("{}\n", serde_json::to_string_pretty(ring)?).as_bytes())?;
    new.sync_all()?;
    std::fs::rename(&beside, file)?;
    Ok(())
}

/// Notices what another process does to the file.
pub struct KeyFile {
    file: PathBuf,
    seen: Option<(SystemTime, u64)>,
}

impl KeyFile {
    pub fn new(dir: &Path) -> Self {
        let file = dir.join(FILE);
        Self { seen: mark(&file), file }
    }

    /// Whether the keys were exchanged. What cannot be read changes nothing.
    pub fn refresh(&mut self, signing: &Signing) -> Result<bool> {
        let now = mark(&self.file);
        if now == self.seen {
            return Ok(false);
        }
        self.seen = now;
        let Some(ring) = read(&self.file)? else { return Ok(false) };
        signing.replace(&ring).map_err(anyhow::Error::msg)?;
        Ok(true)
    }
}

fn mark(file: &Path) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

#[cfg(test)]
mod tests {
    use super::{FILE, ensure, rotate};
    use flotilla_protocol::time::Millis;
    use std::time::Duration;

    #[test]
    fn a_first_key_is_made_once_and_a_broken_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let first = ensure(Some(dir.path()), Millis(0)).unwrap();
        assert_eq!(ensure(Some(dir.path()), Millis(9)).unwrap(), first);
        let both = rotate(dir.path(), Millis(10), Duration::from_millis(5)).unwrap();
        assert_eq!(both.keys.iter().map(|key| key.until).collect::<Vec<_>>(), [Some(Millis(15)), None]);
        assert_eq!(ensure(Some(dir.path()), Millis(20)).unwrap(), both);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        let told = format!("{:#}", ensure(Some(dir.path()), Millis(0)).unwrap_err());
        assert!(told.contains("remove it to get a new key"), "{told}");
    }
}
