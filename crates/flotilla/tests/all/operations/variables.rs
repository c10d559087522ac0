//! Variables of other A2A programs: taken over, shown, and never more than they say.

use crate::cast::setup;
use crate::cli::program::Place;
use flotilla_testkit::Binding;
use flotilla_testkit::client::message;

const TOKEN: &str = "hermes-token-0123456789";

#[test]
fn a_token_is_a_key_that_is_named_and_not_stored() {
    let hub = setup().env("A2A_AUTH_TOKEN", TOKEN).start();
    let task = hub.stranger(Binding::JsonRpc).key(TOKEN).say("m", "hello");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let refused =
        hub.stranger(Binding::HttpJson).key("hermes-token-9999999999").response("ListTasks", &serde_json::json!({}));
    assert_eq!(refused.status, 401);
    let keys = hub.stranger(Binding::HttpJson).key(TOKEN).get("/api/keys");
    assert_eq!(keys.status, 403, "it calls agents, and administers nothing");
    assert!(hub.cli_ok(&["keys", "list"]).contains("a2a-auth-token"));
    assert!(hub.banner.iter().any(|line| line.contains("A2A_AUTH_TOKEN")), "{:?}", hub.banner);
    for entry in std::fs::read_dir(hub.data()).expect("the data directory") {
        let bytes = std::fs::read(entry.expect("an entry").path()).unwrap_or_default();
        assert!(!bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes()), "stored in the clear");
    }
    assert!(!hub.log().contains(TOKEN) && !hub.banner.iter().any(|line| line.contains(TOKEN)));
}

#[test]
fn another_token_takes_its_place_and_none_ends_it() {
    let mut hub = setup().env("A2A_AUTH_TOKEN", TOKEN).start();
    let answered = |hub: &flotilla_testkit::HubProcess, token: &str| {
        hub.stranger(Binding::HttpJson).key(token).response("ListTasks", &serde_json::json!({})).status
    };
    hub.restart();
    assert_eq!(answered(&hub, TOKEN), 200, "a restart changes nothing");
    let other = "another-token-0123456789";
    hub.set_env("A2A_AUTH_TOKEN", other);
    hub.restart();
    assert_eq!((answered(&hub, TOKEN), answered(&hub, other)), (401, 200));
    hub.set_env("A2A_AUTH_TOKEN", "");
    hub.restart();
    assert_eq!((answered(&hub, TOKEN), answered(&hub, other)), (401, 401));
    let listed = hub.cli_ok(&["keys", "list"]);
    assert!(listed.contains("a2a-auth-token-2"), "{listed}");
    hub.kill();
    let said = setup().env("A2A_AUTH_TOKEN", "short").refused();
    assert!(said.contains("A2A_AUTH_TOKEN") && said.contains("16 characters") && !said.contains("short"), "{said}");
}

#[test]
fn a_token_that_comes_back_is_good_again_and_a_refused_start_changes_nothing() {
    let mut hub = setup().env("A2A_AUTH_TOKEN", TOKEN).start();
    let answered = |hub: &flotilla_testkit::HubProcess, token: &str| {
        hub.stranger(Binding::HttpJson).key(token).response("ListTasks", &serde_json::json!({})).status
    };
    let other = "another-token-0123456789";
    for (set, good, wrong) in [(other, other, TOKEN), (TOKEN, TOKEN, other), ("", "", TOKEN), (TOKEN, TOKEN, other)] {
        hub.set_env("A2A_AUTH_TOKEN", set);
        hub.restart();
        assert_eq!(answered(&hub, wrong), 401, "{set}");
        assert!(good.is_empty() || answered(&hub, good) == 200, "{set}");
    }
    hub.cli_ok(&["keys", "revoke", "a2a-auth-token"]);
    hub.restart();
    assert_eq!(answered(&hub, TOKEN), 200, "it is set, so it is good");

    let somebody = hub.key("somebody", &[]);
    hub.terminate();
    let listed = hub.cli_ok(&["keys", "list"]);
    for taken in [somebody.as_str(), hub.owner_key()] {
        hub.set_env("A2A_AUTH_TOKEN", taken);
        let said = hub.second_refused();
        assert!(said.contains("A2A_AUTH_TOKEN") && said.contains("somebody else") && !said.contains(taken), "{said}");
    }
    assert_eq!(hub.cli_ok(&["keys", "list"]), listed);
    hub.set_env("A2A_AUTH_TOKEN", TOKEN);
    hub.restart();
    assert_eq!((answered(&hub, TOKEN), answered(&hub, &somebody)), (200, 200));
}

#[test]
fn callers_without_a_key_are_let_in_only_where_that_is_safe() {
    let hub = setup().env("A2A_REQUIRE_AUTH", "false").start();
    hub.stranger(Binding::JsonRpc).call("SendMessage", &message("m", "hello")).expect("anonymous callers are let in");
    assert!(hub.banner.iter().any(|line| line.contains("WARNING") && line.contains("A2A_REQUIRE_AUTH=false")));
    let said = setup().listen("0.0.0.0:0").env("A2A_REQUIRE_AUTH", "false").refused();
    assert!(said.contains("A2A_REQUIRE_AUTH=false") && said.contains("allow_anonymous_remote"), "{said}");
    let hub = setup().env("A2A_REQUIRE_AUTH", "true").start();
    assert_eq!(hub.stranger(Binding::HttpJson).response("ListTasks", &serde_json::json!({})).status, 401);
}

#[test]
fn they_are_shown_and_what_is_wrong_with_them_is_told() {
    let place = |name: &str, value: &str| Place::new().env(name, value);
    let shown =
        place("A2A_PORT", "8081").env("A2A_HOST", "::1").env("A2A_AGENT_NAME", "Hermes").run(&["config", "hub"]);
    let shown = shown.ok().out;
    assert!(shown.contains("[::1]:8081") && shown.contains("Hermes"), "{shown}");
    let token = place("A2A_AUTH_TOKEN", TOKEN).run(&["config", "hub"]).ok().out;
    assert!(token.contains("auth_token: '***'") || token.contains("auth_token: \"***\""), "{token}");
    let own = place("A2A_PORT", "8081").env("FLOTILLA_LISTEN", "127.0.0.1:9").run(&["config", "check"]).ok();
    assert!(!own.out.contains("A2A_PORT"), "the hub's own variable counts: {own:?}");
    let checked = place("A2A_PORT", "8081").run(&["config", "check"]).ok();
    assert!(checked.out.contains("from the environment: A2A_PORT"), "{checked:?}");
    for (name, value) in [("A2A_HOST", "my host"), ("A2A_PORT", "none"), ("A2A_REQUIRE_AUTH", "perhaps")] {
        for command in [&["config", "check"][..], &["serve", "--memory"]] {
            let ran = place(name, value).run(command);
            assert!(ran.code != 0 && ran.err.contains(name) && ran.err.contains(value), "{ran:?}");
        }
    }
}
