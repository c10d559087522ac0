//! The way to an agent elsewhere: its card, the interface chosen from it, and the credentials that go along.

use super::options::{Auth, Options, Place, WELL_KNOWN};
use super::trust;
use crate::client::card::Card;
use crate::client::credential::{Attached, Credentials};
use crate::client::error::ClientError;
use crate::client::resolve::{Reference, resolve_in};
use crate::client::{self, Client};
use crate::guard::Guard;
use crate::net::redact::Redactor;
use crate::net::{Limits, Net, Outgoing, address};
use crate::oauth::{self, Requester, Shows};
use crate::signature::origin::{Fetch, judge};
use crate::signature::verify::{Outcome, Word};
use arc_swap::ArcSwapOption;
use flotilla_core::registry::{Proven, Signed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A token is not used in its last moments.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a token is used whose server does not say.
const USUAL: Duration = Duration::from_secs(300);
/// How long a token is used at most, whatever its server says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What to do about a card that is worth less than before.
const BEGIN_ANEW: &str = "if that is meant to be so, remove the agent and add it again";

/// The token of now and until when, and how its server takes the client's secret where that is not as usual.
#[derive(Default)]
struct Tokens {
    kept: Option<(String, Instant)>,
    shows: Option<Shows>,
}

pub struct Way {
    options: Arc<Options>,
    pub guard: Guard,
    net: Net,
    chosen: ArcSwapOption<Client>,
    /// The card is read anew at the next call: the last one did not get through.
    stale: AtomicBool,
    reading: Mutex<()>,
    token: Mutex<Tokens>,
    /// The last card whose signatures were judged, and what they are worth.
    judged: Mutex<Option<(String, Outcome)>>,
    /// Whether its card was verified once, and what for.
    proven: Arc<Proven>,
    proof: String,
}

impl Way {
    pub fn new(options: Arc<Options>, guard: Guard, proven: Arc<Proven>) -> Result<Self, ClientError> {
        let limits = Limits {
            connect: options.times.connect,
            answer: options.times.answer,
            bytes: options.bytes,
            depth: options.depth,
        };
        let secure = matches!(&options.place, Place::Base(url) | Place::Card(url) if url.starts_with("https://"));
        let resolver = options.guarded.then(|| guard.resolver(secure));
        let net = Net::between(limits, Redactor::new(options.secrets()), resolver)?;
        Ok(Self {
            proof: options.proof(),
            options,
            guard,
            net,
            chosen: ArcSwapOption::empty(),
            stale: AtomicBool::new(false),
            reading: Mutex::default(),
            token: Mutex::default(),
            judged: Mutex::default(),
            proven,
        })
    }

    /// What was chosen from the card, once that was read.
    pub fn chosen(&self) -> Option<Arc<Client>> {
        self.chosen.load_full()
    }

    /// Text with every credential of this way masked.
    pub fn clean(&self, text: &str) -> String {
        self.net.clean(text)
    }

    /// The agent did not answer: perhaps it moved.
    pub fn doubt(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// A client that shows what it takes to be let in.
    pub async fn client(&self) -> Result<Client, ClientError> {
        let client = match self.chosen.load_full() {
            Some(client) if !self.stale.load(Ordering::Relaxed) => client,
            _ => Box::pin(self.read_once()).await?,
        };
        let Auth::OAuth2 { .. } = &self.options.auth else { return Ok((*client).clone()) };
        Ok(match Box::pin(self.bearer(client.card())).await? {
            Some(token) => client.carrying([("Authorization".to_owned(), format!("Bearer {token}"))]),
            None => (*client).clone(),
        })
    }

    /// Reads the card, unless somebody else does meanwhile.
    async fn read_once(&self) -> Result<Arc<Client>, ClientError> {
        let _one = self.reading.lock().await;
        match self.chosen.load_full() {
            Some(client) if !self.stale.load(Ordering::Relaxed) => Ok(client),
            _ => self.read().await,
        }
    }

    /// Reads the card and chooses anew. The keys of its origin are read too: one may have been withdrawn meanwhile.
    pub async fn refresh(&self) -> Result<Arc<Client>, ClientError> {
        let _one = self.reading.lock().await;
        *self.judged.lock().await = None;
        self.read().await
    }

    async fn read(&self) -> Result<Arc<Client>, ClientError> {
        let card = self.fetch().await?;
        let card = self.check_signature(card).await?;
        // The same card leads to the same choice, and what was learned of the agent meanwhile is not forgotten.
        let is_same = |chosen: &Card| chosen.json == card.json && chosen.is_proven == card.is_proven;
        if let Some(chosen) = self.chosen().filter(|chosen| is_same(chosen.card())) {
            self.stale.store(false, Ordering::Relaxed);
            return Ok(chosen);
        }
        let card = trust::permitted(&self.guard, card, self.options.named()).await?;
        let card = trust::entrusted(card, &self.options)?;
        let attached = self.attached();
        let options = client::Options {
            transports: self.options.transports.clone(),
            version: self.options.protocol.version(),
            versions: self.options.protocol.versions(),
            attached: Some(attached),
            files: self.options.files,
            parameters: self.options.headers.clone(),
            ..client::Options::default()
        };
        let chosen = Client::new(self.net.clone(), card, options)?;
        let client = match trust::resolver(&self.guard, &chosen.called_at(), self.options.named()) {
            Some(resolver) => chosen.over(Net::between(self.net.limits, self.net.redactor(), Some(resolver))?),
            None => chosen,
        };
        let before = self.chosen.load_full();
        let client = Arc::new(before.iter().fold(client, |client, before| client.remembering(before)));
        self.chosen.store(Some(Arc::clone(&client)));
        self.stale.store(false, Ordering::Relaxed);
        Ok(client)
    }

    async fn fetch(&self) -> Result<Card, ClientError> {
        let (shown, version) = (self.shown(), self.options.protocol.card_version());
        let get = |url: String| {
            let shown = shown.clone();
            async move {
                self.admit(&url).await?;
                resolve_in(version, &self.net, &Reference::Url(url), None, &shown).await
            }
        };
        match &self.options.place {
            Place::File(path) => resolve_in(version, &self.net, &Reference::File(path.clone()), None, &shown).await,
            Place::Card(url) => get(url.clone()).await,
            Place::Base(url) => {
                let base = url.trim_end_matches('/');
                let [known, before] = WELL_KNOWN.map(|path| format!("{base}{path}"));
                match get(known).await {
                    Err(missing @ ClientError::CardNotFound { .. }) => get(before).await.map_err(|_| missing),
                    other => other,
                }
            }
        }
    }

    /// Asks the guard about an address that somebody named over the API.
    async fn admit(&self, url: &str) -> Result<(), ClientError> {
        if self.options.guarded {
            let told = |refused| ClientError::Setting(format!("{}: {refused}", address::shown(url)));
            self.guard.check(url).await.map_err(told)?;
        }
        Ok(())
    }

    /// What the signatures of a card are worth. A card that is the same as before is judged once between two checks,
    /// unless there were no keys for it.
    pub async fn judge(&self, card: &Card) -> Outcome {
        let mut judged = self.judged.lock().await;
        match &*judged {
            Some((json, outcome)) if *json == card.json && outcome.word != Word::Unverifiable => outcome.clone(),
            _ => {
                let outcome = self.judge_now(card).await;
                *judged = Some((card.json.clone(), outcome.clone()));
                outcome
            }
        }
    }

    async fn judge_now(&self, card: &Card) -> Outcome {
        let by = Fetch { net: &self.net, guard: self.options.guarded.then_some(&self.guard) };
        judge(by, &card.json, &card.source, &self.options.pins).await
    }

    /// The card in use is none to fall back on if it was forged all along, which shows once there are keys to tell; nor if
    /// its origin has withdrawn the key that signed it. `read` is a card that is not to be used, and what it is worth.
    async fn distrust(&self, read: &Card, outcome: &Outcome) {
        let Some(used) = self.chosen() else { return };
        let of_its_own = match used.card().json == read.json {
            true => None,
            false => Some(self.judge_now(used.card()).await),
        };
        let Outcome { word, is_informed, .. } = of_its_own.as_ref().unwrap_or(outcome);
        let is_withdrawn = *word == Word::Unverifiable && *is_informed && used.card().is_proven;
        if *word == Word::Failed || is_withdrawn {
            tracing::warn!(agent = self.options.name, "the card in use does not hold; the agent is not called by it");
            self.chosen.store(None);
        }
    }

    /// What the last card's signatures were worth.
    pub fn word(&self) -> Option<Signed> {
        let judged = self.judged.try_lock().ok()?;
        judged.as_ref().map(|(_, outcome)| outcome.signed())
    }

    /// A card whose signature does not hold is not used, nor is one without or by a stranger, once the agent's card was
    /// verified: whoever changed it on the way might have the agent's secrets sent elsewhere. For the same reason nothing
    /// counts of a verified one but what was signed.
    async fn check_signature(&self, card: Card) -> Result<Card, ClientError> {
        let pinned = !self.options.pins.is_empty();
        let verified = self.proven.holds(&self.options.name, &self.proof);
        if !pinned && !verified && !card.json.contains("\"signatures\"") {
            return Ok(card);
        }
        let reference = address::shown(&card.source);
        let outcome = self.judge(&card).await;
        let (word, reason) = (outcome.word, &outcome.reason);
        let problem = match (word, &outcome.proof) {
            (Word::Verified, proof) => {
                let kept = self.proven.keep(&self.options.name, &self.proof).await;
                kept.map_err(|fault| ClientError::Setting(format!("that its card is verified: {fault}")))?;
                let Some(proof) = proof else { return Ok(card) };
                let unread = |problem| ClientError::CardInvalid { reference, problem };
                return card.proven(&proof.payload).map_err(unread);
            }
            _ if pinned => format!("no pinned key is known to have signed it ({word}: {reason})"),
            (Word::Failed, _) => format!("its signature does not hold (failed: {reason})"),
            (Word::Absent, _) if verified => {
                format!("it is not signed any more, and was before (absent); {BEGIN_ANEW}")
            }
            (Word::Unverifiable, _) if verified => format!(
                "no key that is known here signed it any more, and one did before (unverifiable: {reason}); {BEGIN_ANEW}"
            ),
            (Word::Absent | Word::Unverifiable, _) => return Ok(card),
        };
        self.distrust(&card, &outcome).await;
        Err(ClientError::CardInvalid { reference, problem })
    }

    /// Whether anyone is where the agent's interface is, whatever they answer.
    pub async fn knock(&self) -> Result<(), ClientError> {
        let Some(client) = self.chosen() else { return Ok(()) };
        let url = &client.called_at();
        self.admit(url).await?;
        let outgoing = Outgoing { url: url.clone(), ..Outgoing::default() };
        match self.net.send(outgoing, Some(self.net.limits.answer)).await {
            Err(error @ ClientError::Unconnected { .. }) => Err(error),
            // A gateway says that nobody is behind it.
            Ok(response) if matches!(response.status().as_u16(), 502..=504) => {
                let problem = format!("HTTP {}", response.status().as_u16());
                Err(ClientError::Unreachable { url: address::shown(url), problem })
            }
            // Not everything that listens speaks HTTP/1.1.
            _ => Ok(()),
        }
    }

    /// Some show their card to those they know only.
    fn shown(&self) -> Credentials {
        let mut shown = Credentials::default();
        if let Auth::Header { name, value } = &self.options.auth {
            shown.bearer = value.strip_prefix("Bearer ").filter(|_| is_authorization(name)).map(str::to_owned);
            shown.api_key = name.eq_ignore_ascii_case("x-api-key").then(|| value.clone());
        }
        shown
    }

    fn attached(&self) -> Attached {
        let headers = match &self.options.auth {
            Auth::Header { name, value } => vec![(name.clone(), value.clone())],
            Auth::None | Auth::OAuth2 { .. } => Vec::new(),
        };
        Attached { headers, ..Attached::default() }
    }

    /// The token of now, where tokens are used.
    async fn bearer(&self, card: &Card) -> Result<Option<String>, ClientError> {
        let Auth::OAuth2 { token_url, requester } = &self.options.auth else { return Ok(None) };
        let mut tokens = self.token.lock().await;
        if let Some((token, until)) = &tokens.kept
            && Instant::now() < *until
        {
            return Ok(Some(token.clone()));
        }
        let url = match token_url {
            Some(url) => {
                self.admit(url).await?;
                url.clone()
            }
            None => trust::token_url(&self.guard, card, &self.options).await?,
        };
        let requester = Requester { shows: tokens.shows.unwrap_or(requester.shows), ..requester.clone() };
        let asked = oauth::client_credentials(&self.net, &url, &requester).await;
        // What a server took it may not take for ever.
        tokens.shows = asked.as_ref().ok().map(|(_, shows)| *shows).filter(|shows| *shows == Shows::Basic);
        let (token, _) = asked?;
        let lasts = token.expires_in.map_or(USUAL, Duration::from_secs).min(LONGEST);
        // One that does not outlast the margin is used for this call alone.
        tokens.kept = Some((token.access_token.clone(), Instant::now() + lasts.saturating_sub(MARGIN)));
        Ok(Some(token.access_token))
    }

    /// The agent did not take the token. Says whether another one may help.
    pub async fn drop_token(&self) -> bool {
        self.token.lock().await.kept.take().is_some()
    }
}

fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization")
}
