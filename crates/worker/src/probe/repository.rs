//! What tells the repository an agent works in from others, so that the hub sees where those that change files would meet.

use crate::evidence::git::Git;
use crate::evidence::snapshot::Snapshot;
use std::path::Path;
use uuid::Uuid;

/// No longer address is announced.
const LONGEST: usize = 1024;

/// The address of its origin, which is the same for all copies; of one that has none elsewhere, its place here.
pub(super) async fn name(seen: &Snapshot, git: &Git) -> String {
    // Git says no where there is none.
    let origin = git.line(&["config", "--get", "remote.origin.url"]).await.unwrap_or_default();
    address(&origin).unwrap_or_else(|| place(&machine(), &seen.common))
}

/// An address without what is secret in it; none if it leads to a folder, which other machines may have too.
fn address(origin: &str) -> Option<String> {
    let origin = origin.trim();
    let shown = match origin.split_once("://") {
        Some(("file", _)) => return None,
        Some((scheme, rest)) => {
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}/{path}")
        }
        None => {
            let (host, path) = origin.split_once(':').filter(|(host, _)| host.len() > 1 && !host.contains('/'))?;
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{host}:{path}")
        }
    };
    (shown.len() <= LONGEST).then_some(shown)
}

/// A folder of a machine, without saying which they are.
fn place(machine: &str, folder: &Path) -> String {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = [machine.as_bytes(), folder.as_os_str().as_encoded_bytes()].join(&0);
    format!("folder:{}", Uuid::new_v5(&Uuid::NAMESPACE_URL, &name))
}

/// The same for all programs of a machine. Many are made from one image and have its number, or are called alike.
fn machine() -> String {
    let number = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    format!("{} {}", number.trim(), rustix::system::uname().nodename().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::{address, place};
    use std::path::Path;

    #[test]
    fn an_address_is_told_without_its_secrets() {
        for (origin, told) in [
            ("https://me:secret@x.example/team/repo.git?token=secret", Some("https://x.example/team/repo.git")),
            ("ssh://git@x.example:2222/team/repo", Some("ssh://x.example:2222/team/repo")),
            ("git@x.example:team/repo.git\n", Some("x.example:team/repo.git")),
            ("", None),
            ("../repo.git", None),
            ("/srv/repo:old", None),
            ("file:///srv/repo", None),
        ] {
            assert_eq!(address(origin).as_deref(), told, "{origin}");
        }
        assert_eq!(address(&format!("https://x/{}", "y".repeat(5000))), None);
    }

    #[test]
    fn a_folder_is_told_from_others_and_from_those_of_other_machines() {
        let own = place("a", Path::new("/nowhere/repo"));
        assert_eq!(own, place("a", Path::new("/nowhere/repo")));
        assert_ne!(own, place("a", Path::new("/nowhere/other")));
        assert_ne!(own, place("b", Path::new("/nowhere/repo")));
        assert!(!own.contains("nowhere"), "{own}");
    }
}
