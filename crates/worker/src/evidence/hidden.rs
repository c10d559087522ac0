//! What git is told not to show: files that are marked in its index, and files that it ignores.

use super::git::{Git, Trouble, pieces};
use super::snapshot::{Print, Snapshot};
use super::tracked::Tracked;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::pin::Pin;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hidden {
    /// Files whose changes git does not look for (`assume-unchanged`, `skip-worktree`).
    pub marked: BTreeSet<String>,
    /// Files that git ignores; a folder that is ignored as a whole ends with `/`.
    pub ignored: BTreeSet<String>,
    /// Files that git knows.
    pub(super) tracked: Tracked,
    /// The rules of each repository, by its place.
    rules: BTreeMap<String, Rules>,
}

/// What has git overlook files or changes, and is no file of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rules {
    settings: Vec<u8>,
    /// `info/exclude`, and the file that the settings name.
    files: [Print; 2],
}

/// The settings that do so.
const OVERLOOK: &str = "^core\\.(excludesfile|attributesfile|filemode|symlinks|ignorecase|autocrlf|eol)$";
const EXCLUDES: &str = "core.excludesfile\n";

impl Rules {
    async fn of(taken: &Snapshot, git: &Git) -> Self {
        // Where none is set, git says no.
        let settings = git.ask(&["config", "--type=path", "-z", "--get-regexp", OVERLOOK]).await.unwrap_or_default();
        // The last one counts.
        let named = pieces(&settings).filter_map(|entry| entry.strip_prefix(EXCLUDES).map(PathBuf::from)).last();
        let usual = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".config/git/ignore"));
        let named = named.or_else(usual).unwrap_or_default();
        let files = [Print::of(&taken.common.join("info/exclude")), Print::of(&taken.root.join(named))];
        Self { settings, files }
    }
}

impl Hidden {
    /// Of a repository and those inside it.
    pub async fn take(taken: &Snapshot, git: &Git) -> Result<Self, Trouble> {
        let mut hidden = Self::default();
        hidden.add(taken, git, String::new()).await?;
        Ok(hidden)
    }

    fn add<'a>(
        &'a mut self,
        taken: &'a Snapshot,
        git: &'a Git,
        place: String,
    ) -> Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>> {
        Box::pin(async move {
            let own = git.at(&taken.root);
            let ignored = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
            let (known, ignored, rules) = tokio::join!(known(&own), own.ask(&ignored), Rules::of(taken, &own));
            let (known, ignored) = (known?, ignored?);
            self.tracked.add(&place, &taken.root, known.keys());
            let marked = known.iter().filter(|(_, is_marked)| **is_marked);
            self.marked.extend(marked.map(|(file, _)| format!("{place}{file}")));
            self.ignored.extend(pieces(&ignored).map(|file| format!("{place}{file}")));
            self.rules.insert(place.clone(), rules);
            for (name, inner) in &taken.inner {
                self.add(inner, git, format!("{place}{name}/")).await?;
            }
            Ok(())
        })
    }

    /// Whether the rules of a repository that was there before are others now.
    pub fn has_other_rules(&self, before: &Self) -> bool {
        self.rules.iter().any(|(place, rules)| before.rules.get(place).is_some_and(|known| known != rules))
    }
}

/// Files of the index, and whether git believes that in their place.
async fn known(git: &Git) -> Result<BTreeMap<String, bool>, Trouble> {
    let is_marked = |tag: &str| tag.eq_ignore_ascii_case("s") || tag.starts_with(|tag: char| tag.is_ascii_lowercase());
    let printed = git.ask(&["ls-files", "-v", "-z"]).await?;
    let file = |piece: String| piece.split_once(' ').map(|(tag, file)| (file.to_owned(), is_marked(tag)));
    Ok(pieces(&printed).filter_map(file).collect())
}
