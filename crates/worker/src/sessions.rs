//! Which session of an agent's program belongs to which context: kept in a file, one run in each at a time.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// Sessions that are remembered; of more, the longest unused is forgotten, and begun anew when it goes on.
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
    #[serde(flatten)]
    known: Known,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Known {
    session: String,
    /// In seconds since 1970.
    used_at: u64,
    /// What is to be remembered with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    memo: Value,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    sessions: Vec<Entry>,
}

/// The sessions of one agent.
#[derive(Debug, Default)]
pub struct Sessions {
    /// None keeps them in memory only.
    file: Option<PathBuf>,
    known: Mutex<HashMap<Whose, Known>>,
    busy: Mutex<HashMap<Whose, Weak<tokio::sync::Mutex<()>>>>,
}

/// A context that no other run speaks in as long as this is held.
pub struct Held {
    sessions: Arc<Sessions>,
    whose: Whose,
    /// The session that was begun in it.
    pub known: Option<String>,
    /// What was remembered with it.
    pub memo: Value,
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
        let known = read(&file)?.into_iter().map(|entry| (entry.whose, entry.known)).collect();
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
        let known = lock(&self.known).get(&whose).cloned();
        let (known, memo) = known.map_or((None, Value::Null), |known| (Some(known.session), known.memo));
        Held { sessions: Arc::clone(self), whose, known, memo, _turn }
    }

    /// Whether a session belongs to some context already.
    pub fn is_taken(&self, session: &str) -> bool {
        lock(&self.known).values().any(|known| known.session == session)
    }

    /// Changes what is known. The file follows: a change that a crash loses costs a session, and nothing waits for the disk.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut HashMap<Whose, Known>)) {
        change(&mut lock(&self.known));
        if self.file.is_none() {
            return;
        }
        let sessions = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            if let Err(problem) = sessions.write() {
                tracing::error!(problem, "a session is not remembered");
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
                let oldest = known.iter().min_by_key(|(_, known)| known.used_at).map(|(whose, _)| whose.clone());
                oldest.map(|whose| known.remove(&whose));
            }
            let entry = |(whose, known): (&Whose, &Known)| Entry { whose: whose.clone(), known: known.clone() };
            Stored { sessions: known.iter().map(entry).collect() }
        };
        write(file, &stored)
    }
}

impl Held {
    /// The context goes on in this session from now on.
    pub fn begun(&mut self, session: &str) {
        if self.known.as_deref() != Some(session) {
            self.memo = Value::Null;
        }
        self.known = Some(session.to_owned());
        let known = Known { session: session.to_owned(), used_at: seconds_now(), memo: self.memo.clone() };
        self.sessions.change(|all| drop(all.insert(self.whose.clone(), known)));
    }

    /// Keeps something with the session, in the place of what was kept.
    pub fn remember(&mut self, memo: Value) {
        if let Some(session) = self.known.clone() {
            self.memo = memo;
            self.begun(&session);
        }
    }

    /// The program does not know the session any more.
    pub fn lost(&mut self) {
        (self.known, self.memo) = (None, Value::Null);
        self.sessions.change(|all| drop(all.remove(&self.whose)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn seconds_now() -> u64 {
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

/// Whole or not at all: a file that a crash left half-written would lose every session.
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
    attempt().map_err(|error| format!("the session cannot be remembered in {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::Sessions;
    use std::sync::Arc;

    /// The writes in the background hold it until they are done.
    async fn let_go(sessions: Arc<Sessions>) {
        let weak = Arc::downgrade(&sessions);
        drop(sessions);
        while weak.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_session_is_its_callers_and_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("below/sessions.json");
        let sessions = Sessions::open(Some(file.clone())).unwrap();
        let mut held = sessions.hold("1", "c").await;
        assert_eq!(held.known, None);
        held.begun("s-1");
        held.remember(7.into());
        assert_eq!(sessions.hold("2", "c").await.known, None, "another caller's words name another session");
        assert!(sessions.is_taken("s-1") && !sessions.is_taken("s-2"));
        drop(held);
        let_go(sessions).await;
        let sessions = Sessions::open(Some(file.clone())).unwrap();
        let mut held = sessions.hold("1", "c").await;
        assert_eq!((held.known.as_deref(), &held.memo), (Some("s-1"), &7.into()), "read back from the file");
        held.lost();
        drop(held);
        assert_eq!(sessions.hold("1", "c").await.known, None);
        let_go(sessions).await;
        std::fs::write(&file, "{").unwrap();
        assert!(Sessions::open(Some(file)).unwrap_err().contains("move the file away"));
    }

    #[tokio::test]
    async fn one_run_speaks_in_a_context_at_a_time() {
        let sessions = Sessions::open(None).unwrap();
        let first = sessions.hold("1", "c").await;
        let second = sessions.hold("1", "c");
        tokio::pin!(second);
        assert!(futures_are_pending(&mut second).await);
        drop(first);
        second.await;
    }

    async fn futures_are_pending(future: &mut (impl Future + Unpin)) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }
}
