//! Tokens from `auth login`: kept in one file for its owner's eyes only, each for one agent card.

use super::auth;
use super::failure::{Failure, Local};
use super::output::warn;
use super::session::Session;
use super::settings::{Setting, directory};
use flotilla_core::ports::Clock as _;
use flotilla_outbound::client::card::Card;
use flotilla_outbound::oauth::{self, Requester, Token};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A token is renewed this long before it expires, so that it does not expire on the way.
const MARGIN: i64 = 30_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stored {
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// Milliseconds since 1970; none if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    /// Where to renew it: the address at the time of the login, not what a card says later.
    token_url: String,
    client_id: String,
}

#[derive(Debug, Clone, Default)]
pub struct Tokens {
    file: Option<PathBuf>,
    by_card: BTreeMap<String, Stored>,
}

impl Tokens {
    pub fn load() -> Result<Self, Failure> {
        let file = directory().map(|directory| directory.join("tokens.json"));
        let Some(text) = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()) else {
            return Ok(Self { file, by_card: BTreeMap::new() });
        };
        let by_card = serde_json::from_str(&text).map_err(|error| {
            let name = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
            Failure::internal(format!("{name} cannot be read: {error}")).hint("remove it and run: flotilla auth login")
        })?;
        Ok(Self { file, by_card })
    }

    /// For the redactor.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        self.by_card
            .values()
            .flat_map(|stored| [Some(stored.access_token.clone()), stored.refresh_token.clone()].into_iter().flatten())
    }

    /// Which cards there is a token for, and until when.
    pub fn list(&self) -> impl Iterator<Item = (&str, Option<i64>)> {
        self.by_card.iter().map(|(card, stored)| (card.as_str(), stored.expires_at))
    }

    pub fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// The token for a card, renewed if that is due and possible.
    pub async fn current(&self, session: &Session, card: &Card) -> Result<Option<String>, Failure> {
        let Some(stored) = self.by_card.get(&card.source) else { return Ok(None) };
        let now = crate::clock::SystemClock.now().0;
        if stored.expires_at.is_none_or(|at| now < at - MARGIN) {
            return Ok(Some(stored.access_token.clone()));
        }
        let Some(refresh) = &stored.refresh_token else {
            let advice = auth::again(session, card, &stored.client_id);
            warn(&format!("the token has expired; {advice}"));
            return Ok(None);
        };
        let secret = session.sources.value(Setting::ClientSecret, None);
        let requester = Requester { id: stored.client_id.clone(), secret, ..Requester::default() };
        let token = oauth::refresh(&session.net, &stored.token_url, &requester, refresh)
            .await
            .map_err(|error| Failure::from(error).hint(auth::again(session, card, &stored.client_id)))?;
        let access = token.access_token.clone();
        self.clone().store(&card.source, token, &stored.token_url, &stored.client_id)?;
        Ok(Some(access))
    }

    pub fn store(mut self, card: &str, token: Token, token_url: &str, client_id: &str) -> Result<(), Failure> {
        let now = crate::clock::SystemClock.now().0;
        let lasts = token.lasts();
        let stored = Stored {
            access_token: token.access_token,
            refresh_token: token.refresh_token,
            expires_at: lasts.map(|lasts| now.saturating_add(lasts)),
            token_url: token_url.to_owned(),
            client_id: client_id.to_owned(),
        };
        self.by_card.insert(card.to_owned(), stored);
        self.save()
    }

    /// Whether there was a token to forget.
    pub fn forget(mut self, card: &str) -> Result<bool, Failure> {
        let found = self.by_card.remove(card).is_some();
        if found {
            self.save()?;
        }
        Ok(found)
    }

    /// Written beside and put in place, so that no moment shows half a file; readable by its owner only.
    fn save(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            let failure = Failure::internal("there is no home directory to keep a token in");
            return Err(failure.hint("set HOME, or pass the token itself as A2ACLI_BEARER"));
        };
        let written = || -> std::io::Result<()> {
            if let Some(directory) = file.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let beside = file.with_extension("new");
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut out = options.open(&beside)?;
            serde_json::to_writer_pretty(&mut out, &self.by_card)?;
            out.sync_all()?;
            std::fs::rename(&beside, file)
        };
        written()
            .map_err(|error| Failure::new(Local::Internal, format!("{} cannot be written: {error}", file.display())))
    }
}
