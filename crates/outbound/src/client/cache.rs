//! Cards kept between runs, as HTTP allows: no longer than their server says, and asked about after that.

use crate::net::Outgoing;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory of cards.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// Seconds since 1970 until which it may be used without asking.
    fresh_until: u64,
    etag: Option<String>,
    last_modified: Option<String>,
    pub json: String,
}

impl Kept {
    pub fn is_fresh(&self) -> bool {
        now() < self.fresh_until
    }

    /// Asks only for what is newer.
    pub fn ask(&self, outgoing: &mut Outgoing) {
        let asked = [("If-None-Match", &self.etag), ("If-Modified-Since", &self.last_modified)];
        for (name, value) in asked.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            outgoing.headers.push((name.to_owned(), value.clone()));
        }
    }
}

impl Cache {
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// A card's name is its address, and the credential it was shown for.
    fn file(&self, name: &str) -> PathBuf {
        // Both may hold a secret, and whoever lists a directory reads its names.
        let mut digits = String::new();
        for byte in Sha256::digest(name) {
            let _ = write!(digits, "{byte:02x}");
        }
        self.directory.join(format!("{digits}.json"))
    }

    pub fn get(&self, name: &str) -> Option<Kept> {
        let text = std::fs::read_to_string(self.file(name)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps a card if its server allows it. A cache that cannot be written is no reason to fail.
    pub fn put(&self, name: &str, headers: &HeaderMap, json: &str) {
        let text = |field: &str| headers.get(field).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let control = text("cache-control").unwrap_or_default().to_ascii_lowercase();
        let (etag, last_modified) = (text("etag"), text("last-modified"));
        let age = max_age(&control);
        if control.contains("no-store") || (age == 0 && etag.is_none() && last_modified.is_none()) {
            let _ = std::fs::remove_file(self.file(name));
            return;
        }
        let kept = Kept { fresh_until: now() + age, etag, last_modified, json: json.to_owned() };
        let _ = self.write(&self.file(name), &kept);
    }

    /// Which agents somebody calls, and what their cards say, is nobody else's business.
    fn write(&self, file: &Path, kept: &Kept) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
            std::fs::set_permissions(&self.directory, std::fs::Permissions::from_mode(0o700))?;
            options.mode(0o600);
        }
        options.open(&beside)?.write_all(&serde_json::to_vec(kept)?)?;
        std::fs::rename(beside, file)
    }
}

/// A card that is never asked about again would never change: a year at most.
const LONGEST: u64 = 365 * 24 * 3600;

/// Seconds an answer stays fresh; none of it counts if it must be asked about every time.
fn max_age(control: &str) -> u64 {
    let directives = || control.split(',').map(str::trim);
    if directives().any(|directive| directive == "no-cache") {
        return 0;
    }
    let age = directives().find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    age.map_or(0, |age: u64| age.min(LONGEST))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::max_age;

    #[test]
    fn freshness_is_what_the_server_says() {
        assert_eq!(max_age("public, max-age=60"), 60);
        assert_eq!(max_age("no-cache, max-age=60"), 0);
        assert_eq!(max_age(""), 0);
        assert_eq!(max_age("max-age=soon"), 0);
        assert_eq!(max_age("max-age=18446744073709551615"), super::LONGEST);
    }
}
