//! Which conversation of Claude Code belongs to which context: kept in a file, one run of each at a time.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Conversations that are remembered; of more, the longest unused are forgotten, and begun anew when they go on.
const REMEMBERED: usize = 10_000;

/// A context is its caller's: two callers may use the same words for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Whose {
    caller: String,
    context: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    whose: Whose,
    session: String,
    /// In seconds since 1970.
    used_at: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    sessions: Vec<Entry>,
}

/// The name of each conversation, and when it was last used.
type Known = HashMap<Whose, (Uuid, u64)>;

/// The conversations of one agent.
#[derive(Debug, Default)]
pub struct Sessions {
    /// None keeps them in memory only.
    file: Option<PathBuf>,
    known: Mutex<Known>,
    busy: Mutex<HashMap<Whose, Weak<tokio::sync::Mutex<()>>>>,
}

/// A conversation that nobody else speaks in as long as this is held.
pub struct Held {
    sessions: Arc<Sessions>,
    whose: Whose,
    pub id: Uuid,
    /// It was begun before, so it is resumed.
    pub is_known: bool,
    _turn: tokio::sync::OwnedMutexGuard<()>,
}

/// One for each file in this process, so that a configuration read again shares it with the runs under way.
static OPEN: OnceLock<Mutex<HashMap<PathBuf, Weak<Sessions>>>> = OnceLock::new();

impl Sessions {
    pub fn open(file: Option<PathBuf>) -> Result<Arc<Self>, String> {
        let Some(file) = file else { return Ok(Arc::default()) };
        let mut open = lock(OPEN.get_or_init(Mutex::default));
        if let Some(shared) = open.get(&file).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        let entry = |entry: Entry| Some((entry.whose, (Uuid::try_parse(&entry.session).ok()?, entry.used_at)));
        let known = read(&file)?.into_iter().filter_map(entry).collect();
        let sessions = Arc::new(Self { file: Some(file.clone()), known: Mutex::new(known), busy: Mutex::default() });
        open.insert(file, Arc::downgrade(&sessions));
        Ok(sessions)
    }

    /// Waits until no other run speaks in the caller's context.
    pub async fn hold(self: &Arc<Self>, caller: &str, context: &str) -> Held {
        let whose = Whose { caller: caller.to_owned(), context: context.to_owned() };
        let turn = {
            let mut busy = lock(&self.busy);
            busy.retain(|_, turn| turn.strong_count() > 0);
            let turn = busy.get(&whose).and_then(Weak::upgrade).unwrap_or_default();
            busy.insert(whose.clone(), Arc::downgrade(&turn));
            turn
        };
        let _turn = turn.lock_owned().await;
        let (id, is_known) = self.find(&whose);
        Held { sessions: Arc::clone(self), whose, id, is_known, _turn }
    }

    /// The name of a conversation follows from its context alone, as other A2A bridges of Claude Code have it; a second
    /// caller with the same context gets one of its own.
    fn find(&self, whose: &Whose) -> (Uuid, bool) {
        let known = lock(&self.known);
        if let Some((session, _)) = known.get(whose) {
            return (*session, true);
        }
        let plain = named(&whose.context);
        let is_taken = known.values().any(|(session, _)| *session == plain);
        let own = || named(&format!("{}\n{}", whose.context, whose.caller));
        (if is_taken { own() } else { plain }, false)
    }

    /// Changes what is known. The file follows: losing the last change costs a try, and nothing waits for the disk.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Known)) {
        change(&mut lock(&self.known));
        if self.file.is_none() {
            return;
        }
        let sessions = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            if let Err(problem) = sessions.write() {
                tracing::error!(problem, "a conversation of Claude Code is not remembered");
            }
        });
    }

    /// Writes what is known now, so that of two writes the later one holds all.
    fn write(&self) -> Result<(), String> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = lock(&ONE_AT_A_TIME);
        let Some(file) = &self.file else { return Ok(()) };
        let stored = {
            let mut known = lock(&self.known);
            while known.len() > REMEMBERED {
                let oldest = known.iter().min_by_key(|(_, (_, used_at))| *used_at).map(|(whose, _)| whose.clone());
                oldest.map(|whose| known.remove(&whose));
            }
            let entry = |(whose, (session, used_at)): (&Whose, &(Uuid, u64))| Entry {
                whose: whose.clone(),
                session: session.to_string(),
                used_at: *used_at,
            };
            Stored { sessions: known.iter().map(entry).collect() }
        };
        write(file, &stored)
    }
}

impl Held {
    /// The conversation exists from now on.
    pub fn begun(&mut self) {
        self.is_known = true;
        self.sessions.change(|known| {
            known.insert(self.whose.clone(), (self.id, seconds_now()));
        });
    }

    /// The program does not know the conversation any more.
    pub fn lost(&mut self) {
        self.is_known = false;
        self.sessions.change(|known| {
            known.remove(&self.whose);
        });
    }
}

fn named(context: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("a2a:{context}").as_bytes())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn read(file: &Path) -> Result<Vec<Entry>, String> {
    let told = |problem: String| format!("{}: {problem}; move the file away to begin anew", file.display());
    match std::fs::read(file) {
        Ok(text) => {
            serde_json::from_slice::<Stored>(&text).map(|s| s.sessions).map_err(|error| told(error.to_string()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(told(error.to_string())),
    }
}

/// Whole or not at all: a file that a crash left half-written would lose every conversation.
fn write(file: &Path, stored: &Stored) -> Result<(), String> {
    let attempt = || -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let new = file.with_extension("new");
        let mut writing = std::fs::File::create(&new)?;
        writing.write_all(&serde_json::to_vec(stored)?)?;
        writing.sync_all()?;
        std::fs::rename(&new, file)?;
        std::fs::File::open(folder)?.sync_all()
    };
    attempt().map_err(|error| format!("the conversation cannot be remembered in {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::{Sessions, named};
    use std::sync::Arc;

    #[test]
    fn names_are_those_other_bridges_use() {
        assert_eq!(named("handshake:hermes-switch").to_string(), "4cd6f909-51b3-54ad-bf41-5948c6359c09");
    }

    #[tokio::test]
    async fn a_conversation_is_its_callers_and_outlives_the_process() {
        let folder = std::env::temp_dir().join(format!("flotilla-sessions-{}", std::process::id()));
        let file = folder.join("sessions.json");
        let weak = {
            let sessions = Sessions::open(Some(file.clone())).unwrap();
            let mut held = sessions.hold("1", "c").await;
            assert!(!held.is_known && held.id == named("c"));
            held.begun();
            sessions.write().unwrap();
            let other = sessions.hold("2", "c").await;
            assert!(!other.is_known && other.id != held.id, "another caller's words name another conversation");
            Arc::downgrade(&sessions)
        };
        while weak.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        let sessions = Sessions::open(Some(file.clone())).unwrap();
        let mut held = sessions.hold("1", "c").await;
        assert!(held.is_known && held.id == named("c"), "read back from the file");
        held.lost();
        drop(held);
        assert!(!sessions.hold("1", "c").await.is_known);
        sessions.write().unwrap();
        // The writes in the background hold it until they are done.
        let weak = Arc::downgrade(&sessions);
        drop(sessions);
        while weak.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        std::fs::write(&file, "{").unwrap();
        assert!(Sessions::open(Some(file)).unwrap_err().contains("move the file away"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
