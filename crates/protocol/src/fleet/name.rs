//! Names of MCP servers and tools as people write them: `-` and `_` are the same, and a few words stand for several tools.

/// What a name is compared by.
pub fn folded(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

pub fn same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// Words for tools, and the names coding agents have for them. Having one of each list is having the tool: whoever can
/// only read files, or only write them, does not have `file`.
const TOOLS: [(&str, &[&[&str]]); 6] = [
    ("terminal", &[&["bash", "shell", "exec", "run_command", "powershell"]]),
    (
        "file",
        &[&["read", "read_file", "edit", "multiedit"], &["edit", "multiedit", "write", "write_file", "apply_patch"]],
    ),
    ("patch", &[&["edit", "multiedit", "apply_patch", "str_replace"]]),
    ("search", &[&["grep", "glob", "ls", "find"]]),
    ("browser", &[&["web_browser", "playwright", "puppeteer", "browser_navigate"]]),
    ("web", &[&["webfetch", "websearch", "web_fetch", "web_search"]]),
];

/// Whether a worker that has these tools has what a requirement names.
pub fn has_tool(tools: &[String], wanted: &str) -> bool {
    let wanted = folded(wanted);
    let tools: Vec<String> = tools.iter().map(|tool| folded(tool)).collect();
    let one_of = |names: &&[&str]| names.iter().any(|name| tools.iter().any(|tool| tool == name));
    // Either side may use the word, or names it stands for.
    let by_names = |word: &str, lists: &[&[&str]]| word == wanted && lists.iter().all(one_of);
    let by_word = |word: &str, lists: &[&[&str]]| {
        tools.iter().any(|tool| tool == word) && lists.iter().any(|names| names.contains(&wanted.as_str()))
    };
    tools.contains(&wanted) || TOOLS.iter().any(|(word, lists)| by_names(word, lists) || by_word(word, lists))
}

/// What a repository is told from others by: its host and path, however its address is written.
pub fn repository(address: &str) -> String {
    let address = address.trim();
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, address),
    };
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix(".git").unwrap_or(rest).trim_end_matches('/');
    let (host, path) = match rest.split_once(if scheme.is_some() { '/' } else { ':' }) {
        // A folder of this machine, or a drive.
        Some((host, path)) if host.len() > 1 && !host.contains('/') => (host, path),
        _ => return rest.to_owned(),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_lowercase();
    let host = scheme.and_then(usual_port).and_then(|port| host.strip_suffix(port)).unwrap_or(&host);
    format!("{host}/{}", path.trim_start_matches('/'))
}

/// The port that is meant where an address names none.
fn usual_port(scheme: &str) -> Option<&'static str> {
    match scheme.to_lowercase().as_str() {
        "ssh" | "git+ssh" | "ssh+git" => Some(":22"),
        "https" => Some(":443"),
        "http" => Some(":80"),
        "git" => Some(":9418"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{has_tool, repository, same};

    #[test]
    fn a_repository_is_the_same_however_its_address_is_written() {
        for address in [
            "git@X:team/repo",
            "git@x:team/repo.git",
            "ssh://git@x/team/repo.git/",
            "ssh://git@x:22/team/repo",
            "https://me:k@x/team/repo",
            "HTTPS://x:443/team/repo",
            "git://x:9418/team/repo",
        ] {
            assert_eq!(repository(address), "x/team/repo", "{address}");
        }
        assert_eq!(repository("ssh://git@x:2222/team/repo"), "x:2222/team/repo", "another server of the same machine");
        for (one, other) in [("git@x:a", "git@x:b"), ("git@x:a", "git@y:a"), ("/srv/a", "/srv/a2"), ("C:/a", "D:/a")] {
            assert_ne!(repository(one), repository(other));
        }
        assert_eq!((repository("/srv/repo/"), repository("repo")), ("/srv/repo".into(), "repo".into()));
    }

    #[test]
    fn dashes_and_underscores_are_the_same() {
        assert!(same("context-mode", "Context_Mode"));
        assert!(!same("context-mode", "contextmode"));
    }

    #[test]
    fn words_stand_for_tools() {
        let tools = vec!["Bash".to_owned(), "Read".to_owned()];
        for (wanted, expected) in
            [("terminal", true), ("file", false), ("bash", true), ("browser", false), ("Edit", false)]
        {
            assert_eq!(has_tool(&tools, wanted), expected, "{wanted}");
        }
        for (tools, expected) in [(["Read", "Write"], true), (["Bash", "Edit"], true), (["Bash", "Write"], false)] {
            assert_eq!(has_tool(&tools.map(str::to_owned), "file"), expected, "{tools:?}");
        }
        let words = vec!["terminal".to_owned(), "file".to_owned()];
        assert!(has_tool(&words, "terminal") && has_tool(&words, "Bash") && has_tool(&words, "Edit"));
        assert!(!has_tool(&words, "grep"));
    }
}
