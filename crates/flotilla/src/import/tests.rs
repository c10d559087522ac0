//! Setups as their users have them, and what becomes of them.

use super::{Draft, fleet, hermes};
use crate::config::Config;
use std::path::Path;
use tempfile::TempDir;

fn place(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// The configuration as a hub would read it; no word of a secret is in it or in the report.
fn config(draft: &Draft, secrets: &[&str]) -> Config {
    let yaml = draft.yaml().unwrap();
    let all = format!("{yaml}\n{}\n{}", draft.todo.join("\n"), draft.left.join("\n"));
    for secret in secrets {
        assert!(!all.contains(secret), "{secret} is told: {all}");
    }
    let config = Config::parse(&yaml).unwrap();
    config.check().unwrap();
    config
}

fn told(lines: &[String], words: &[&str]) {
    let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(found, "no line with {words:?} in {lines:#?}");
}

const COMPOSER: &str = "
id: composer
name: Composer
description: Writes music.
role: musician
transports:
  a2a_rpc: {protocol: google-a2a, url: 'https://composer.example/a2a', auth: {type: bearer, token: swordfish-1}}
  agent_card: {protocol: google-a2a-agent-card, url: 'https://composer.example', path: /.well-known/agent.json}
  hermes_webhook: {protocol: hermes-webhook, url: 'http://127.0.0.1:8644/webhooks/x', auth: {type: hmac-sha256, secret: swordfish-2}}
platforms: {telegram: {bot_token: swordfish-3, default_chat_id: 7}}
metadata: {source: a2a_discover, skills: [{name: s, description: d}]}
";

#[test]
fn folders_of_hermes_become_agents_without_their_secrets() {
    let odd = "{name: 'Odd One', transports: {a2a_rpc: {url: 'http://10.0.0.7:8081/'}, agent_card: {url: 'http://10.0.0.7:8081', path: /cards/odd.json}}}";
    let keyed = "{a2a_url: 'http://h.example:1', transports: {a2a_rpc: {auth: {type: api_key, value_env: KEYED, header: X-Team}}}}";
    let home = place(&[
        ("fleet/a2a/agents/composer/identity.yaml", COMPOSER),
        ("fleet/a2a/agents/odd/identity.yaml", odd),
        ("fleet/a2a/agents/keyed/identity.yaml", keyed),
        ("fleet/a2a/agents/old/identity.yaml", "{a2a_url: 'http://o.example', auth_token: '${OLD_TOKEN}'}"),
        (
            "fleet/a2a/agents/chat/identity.yaml",
            "{webhook_url: 'http://127.0.0.1:8644/x', webhook_secret: swordfish-4}",
        ),
        ("fleet/a2a/agents/tasks/identity.yaml", "{a2a_url: 'http://t.example'}"),
        (
            "fleet/a2a/agents/topped/identity.yaml",
            "{a2a_url: 'http://p.example', auth: {type: bearer, token: swordfish-7}}",
        ),
        ("fleet/a2a/agents/broken/identity.yaml", "{name: swordfish-5"),
        (
            "profiles/britney/a2a/vault.yaml",
            "{agents: {mailer: {a2a_url: 'http://m.example', auth_token: swordfish-6}}}",
        ),
    ]);
    let draft = hermes::import(home.path()).unwrap();
    let config = config(&draft, &["swordfish"]);
    assert_eq!(config.agent_names(), ["composer", "keyed", "mailer", "odd-one", "old", "topped"]);
    let shown = draft.yaml().unwrap();
    for line in [
        "url: https://composer.example",
        "bearer: env:COMPOSER_TOKEN",
        "card: http://10.0.0.7:8081/cards/odd.json",
        "value: env:KEYED",
        "bearer: env:OLD_TOKEN",
        "bearer: env:MAILER_TOKEN",
        "description: Writes music.",
    ] {
        assert!(shown.replace(['"', '\''], "").contains(line), "no {line} in {shown}");
    }
    told(&draft.todo, &["composer", "was not copied", "COMPOSER_TOKEN"]);
    told(&draft.todo, &["KEYED", "set it for the hub"]);
    told(&draft.left, &["composer", "hermes_webhook"]);
    told(&draft.left, &["composer", "platforms"]);
    told(&draft.left, &["chat", "no A2A address"]);
    told(&draft.left, &["tasks"]);
    told(&draft.left, &["broken", "no YAML"]);
    told(&draft.left, &["topped", "auth at the top", "by hand"]);
    for below in ["fleet", "fleet/a2a", "fleet/a2a/agents"] {
        assert!(hermes::import(&home.path().join(below)).is_ok(), "{below} is a place to start from too");
    }
}

#[test]
fn an_address_that_is_called_is_not_where_a_card_is() {
    let file = |url: &str| format!("{{transports: {{a2a_rpc: {{url: '{url}'}}}}}}");
    for (url, read, told) in [
        ("http://h.example:1/rpc", "http://h.example:1", None),
        ("http://h.example/", "http://h.example", None),
        ("http://rpc", "http://rpc", None),
        (
            "https://h.example/agents/x/jsonrpc/",
            "https://h.example/agents/x",
            Some("below https://h.example/agents/x,"),
        ),
        ("https://h.example/a2a", "https://h.example/a2a", Some("'card: URL'")),
    ] {
        let home = place(&[("agents/one/identity.yaml", &file(url))]);
        let draft = hermes::import(home.path()).unwrap();
        let settings = draft.settings().next().map(|(_, settings)| settings["url"].clone());
        assert_eq!(settings, Some(read.into()), "{url}");
        assert_eq!(draft.todo.len(), told.iter().len(), "{url}: {:?}", draft.todo);
        assert!(told.is_none_or(|told| draft.todo[0].contains(told)), "{url}: {:?}", draft.todo);
    }
}

#[test]
fn of_agents_of_one_name_the_report_says_which_file_was_taken() {
    let home = place(&[
        ("fleet/a2a/agents/mailer/identity.yaml", "{webhook_url: 'http://127.0.0.1:8644/x'}"),
        ("fleet/a2a/agents/writer/identity.yaml", "{a2a_url: 'http://w.example'}"),
        (
            "profiles/britney/a2a/vault.yaml",
            "{agents: {mailer: {a2a_url: 'http://m.example'}, writer: {a2a_url: 'http://other.example'}}}",
        ),
    ]);
    let draft = hermes::import(home.path()).unwrap();
    let origins: Vec<(&str, &str)> = draft.origins().collect();
    assert!(matches!(origins[..], [("mailer", _), ("writer", _)]), "{origins:?}");
    assert!(origins[0].1.ends_with("profiles/britney/a2a/vault.yaml"), "{origins:?}");
    assert!(origins[1].1.ends_with("agents/writer/identity.yaml"), "{origins:?}");
    told(&draft.left, &["mailer/identity.yaml", "no A2A address"]);
    told(&draft.left, &["vault.yaml", "'writer' already, from", "writer/identity.yaml"]);
}

#[test]
fn what_is_no_file_and_no_mapping_is_told_and_waited_for_by_nobody() {
    let home = place(&[
        ("agents/good/identity.yaml", "{a2a_url: 'http://g.example'}"),
        ("profiles/p/a2a/vault.yaml", "{agents: {five: 5, list: [], none: , mailer: {a2a_url: 'http://m.example'}}}"),
        ("agents/folder/identity.yaml/note", ""),
    ]);
    let at = |name: &str| {
        let folder = home.path().join("agents").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("identity.yaml")
    };
    std::os::unix::fs::symlink("/nowhere/identity.yaml", at("dangling")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
    std::os::unix::fs::symlink(at("good"), at("linked")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    at("empty");
    let draft = hermes::import(home.path()).unwrap();
    assert_eq!(draft.agents().collect::<Vec<_>>(), ["good", "linked", "mailer"]);
    for words in [
        ["agents.five", "no mapping"],
        ["agents.list", "no mapping"],
        ["agents.none", "no mapping"],
        ["dangling/identity.yaml", "leads nowhere"],
        ["folder/identity.yaml", "a directory"],
        ["fifo/identity.yaml", "a FIFO"],
        ["device/identity.yaml", "a device"],
    ] {
        told(&draft.left, &words);
    }
    assert_eq!(draft.left.len(), 7, "{:?}", draft.left);
}

#[test]
fn nothing_to_import_is_told_with_where_it_was_looked_for() {
    let home = place(&[("notes.txt", "")]);
    let told = hermes::import(home.path()).unwrap_err().to_string();
    assert!(told.contains("identity.yaml") && told.contains("fleet/a2a/agents"), "{told}");
    assert!(hermes::import(Path::new("/nowhere")).unwrap_err().to_string().contains("HERMES_HOME"));
    let other = place(&[("fleet.yaml", "agents: {}")]);
    assert!(fleet::import(&other.path().join("fleet.yaml")).unwrap_err().to_string().contains("no section 'fleet'"));
}

#[test]
fn a_fleet_becomes_a_hub_with_its_peers() {
    let text = "
fleet:
  enabled: true
  response_handler: agent
  server: {bind_host: 127.0.0.1, bind_port: 9219, auth_required: false, token_env: A2A_NODE_TOKEN}
  self: {name: Neo}
  agent: {timeout_s: 300}
  agents:
    trinity: {url: 'http://127.0.0.1:9220', agent_card_url: 'http://127.0.0.1:9220/.well-known/agent-card.json', token_env: A2A_HERMES_TOKEN_TRINITY, description: Knows the way.}
    elsewhere: {url: 'https://e.example/jsonrpc', agent_card_url: 'https://cards.example/e.json'}
    coder: {url: 'http://127.0.0.1:9300', managed: true, mode: claude_code, repo_path: /srv/repo, token_env: A2A_CC_TOKEN_REPO_0123456789AB}
    pane: {managed: true, mode: herdr_session, host_alias: local, workspace: /srv, agent_kind: claude}
    nowhere: {description: none}
";
    let dir = place(&[("fleet.yaml", text)]);
    let draft = fleet::import(&dir.path().join("fleet.yaml")).unwrap();
    let config = config(&draft, &[]);
    assert_eq!(config.agent_names(), ["coder", "elsewhere", "trinity"]);
    assert_eq!((config.hub.name.as_str(), config.hub.listen.port()), ("Neo", 9219));
    let shown = draft.yaml().unwrap().replace(['"', '\''], "");
    for line in
        ["url: http://127.0.0.1:9220", "bearer: env:A2A_HERMES_TOKEN_TRINITY", "card: https://cards.example/e.json"]
    {
        assert!(shown.contains(line), "no {line} in {shown}");
    }
    told(&draft.todo, &["coder", "claude_code", "/srv/repo"]);
    told(&draft.todo, &["A2A_NODE_TOKEN", "keys create"]);
    told(&draft.left, &["pane", "Herdr"]);
    told(&draft.left, &["nowhere", "no url"]);
    told(&draft.left, &["response_handler"]);
    told(&draft.left, &["auth_required"]);
}

#[test]
fn every_key_that_is_not_taken_over_is_named_and_only_what_was_taken_over_is_to_be_done() {
    let fleet_file = "
fleet:
  self: {name: me, colour: red}
  server: {bind_port: 1, tls: true}
  agents:
    a1: {url: 'http://10.0.0.9:1', token_env: FIRST}
    A1: {url: 'http://10.0.0.9:2', token: swordfish-1, weird: 1}
    bad name/: {url: 'no address', token_env: NEVER}
  other: {x: 1}
toplevel: 1
";
    let identity = "{a2a_url: 'http://o.example', unknown_key: 1, metadata: {foo: 1, skills: []},
        transports: {a2a_rpc: {url: 'http://o.example', auth: {type: bearer, token_env: T, extra: swordfish-2}}, smoke: {}}}";
    let home = place(&[("fleet.yaml", fleet_file), ("agents/one/identity.yaml", identity)]);
    let draft = fleet::import(&home.path().join("fleet.yaml")).unwrap();
    config(&draft, &["swordfish"]);
    for key in
        ["fleet.self.colour", "fleet.server.tls", "fleet.other", ": toplevel", "agents.A1: token", "agents.A1: weird"]
    {
        told(&draft.left, &[key, "not taken over"]);
    }
    told(&draft.left, &["agents.a1", "already"]);
    assert!(!draft.todo.iter().any(|line| line.contains("FIRST") || line.contains("NEVER")), "{:?}", draft.todo);
    let draft = hermes::import(home.path()).unwrap();
    config(&draft, &["swordfish"]);
    for key in ["unknown_key", "metadata.foo", "transports.smoke", "transports.a2a_rpc.auth.extra"] {
        told(&draft.left, &[key, "not taken over"]);
    }
}
