//! Programs that a repository's own settings would have git start, and what stands in their place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// What a repository's settings come to: some are put aside, and one kind cannot be.
#[derive(Debug, PartialEq, Eq)]
pub enum Settings {
    /// These in place of the repository's own.
    Instead(BTreeMap<OsString, OsString>),
    /// The name of a setting that reads others under a condition, which may hold in the next call only.
    Conditional(String),
}

/// Reads what `git config --list --show-scope -z` prints. A run can write to its repository's settings, and git starts what
/// they say outside of everything the run is held to. The owner's own settings, and the machine's, count as they are.
pub fn settings(printed: &[u8]) -> Settings {
    let (mut owners, mut instead) = (BTreeMap::new(), BTreeMap::new());
    let pieces: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    for pair in pieces.chunks_exact(2) {
        let (scope, entry) = (pair[0], pair[1]);
        let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
        let (name, value) = (&entry[..end], entry.get(end + 1..).unwrap_or_default());
        let is_owners = matches!(scope, b"system" | b"global" | b"command");
        if !is_owners && name.starts_with(b"includeif.") {
            return Settings::Conditional(String::from_utf8_lossy(name).into_owned());
        }
        let Some(nothing) = instead_of(&String::from_utf8_lossy(name)) else { continue };
        // A name need not be text, and is put aside all the same.
        let name = OsString::from_vec(name.to_vec());
        if is_owners {
            owners.insert(name, OsString::from_vec(value.to_vec()));
        } else {
            instead.insert(name, OsString::from(nothing));
        }
    }
    for (name, value) in &mut instead {
        if let Some(owners) = owners.get(name) {
            value.clone_from(owners);
        }
    }
    Settings::Instead(instead)
}

/// What has git start no program; none of a setting that starts none anyway, or is overruled in every call.
fn instead_of(name: &str) -> Option<&'static str> {
    let (section, rest) = name.split_once('.')?;
    let (_, variable) = rest.rsplit_once('.')?;
    match (section, variable) {
        ("filter", "clean" | "smudge" | "process") => Some(""),
        // One that is not run cannot be missed; a file that wants a driver of the repository's is in conflict, and not
        // silently one side's.
        ("filter", "required") | ("merge", "driver") => Some("false"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Settings, settings};

    #[test]
    fn what_the_repository_would_start_is_put_aside_and_what_the_owner_would_is_not() {
        let printed = b"global\0filter.lfs.clean\ngit-lfs clean\0global\0merge.mine.driver\nmine %A\0\
            local\0filter.a=b.c.clean\nevil\0local\0filter.lfs.clean\nevil\0local\0filter.x.required\0\
            worktree\0merge.x.driver\nevil %A\0local\0core.bare\nfalse\0local\0filter.\xff.process\nevil\0";
        let Settings::Instead(instead) = settings(printed) else { panic!("no condition is there") };
        let told: Vec<String> = instead.iter().map(|(name, value)| format!("{name:?} {value:?}")).collect();
        let expected = [
            r#""filter.a=b.c.clean" """#,
            r#""filter.lfs.clean" "git-lfs clean""#,
            r#""filter.x.required" "false""#,
            r#""filter.\xFF.process" """#,
            r#""merge.x.driver" "false""#,
        ];
        assert_eq!(told, expected);
        let conditional = "local\0includeif.onbranch:flotilla/**.path\nevil\0";
        assert!(matches!(settings(conditional.as_bytes()), Settings::Conditional(_)));
        assert_eq!(settings(conditional.replace("local", "global").as_bytes()), Settings::Instead([].into()));
    }
}
