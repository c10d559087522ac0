//! Where Claude Code has its MCP servers from: its own file, those of the project, and that of the machine.

use super::{Servers, variable};
use crate::probe::mcp::definition::{self, Definition};
use serde_json::Value;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// The file of the machine's administrator; where it is, no other counts.
const MANAGED: &str = "/etc/claude-code/managed-mcp.json";
/// No file of this size is one of its.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Which of its settings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    pub user: bool,
    pub project: bool,
    pub local: bool,
}

impl Sources {
    /// Nearer ones count more: those of its user for this folder, those of the folder, those of its user.
    pub(super) fn servers(self, folder: &Path, environment: &[(OsString, OsString)]) -> Servers {
        let in_file = |file: &Value| definition::all(&file["mcpServers"], environment);
        if let Some(managed) = read(Path::new(MANAGED)) {
            return in_file(&managed);
        }
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let home = variable(environment, "HOME").map(Path::new);
        let settled = variable(environment, "CLAUDE_CONFIG_DIR").map(Path::new);
        let own = settled.or(home).and_then(|place| read(&place.join(".claude.json"))).unwrap_or_default();
        let here = of_folder(&own, &folder);
        let mut found = Servers::new();
        if self.user {
            found.extend(in_file(&own));
        }
        if self.project {
            let settings = settled.map(Path::to_owned).or_else(|| home.map(|home| home.join(".claude")));
            let rejected = self.rejected(settings.as_deref(), &folder, here);
            let above: Vec<&Path> = folder.ancestors().collect();
            for place in above.into_iter().rev() {
                let listed = read(&place.join(".mcp.json")).unwrap_or_default();
                found.extend(in_file(&listed).into_iter().filter(|(name, _)| !rejected.contains(name)));
            }
        }
        if self.local {
            found.extend(in_file(here));
        }
        for name in names(&here["disabledMcpServers"]) {
            found.entry(name).and_modify(|server| *server = Definition::Disabled);
        }
        found
    }

    /// Servers of the project that its user does not want. All others are started without a question, as nobody is there.
    fn rejected(self, settings: Option<&Path>, folder: &Path, here: &Value) -> HashSet<String> {
        let user = settings.filter(|_| self.user).map(|place| place.join("settings.json"));
        let project = Some(folder.join(".claude/settings.json"));
        let local = Some(folder.join(".claude/settings.local.json")).filter(|_| self.local);
        let files = user.into_iter().chain(project).chain(local).filter_map(|file| read(&file));
        let in_files = files.flat_map(|file| names(&file["disabledMcpjsonServers"]));
        in_files.chain(names(&here["disabledMcpjsonServers"])).collect()
    }
}

/// What its own file says of a folder, which goes by the repository it is in.
fn of_folder<'a>(own: &'a Value, folder: &Path) -> &'a Value {
    let repository = folder.ancestors().find(|above| above.join(".git").exists());
    let known = |place: &Path| own["projects"].get(place.to_str()?);
    repository.and_then(known).or_else(|| known(folder)).unwrap_or(&Value::Null)
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A run may write to these, so it may be anything.
fn read(file: &Path) -> Option<Value> {
    std::fs::metadata(file).ok().filter(|facts| facts.is_file() && facts.len() <= LARGEST)?;
    let text = std::fs::read(file).ok()?;
    serde_json::from_slice(&text).map_err(|error| tracing::debug!(file = %file.display(), %error, "no settings")).ok()
}

#[cfg(test)]
mod tests {
    use super::{Definition, Servers, Sources};
    use std::path::Path;

    const ALL: Sources = Sources { user: true, project: true, local: true };

    fn told(servers: &Servers) -> String {
        let one = |(name, server): (&String, &Definition)| match server {
            Definition::Stdio(program) => format!("{name}={}", program.command),
            other => format!("{name}={other:?}"),
        };
        servers.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn list(servers: &[(&str, &str)]) -> String {
        let one = |(name, command): &(&str, &str)| format!(r#""{name}":{{"command":"{command}"}}"#);
        format!(r#""mcpServers":{{{}}}"#, servers.iter().map(one).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn nearer_settings_count_more_and_those_that_are_left_out_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        let (home, folder) = (root.join("home"), root.join("project/below"));
        let write = |file: &Path, text: String| {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(root.join("project/.git")).unwrap();
        let user = list(&[("a", "user"), ("b", "user"), ("off", "user")]);
        let local = list(&[("b", "local"), ("l", "local")]);
        let project = root.join("project").display().to_string();
        let own = format!(r#"{{{user},"projects":{{"{project}":{{{local},"disabledMcpServers":["off"]}}}}}}"#);
        write(&home.join(".claude.json"), own);
        write(&root.join("project/.mcp.json"), format!("{{{}}}", list(&[("p", "far"), ("q", "far"), ("no", "far")])));
        write(&folder.join(".mcp.json"), format!("{{{}}}", list(&[("q", "near"), ("a", "near")])));
        write(&folder.join(".claude/settings.local.json"), r#"{"disabledMcpjsonServers":["no"]}"#.into());
        let environment = [("HOME".into(), home.clone().into_os_string())];
        let seen = |sources: Sources| told(&sources.servers(&folder, &environment));
        assert_eq!(seen(ALL), "a=near b=local l=local off=Disabled p=far q=near");
        assert_eq!(seen(Sources { project: false, local: false, ..ALL }), "a=user b=user off=Disabled");
        let moved = [environment[0].clone(), ("CLAUDE_CONFIG_DIR".into(), root.join("other").into_os_string())];
        assert_eq!(told(&ALL.servers(&folder, &moved)), "a=near p=far q=near", "it was told to look elsewhere");
        std::fs::write(home.join(".claude.json"), "{").unwrap();
        assert_eq!(seen(ALL), "a=near p=far q=near", "one that cannot be read has none");
    }
}
