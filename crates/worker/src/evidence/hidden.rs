//! What git is told not to show: files that are marked in its index, and files that it ignores.

use super::git::{Git, Trouble, pieces};
use super::snapshot::{Print, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hidden {
    /// Files whose changes git does not look for (`assume-unchanged`, `skip-worktree`).
    pub marked: BTreeSet<String>,
    /// Files that git ignores; a folder that is ignored as a whole ends with `/`.
    pub ignored: BTreeSet<String>,
    /// The rules that are not a file of the repository (`info/exclude`), by its place.
    rules: BTreeMap<String, Print>,
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
            let (marked, ignored) = tokio::try_join!(marked(&own), own.ask(&ignored))?;
            self.marked.extend(marked.iter().map(|file| format!("{place}{file}")));
            self.ignored.extend(pieces(&ignored).map(|file| format!("{place}{file}")));
            self.rules.insert(place.clone(), Print::of(&taken.common.join("info/exclude")));
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

/// Files in whose place git believes its index, below the folder it is asked in.
pub async fn marked(git: &Git) -> Result<BTreeSet<String>, Trouble> {
    let is_marked = |tag: &str| tag.eq_ignore_ascii_case("s") || tag.starts_with(|tag: char| tag.is_ascii_lowercase());
    let printed = git.ask(&["ls-files", "-v", "-z"]).await?;
    let file = |piece: String| piece.split_once(' ').filter(|(tag, _)| is_marked(tag)).map(|(_, file)| file.to_owned());
    Ok(pieces(&printed).filter_map(file).collect())
}
