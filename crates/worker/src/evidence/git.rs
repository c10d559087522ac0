//! The `git` program, called below a reaper, so that it starts nothing of a run's, asks nobody and does not outstay its time.

use super::place::Place;
use super::scrub::{Settings, Stand};
use super::snapshot::Print;
use crate::supervise::{Exit, Launch, Limits, Streams};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Mutex;

/// Settings of every git call. They override the settings of the repository and of the user.
const SAFE: [&str; 13] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.untrackedCache=false",
    "core.commitGraph=false",
    // Git would start itself in a repository inside, where that one's own settings count.
    "submodule.recurse=false",
    "merge.autoStash=false",
];
/// What one call may print, in bytes.
const MUCH: u64 = 32 * 1024 * 1024;

/// What git is started below, and held to with all it starts.
#[derive(Debug, Clone)]
pub struct Hold {
    /// This program's own file, which runs others under its command `reap`.
    pub reaper: PathBuf,
    /// What the processes are marked with, so that a sweep finds them.
    pub mark: String,
    pub limits: Limits,
    /// How long git has between being asked to end and being ended: it takes away its locks.
    pub grace: Duration,
    /// How long it may take for an answer.
    pub patience: Duration,
}

/// One place that git is asked about.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
    hold: Arc<Hold>,
    known: Arc<Mutex<BTreeMap<Place, Known>>>,
    /// Submodules that git is not to look into, by their names.
    let_alone: Arc<[String]>,
}

/// What a repository's settings came to when they were last read, and the files they were read from.
#[derive(Debug, Clone)]
struct Known {
    files: [Print; 2],
    settings: Arc<Settings>,
}

/// Why git has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The folder is in no repository, which is no fault.
    NoRepository,
    /// In words; what git said stands in it.
    Failed(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRepository => f.write_str("the folder is in no git repository"),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl Git {
    pub fn new(folder: &Path, hold: Hold) -> Self {
        Self { folder: folder.to_owned(), hold: Arc::new(hold), known: Arc::default(), let_alone: Arc::default() }
    }

    /// The same, in another folder.
    pub fn at(&self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self.clone() }
    }

    /// The same, where git must not look into these submodules: it would start itself there, by their own settings.
    pub fn letting_alone(&self, submodules: impl Iterator<Item = String>) -> Self {
        Self { let_alone: submodules.collect(), ..self.clone() }
    }

    /// The repository it is asked about, as it is found now.
    pub fn place(&self) -> Result<Place, Trouble> {
        Place::find(&self.folder)
    }

    /// What git prints; an exit code that is not 0 is trouble.
    pub async fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>, Trouble> {
        self.run(arguments).await?.printed(arguments)
    }

    /// The first line that git prints, without its end.
    pub async fn line(&self, arguments: &[&str]) -> Result<String, Trouble> {
        let printed = self.ask(arguments).await?;
        Ok(String::from_utf8_lossy(&printed).lines().next().unwrap_or_default().to_owned())
    }

    /// Whether git says yes (exit code 0).
    pub async fn is(&self, arguments: &[&str]) -> Result<bool, Trouble> {
        Ok(self.run(arguments).await?.exit == Exit::Code(0))
    }

    /// Git goes by what was made of the repository's settings, and does not read those: a run that is under way may change
    /// them at any time.
    async fn run(&self, arguments: &[&str]) -> Result<Answer, Trouble> {
        let place = self.place()?;
        let settings = self.settings(&place).await?;
        let stand = Stand::of(&place, &settings.letting_alone(&self.let_alone))?;
        self.call(arguments, &place, Some(&stand)).await
    }

    /// Lists the settings, which starts nothing; once as long as their files are the same.
    async fn settings(&self, place: &Place) -> Result<Arc<Settings>, Trouble> {
        let files = [place.common.join("config"), place.own.join("config.worktree")].map(|file| Print::of(&file));
        let mut known = self.known.lock().await;
        if let Some(known) = known.get(place).filter(|known| known.files == files) {
            return Ok(Arc::clone(&known.settings));
        }
        let list = ["config", "--list", "--show-scope", "-z"];
        let printed = self.call(&list, place, None).await?.printed(&list)?;
        let settings = Arc::new(Settings::read(&printed, place)?);
        let is_plain = |print: &Print| print.is_file() || *print == Print::default();
        // Others that are included may change without these.
        if files.iter().all(is_plain)
            && !printed.split(|byte| *byte == 0).any(|entry| entry.starts_with(b"include.path\n"))
        {
            known.insert(place.clone(), Known { files, settings: Arc::clone(&settings) });
        }
        Ok(settings)
    }

    async fn call(&self, arguments: &[&str], place: &Place, stand: Option<&Stand>) -> Result<Answer, Trouble> {
        let failed = |problem: String| Trouble::Failed(format!("git {}: {problem}", verb(arguments)));
        let words = ["--no-pager"].into_iter().chain(SAFE.iter().flat_map(|setting| ["-c", setting]));
        let launch = Launch {
            program: "git".into(),
            arguments: words.chain(arguments.iter().copied()).map(OsString::from).collect(),
            environment: environment(place, stand),
            folder: self.folder.clone(),
            mark: self.hold.mark.clone(),
            grace: self.hold.grace,
            limits: self.hold.limits,
        };
        let (mut running, Streams { stdin, stdout, stderr }) = launch.start(&self.hold.reaper).map_err(failed)?;
        drop(stdin);
        let answer = async {
            let (printed, said) = tokio::join!(read(stdout), read(stderr));
            (running.ended().await, printed, said)
        };
        let Ok((exit, printed, said)) = tokio::time::timeout(self.hold.patience, answer).await else {
            running.stop().await;
            return Err(failed(format!("gave no answer within {} s", self.hold.patience.as_secs())));
        };
        if printed.len() as u64 == MUCH {
            return Err(failed(format!("printed more than {MUCH} bytes")));
        }
        let said = String::from_utf8_lossy(&said).into_owned();
        match exit {
            _ if said.contains("not a git repository") => Err(Trouble::NoRepository),
            Exit::NotStarted => Err(failed("there is no git program in PATH".into())),
            Exit::TooMuch(_) | Exit::Unknown => Err(failed(exit.told())),
            exit => Ok(Answer { exit, printed, said }),
        }
    }
}

/// What git said, whatever it was.
struct Answer {
    exit: Exit,
    printed: Vec<u8>,
    said: String,
}

impl Answer {
    fn printed(self, arguments: &[&str]) -> Result<Vec<u8>, Trouble> {
        let said = match self.exit {
            Exit::Code(0) => return Ok(self.printed),
            exit if self.said.trim().is_empty() => exit.told(),
            _ => first_lines(&self.said),
        };
        Err(Trouble::Failed(format!("git {}: {said}", verb(arguments))))
    }
}

/// All the environment that git gets.
fn environment(place: &Place, stand: Option<&Stand>) -> Vec<(OsString, OsString)> {
    let own = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let mut all: Vec<(OsString, OsString)> = own.collect();
    let fixed = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("LC_ALL", "C"),
        // A repository may say that its missing objects are to be fetched, by any program. This overrules what it allows.
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_NO_LAZY_FETCH", "1"),
        // A run may put another object in the place of a commit, so that nothing seems to have changed, or other parents.
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_GRAFT_FILE", "/dev/null/none"),
    ];
    all.extend(fixed.map(|(name, value)| (name.into(), value.into())));
    let mut put = |name: &str, path: &Path| all.push((name.into(), AsRef::<OsStr>::as_ref(path).to_owned()));
    put("GIT_DIR", &place.own);
    put("GIT_WORK_TREE", &place.root);
    if let Some(stand) = stand {
        put("GIT_COMMON_DIR", stand.folder());
    }
    all
}

async fn read(from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut read = Vec::new();
    let _ = from.take(MUCH).read_to_end(&mut read).await;
    read
}

fn verb<'a>(arguments: &[&'a str]) -> &'a str {
    arguments.first().copied().unwrap_or_default()
}

fn first_lines(said: &str) -> String {
    said.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join("; ")
}

/// The pieces of an answer that ends each with a NUL.
pub fn pieces(printed: &[u8]) -> impl Iterator<Item = String> {
    printed
        .split(|byte| *byte == 0)
        .filter(|piece| !piece.is_empty())
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
}
