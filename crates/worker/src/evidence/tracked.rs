//! Files that git knows, as the file system has them: a run can have git take a changed one for an unchanged one.

use super::git::{Git, Trouble, pieces};
use super::snapshot::{Print, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::Pin;

/// How many files git is asked about at once.
const AT_ONCE: usize = 500;

/// Those of a repository and of the ones inside it, by their paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracked(BTreeMap<String, Print>);

type Looking<'a> = Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>>;

impl Tracked {
    /// Takes in the files of the repository at this place.
    pub fn add<'a>(&mut self, place: &str, root: &Path, files: impl Iterator<Item = &'a String>) {
        self.0.extend(files.map(|file| (format!("{place}{file}"), Print::of(&root.join(file)))));
    }

    /// Files that were touched since, that git calls unchanged, and whose content is not what it has of them. It believes
    /// its index, and what stood there while a filter or another setting was in force stays when that is gone.
    pub async fn belied(&self, before: &Self, taken: &Snapshot, git: &Git) -> Result<BTreeSet<String>, Trouble> {
        let touched = self.0.iter().filter(|(file, print)| print.is_file() && before.0.get(*file) != Some(print));
        let touched: BTreeSet<&str> = touched.map(|(file, _)| file.as_str()).collect();
        let mut found = BTreeSet::new();
        if !touched.is_empty() {
            look(&touched, taken, git, "", &mut found).await?;
        }
        Ok(found)
    }
}

fn look<'a>(
    touched: &'a BTreeSet<&'a str>,
    taken: &'a Snapshot,
    git: &'a Git,
    place: &'a str,
    found: &'a mut BTreeSet<String>,
) -> Looking<'a> {
    Box::pin(async move {
        let is_inside = |file: &str| taken.inner.keys().any(|name| below(file, name));
        let own = touched.iter().filter_map(|file| file.strip_prefix(place));
        let own: Vec<&str> = own.filter(|file| !taken.dirty.contains_key(*file) && !is_inside(file)).collect();
        let there = git.at(&taken.root);
        for files in own.chunks(AT_ONCE) {
            let listed =
                there.ask(&[&["--literal-pathspecs", "ls-files", "--stage", "-z", "--"], files].concat()).await?;
            let known: BTreeMap<String, String> = pieces(&listed).filter_map(|entry| stage(&entry)).collect();
            let mut files: Vec<&str> = known.keys().map(String::as_str).collect();
            // As it is first: git has files that it would convert if they were added now.
            for how in [&["hash-object", "--no-filters", "--"][..], &["hash-object", "--"]] {
                let ids = ids(&files, how, &there).await;
                let pairs = files.into_iter().zip(ids);
                files = pairs.filter(|(file, id)| known.get(*file) != Some(id)).map(|(file, _)| file).collect();
            }
            found.extend(files.into_iter().map(|file| format!("{place}{file}")));
        }
        for (name, inner) in &taken.inner {
            look(touched, inner, git, &format!("{place}{name}/"), found).await?;
        }
        Ok(())
    })
}

/// What git would have of each file; nothing of one that cannot be read.
async fn ids(files: &[&str], how: &[&str], git: &Git) -> Vec<String> {
    if files.is_empty() {
        return Vec::new();
    }
    if let Ok(printed) = git.ask(&[how, files].concat()).await {
        return String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect();
    }
    let mut ids = Vec::new();
    for file in files {
        ids.push(git.line(&[how, &[*file]].concat()).await.unwrap_or_default());
    }
    ids
}

fn below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The file and what it holds, of a line of the index: `MODE ID STAGE<tab>FILE`. None of what is no plain file.
fn stage(entry: &str) -> Option<(String, String)> {
    let (facts, file) = entry.split_once('\t')?;
    let id = facts.strip_prefix("100")?.split(' ').nth(1)?;
    Some((file.to_owned(), id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{below, stage};

    #[test]
    fn plain_files_of_the_index_are_read() {
        assert_eq!(stage("100644 aaaa 0\ta b\tc"), Some(("a b\tc".into(), "aaaa".into())));
        assert_eq!(stage("100755 bbbb 0\tx"), Some(("x".into(), "bbbb".into())));
        assert_eq!((stage("120000 cccc 0\tlink"), stage("160000 dddd 0\tmodule")), (None, None));
    }

    #[test]
    fn a_folder_is_not_whatever_begins_as_it_does() {
        assert!(below("in/a", "in") && !below("inside", "in") && !below("in", "in"));
    }
}
