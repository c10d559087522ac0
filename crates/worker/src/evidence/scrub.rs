//! The settings that git goes by. A run can write to its repository's settings, and git starts the programs that they name.
//! So git never reads those: it is given a folder in place of the shared git folder, with what is harmless of them.

use super::git::Trouble;
use super::place::Place;
use crate::reaper::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

/// The repository settings that git may use: none starts a program or leads git to another repository. A `*` stands for the
/// name of a branch or remote. Evidence reports a change of those that make git ignore files (`Hidden`).
const HARMLESS: [&str; 27] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.excludesfile",
    "core.attributesfile",
    "core.sharedrepository",
    "core.logallrefupdates",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "user.name",
    "user.email",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "user.useconfigonly",
    "branch.*.remote",
    "branch.*.merge",
    "remote.*.url",
    "remote.*.fetch",
];
/// How a repository is kept; each version of git knows its own. These two have git fetch what is missing, and read more settings.
const EXTENSIONS_PUT_ASIDE: [&str; 2] = ["extensions.partialclone", "extensions.worktreeconfig"];
/// What the working trees of a repository share, but for its settings and hooks; what Git LFS keeps there too.
const SHARED: [&str; 12] = [
    "HEAD",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "rr-cache",
    "shallow",
    "worktrees",
];

/// What a repository's settings come to, as the text of a file of git's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings(Vec<u8>);

impl Settings {
    /// Reads what `git config --list --show-scope -z` prints. The owner's own settings, and the machine's, count as they are.
    pub fn read(printed: &[u8], place: &Place) -> Result<Self, Trouble> {
        let (mut kept, mut owners, mut drivers) = (Self::default(), BTreeSet::new(), BTreeSet::new());
        let mut last = BTreeMap::new();
        let pieces: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        for pair in pieces.chunks_exact(2) {
            let (scope, entry) = (pair[0], pair[1]);
            let end = entry.iter().position(|byte| *byte == b'\n');
            let (name, value) = (&entry[..end.unwrap_or(entry.len())], end.map(|end| &entry[end + 1..]));
            let Some(setting) = Name::read(name) else { continue };
            if matches!(scope, b"system" | b"global" | b"command") {
                owners.insert(name.to_vec());
                continue;
            }
            if setting.section == b"includeif" {
                let name = String::from_utf8_lossy(name);
                return Err(Trouble::Failed(format!(
                    "the repository's own settings have '{name}', under which git may read any others: remove it, or put it \
                     into the settings of the worker's user"
                )));
            }
            if (setting.section, setting.variable) == (b"merge", b"driver") {
                drivers.insert(name.to_vec());
            }
            if setting.is_harmless() {
                kept.add(setting, value);
            }
            last.insert(name, value.unwrap_or(b"true"));
        }
        is_as_it_seems(&last, place)?;
        // A file that wants a driver of the repository's is in conflict, and not silently merged in another way.
        for name in drivers.difference(&owners) {
            if let Some(setting) = Name::read(name) {
                kept.add(setting, Some(b"false"));
            }
        }
        // Git LFS, which an owner may have set up, would keep its files in the folder that git is given.
        let storage = place.common.join("lfs");
        let setting = Name { section: b"lfs", between: None, variable: b"storage" };
        if !owners.contains(&b"lfs.storage"[..]) {
            kept.add(setting, Some(storage.as_os_str().as_bytes()));
        }
        Ok(kept)
    }

    /// With these submodules not looked into, whatever the list of submodules, which a run can write, says of that.
    pub fn letting_alone(&self, submodules: &[String]) -> Self {
        let mut more = self.clone();
        for name in submodules {
            let setting = Name { section: b"submodule", between: Some(name.as_bytes()), variable: b"ignore" };
            more.add(setting, Some(b"all"));
        }
        more
    }

    fn add(&mut self, name: Name, value: Option<&[u8]>) {
        let text = &mut self.0;
        text.extend_from_slice(b"[");
        text.extend_from_slice(name.section);
        if let Some(between) = name.between {
            text.push(b' ');
            quote(text, between);
        }
        text.extend_from_slice(b"]\n\t");
        text.extend_from_slice(name.variable);
        if let Some(value) = value {
            text.extend_from_slice(b" = ");
            quote(text, value);
        }
        text.push(b'\n');
    }
}

fn quote(text: &mut Vec<u8>, words: &[u8]) {
    text.push(b'"');
    for byte in words {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            _ => text.push(*byte),
        }
    }
    text.push(b'"');
}

/// The name of a setting. What stands between may hold dots.
#[derive(Clone, Copy)]
struct Name<'a> {
    section: &'a [u8],
    between: Option<&'a [u8]>,
    variable: &'a [u8],
}

impl<'a> Name<'a> {
    fn read(name: &'a [u8]) -> Option<Self> {
        let first = name.iter().position(|byte| *byte == b'.')?;
        let last = name.iter().rposition(|byte| *byte == b'.')?;
        let between = (first < last).then(|| &name[first + 1..last]);
        Some(Self { section: &name[..first], between, variable: &name[last + 1..] })
    }

    fn is_harmless(self) -> bool {
        let between = self.between.map_or("", |_| ".*");
        let (section, variable) = (String::from_utf8_lossy(self.section), String::from_utf8_lossy(self.variable));
        let name = format!("{section}{between}.{variable}");
        let is_extension = name.starts_with("extensions.") && !EXTENSIONS_PUT_ASIDE.contains(&name.as_str());
        is_extension || HARMLESS.contains(&name.as_str())
    }
}

/// Whether the repository's working tree is where it was found. Of one that has several, git asks this of none but the first.
fn is_as_it_seems(last: &BTreeMap<&[u8], &[u8]>, place: &Place) -> Result<(), Trouble> {
    if place.is_linked() {
        return Ok(());
    }
    let is_elsewhere = |value: &&[u8]| {
        let root = place.own.join(OsStr::from_bytes(value));
        !std::fs::canonicalize(root).is_ok_and(|root| root == place.root)
    };
    let refused =
        match (last.get(&b"core.worktree"[..]).copied().filter(is_elsewhere), last.get(&b"core.bare"[..]).copied()) {
            (Some(_), _) => "core.worktree",
            (None, Some(b"true" | b"yes" | b"on" | b"1")) => "core.bare",
            _ => return Ok(()),
        };
    let root = place.root.display();
    Err(Trouble::Failed(format!("by its setting '{refused}' the repository has no working tree at {root}: remove it")))
}

/// What the names of these folders begin with; then the process that uses it.
const STAND: &str = "flotilla-git-";
/// No call takes so long.
const OLD: Duration = Duration::from_secs(3600);

/// A folder in place of the git folder that a repository's working trees share: all of that by links, but for the settings and
/// hooks. It is there for one call.
pub struct Stand(PathBuf);

impl Stand {
    pub fn of(place: &Place, settings: &Settings) -> Result<Self, Trouble> {
        static SWEEP: Once = Once::new();
        let private = private();
        SWEEP.call_once(|| sweep(&private));
        let name = format!("{STAND}{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
        let folder = private.join(name);
        let made = Self(folder);
        let failed =
            |error| Trouble::Failed(format!("git cannot be given its settings in {}: {error}", made.0.display()));
        made.fill(&place.common, &settings.0).map_err(failed)?;
        Ok(made)
    }

    fn fill(&self, common: &Path, settings: &[u8]) -> std::io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(&self.0)?;
        let there = SHARED.iter().filter(|name| std::fs::symlink_metadata(common.join(name)).is_ok());
        for name in there {
            symlink(common.join(name), self.0.join(name))?;
        }
        std::fs::write(self.0.join("config"), settings)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        // Links go, and not what they lead to.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes away what a hub that was killed left there.
fn sweep(private: &Path) {
    for entry in std::fs::read_dir(private).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(STAND)?.split('-').next()?.parse::<u32>().ok());
        // The process may be one of another container.
        let is_old = || {
            entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| at.elapsed().unwrap_or_default() > OLD)
        };
        if process.is_some_and(|process| tree::find(process).is_none()) && is_old() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Where nobody but this user writes, and a program that is confined to a folder and `/tmp` does not either, if there is such.
fn private() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|folder| folder.is_absolute() && folder.is_dir()).unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::{Settings, Trouble};
    use crate::evidence::place::Place;

    fn place() -> Place {
        let own = std::path::PathBuf::from("/r/.git");
        Place { root: "/r".into(), common: own.clone(), own }
    }

    fn read(printed: &[u8]) -> Result<String, Trouble> {
        Settings::read(printed, &place()).map(|settings| String::from_utf8_lossy(&settings.0).into_owned())
    }

    #[test]
    fn what_is_harmless_counts_and_all_else_is_put_aside() {
        let printed = b"global\0merge.mine.driver\nmine %A\0local\0core.autocrlf\0local\0filter.a=b.c.clean\nevil\0\
            local\0user.name\nA \"B\" \\ C\nD\0local\0remote.a.b\"c.fetch\n+refs/*\0local\0remote.a.b\"c.fetch\n+x\0\
            local\0remote.o.uploadpack\nevil\0local\0gpg.program\nevil\0local\0branch.main.mergeoptions\n-s evil\0\
            local\0extensions.objectformat\nsha256\0local\0extensions.partialclone\no\0local\0what.ever\nx\0\
            worktree\0merge.x.driver\nevil %A\0worktree\0merge.mine.driver\nevil\0local\0filter.\xff.process\nevil\0\
            local\0core.bare\nfalse\0";
        let expected = "[core]\n\tautocrlf\n[user]\n\tname = \"A \\\"B\\\" \\\\ C\\nD\"\n\
            [remote \"a.b\\\"c\"]\n\tfetch = \"+refs/*\"\n[remote \"a.b\\\"c\"]\n\tfetch = \"+x\"\n\
            [extensions]\n\tobjectformat = \"sha256\"\n[merge \"x\"]\n\tdriver = \"false\"\n\
            [lfs]\n\tstorage = \"/r/.git/lfs\"\n";
        assert_eq!(read(printed).unwrap(), expected);
        assert_eq!(read(b"global\0lfs.storage\n/x\0").unwrap(), "");
    }

    #[test]
    fn what_a_process_that_is_gone_left_is_taken_away() {
        let private = tempfile::tempdir().unwrap();
        let own = format!("flotilla-git-{}-a", std::process::id());
        let names = [own.as_str(), "flotilla-git-4194305-a", "flotilla-git-4194305-b", "flotilla-github", "other"];
        for name in names {
            let folder = private.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let hours = if name.ends_with('a') { 2 } else { 0 };
            let at = std::time::SystemTime::now() - super::OLD * hours;
            std::fs::File::open(folder).unwrap().set_modified(at).unwrap();
        }
        super::sweep(private.path());
        let left = std::fs::read_dir(private.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<String> = left.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        let expected = ["flotilla-git-4194305-b", own.as_str(), "flotilla-github", "other"];
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }

    #[test]
    fn what_cannot_be_put_aside_is_refused_by_its_name() {
        let conditional = "local\0includeif.onbranch:flotilla/**.path\nevil\0";
        for (printed, name) in [
            (conditional, "includeif.onbranch:flotilla/**.path"),
            ("local\0core.worktree\n../elsewhere\0", "core.worktree"),
            ("local\0core.bare\ntrue\0", "core.bare"),
        ] {
            assert!(matches!(read(printed.as_bytes()), Err(Trouble::Failed(told)) if told.contains(name)), "{name}");
        }
        assert!(read(conditional.replace("local", "global").as_bytes()).is_ok());
    }
}
