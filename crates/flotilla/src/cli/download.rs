//! `flotilla task download`: a task's artifacts as files.

use super::asking;
use super::failure::Failure;
use super::output::{Text, document, say, warn};
use super::pretty::pretty;
use super::session::{Session, quoted};
use clap::Args;
use flotilla_outbound::client::Client;
use flotilla_protocol::a2a::model::{Artifact, Part, Task};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The longest name of a file, and the longest ending that is kept when one is cut.
const LONGEST: usize = 120;
const ENDING: usize = 12;

#[derive(Debug, Args)]
pub struct Download {
    /// The task's id
    id: String,
    /// Where to put the files
    #[arg(long, short = 'd', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Only this artifact, by its id or name (may be repeated)
    #[arg(long, value_name = "ARTIFACT")]
    artifact: Vec<String>,
    /// Overwrite files that are there
    #[arg(long)]
    force: bool,
}

impl Download {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The words that do the same again.
    pub fn words(&self) -> String {
        let mut words = format!("task download {}", quoted(&self.id));
        if self.dir != Path::new(".") {
            words.push_str(&format!(" --dir {}", quoted(&self.dir.display().to_string())));
        }
        self.artifact.iter().for_each(|artifact| words.push_str(&format!(" --artifact {}", quoted(artifact))));
        if self.force {
            words.push_str(" --force");
        }
        words
    }

    pub async fn run(self, session: &Session, client: &Client) -> Result<(), Failure> {
        let task = client.task(asking::request(&self.id, Some(0))).await?;
        let files = self.files(&task.value)?;
        std::fs::create_dir_all(&self.dir).map_err(|error| problem(&self.dir, &error))?;
        self.check_free(&files)?;
        let mut text = Text::default();
        text.field("Task", &task.value.id).field("Context", &task.value.context_id);
        text.field("State", task.value.status.state.name());
        for (count, (path, bytes)) in files.iter().enumerate() {
            self.write(path, bytes).map_err(|failure| failure.after_files(count))?;
            let saved = format!("{} ({} bytes)", path.display(), bytes.len());
            if session.is_json() {
                // The document is the agent's.
                say(&format!("Saved: {saved}"));
            }
            text.field("Saved", &saved);
        }
        if files.is_empty() {
            warn("the task has no artifacts to save");
        }
        if session.is_json() {
            document(&task.json)
        } else {
            text.print()
        }
        Ok(())
    }

    fn wanted(&self, artifact: &Artifact) -> bool {
        let named = |name: &String| *name == artifact.artifact_id || *name == artifact.name;
        self.artifact.is_empty() || self.artifact.iter().any(named)
    }

    /// Every part of every wanted artifact with the name it gets.
    fn files(&self, task: &Task) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
        let artifacts: Vec<_> = task.artifacts.iter().flatten().filter(|artifact| self.wanted(artifact)).collect();
        if artifacts.is_empty() && !self.artifact.is_empty() {
            let there: Vec<&str> =
                task.artifacts.iter().flatten().map(|artifact| artifact.artifact_id.as_str()).collect();
            let text = format!("the task has no artifact {}", self.artifact.join(", "));
            return Err(Failure::usage(text).hint(format!("it has: {}", there.join(", "))));
        }
        let mut taken = BTreeSet::new();
        let mut files = Vec::new();
        for artifact in artifacts {
            for (index, part) in artifact.parts.iter().enumerate() {
                if let Some(url) = &part.url {
                    warn(&format!("artifact {} refers to {url}, which is not fetched", artifact.artifact_id));
                    continue;
                }
                let (bytes, ending) = content(part);
                let name = free_name(&name(artifact, part, index, ending), &mut taken);
                files.push((self.dir.join(name), bytes));
            }
        }
        Ok(files)
    }

    /// Nothing is written unless all of it can be.
    fn check_free(&self, files: &[(PathBuf, Vec<u8>)]) -> Result<(), Failure> {
        let there = |(path, _): &&(PathBuf, Vec<u8>)| path.symlink_metadata().is_ok();
        match files.iter().find(there).filter(|_| !self.force) {
            Some((path, _)) => Err(in_the_way(path)),
            None => Ok(()),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true);
        if self.force {
            // Whose name the agent chose must not lead elsewhere.
            if path.is_symlink() {
                std::fs::remove_file(path).map_err(|error| problem(path, &error))?;
            }
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let opened = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => in_the_way(path),
            _ => problem(path, &error),
        });
        std::io::Write::write_all(&mut opened?, bytes).map_err(|error| problem(path, &error))
    }
}

fn in_the_way(path: &Path) -> Failure {
    let failure = Failure::usage(format!("{} is there already", path.display()));
    failure.hint("choose another --dir, or overwrite with --force")
}

fn problem(path: &Path, error: &std::io::Error) -> Failure {
    Failure::internal(format!("{} cannot be written: {error}", path.display())).hint("choose another place with --dir")
}

/// A part's bytes, and the ending its kind implies.
fn content(part: &Part) -> (Vec<u8>, &'static str) {
    match (&part.text, &part.data.0, &part.raw) {
        (Some(text), ..) => (text.clone().into_bytes(), "txt"),
        (_, Some(data), _) => (format!("{}\n", pretty(data.text())).into_bytes(), "json"),
        (_, _, Some(raw)) => (raw.decode(), "bin"),
        _ => (serde_json::to_vec(part).unwrap_or_default(), "json"),
    }
}

/// The name the agent gave, as a plain file name: it must not lead out of the directory, or be taken for an option.
fn name(artifact: &Artifact, part: &Part, index: usize, ending: &str) -> String {
    let given = part.filename.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe = |text: &str| -> String {
        let keep = |c: char| if c.is_alphanumeric() || "-_. ".contains(c) { c } else { '_' };
        short(text.chars().map(keep).collect::<String>().trim_start_matches(['.', ' ', '-']))
    };
    let given = safe(given);
    if !given.is_empty() {
        return given;
    }
    let label = if artifact.name.is_empty() { &artifact.artifact_id } else { &artifact.name };
    let number = if artifact.parts.len() > 1 { format!("-{}", index + 1) } else { String::new() };
    let label = safe(label);
    let label = if label.is_empty() { "artifact".to_owned() } else { label };
    format!("{label}{number}.{ending}")
}

/// A name that every file system takes, with the ending that tells what it is.
fn short(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let ending =
        if ending.is_empty() || ending.chars().count() > ENDING { String::new() } else { format!(".{ending}") };
    match name.chars().count() > LONGEST {
        true => name.chars().take(LONGEST - ending.chars().count()).chain(ending.chars()).collect(),
        false => name.to_owned(),
    }
}

/// Two parts of one name do not become one file.
fn free_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let (stem, ending) = name.rsplit_once('.').map_or((name, String::new()), |(stem, end)| (stem, format!(".{end}")));
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{stem}-{number}{ending}");
        number += 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::{free_name, name};
    use flotilla_protocol::a2a::model::{Artifact, Part};
    use std::collections::BTreeSet;

    #[test]
    fn names_stay_in_their_directory_and_apart() {
        let artifact = Artifact { artifact_id: "a/1".into(), parts: vec![Part::default(); 2], ..Artifact::default() };
        let named = |filename: &str| name(&artifact, &Part { filename: filename.into(), ..Part::default() }, 1, "bin");
        assert_eq!(named("../../etc/passwd"), "passwd");
        assert_eq!(named("..\\.profile"), "profile");
        assert_eq!(named("-rf"), "rf");
        assert_eq!(named(&format!("{}.tar", "x".repeat(400))), format!("{}.tar", "x".repeat(116)));
        assert_eq!(named(&"é".repeat(121)), "é".repeat(120));
        assert_eq!(named(""), "a_1-2.bin");
        let mut taken = BTreeSet::new();
        assert_eq!([(); 3].map(|()| free_name("x.txt", &mut taken)), ["x.txt", "x-2.txt", "x-3.txt"]);
    }
}
