//! Names of MCP servers and tools as people write them: `-` and `_` are the same, and a few words stand for several tools.

/// What a name is compared by.
pub fn folded(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

pub fn same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// Words for tools, and the names coding agents have for them. Having one of them is having the tool.
const TOOLS: [(&str, &[&str]); 6] = [
    ("terminal", &["bash", "shell", "exec", "run_command", "powershell"]),
    ("file", &["read", "edit", "write", "multiedit", "read_file", "write_file"]),
    ("patch", &["edit", "multiedit", "apply_patch", "str_replace"]),
    ("search", &["grep", "glob", "ls", "find"]),
    ("browser", &["web_browser", "playwright", "puppeteer", "browser_navigate"]),
    ("web", &["webfetch", "websearch", "web_fetch", "web_search"]),
];

/// Whether a worker that has these tools has what a requirement names.
pub fn has_tool(tools: &[String], wanted: &str) -> bool {
    let wanted = folded(wanted);
    let names = |word: &str, name: &str| TOOLS.iter().any(|(known, others)| *known == word && others.contains(&name));
    // Either side may use the word, or one of the names it stands for.
    tools.iter().map(|tool| folded(tool)).any(|tool| tool == wanted || names(&wanted, &tool) || names(&tool, &wanted))
}

#[cfg(test)]
mod tests {
    use super::{has_tool, same};

    #[test]
    fn dashes_and_underscores_are_the_same() {
        assert!(same("context-mode", "Context_Mode"));
        assert!(!same("context-mode", "contextmode"));
    }

    #[test]
    fn words_stand_for_tools() {
        let tools = vec!["Bash".to_owned(), "Read".to_owned()];
        for (wanted, expected) in
            [("terminal", true), ("file", true), ("bash", true), ("browser", false), ("Edit", false)]
        {
            assert_eq!(has_tool(&tools, wanted), expected, "{wanted}");
        }
        let words = vec!["terminal".to_owned(), "file".to_owned()];
        assert!(has_tool(&words, "terminal") && has_tool(&words, "Bash") && has_tool(&words, "Edit"));
        assert!(!has_tool(&words, "grep"));
    }
}
