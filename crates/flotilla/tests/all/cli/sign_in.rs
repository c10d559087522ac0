//! `auth login`: tokens by device code and by client credentials, kept safely and used from then on.

use super::agent::{Agent, Asked, Says, card, task};
use super::program::Place;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn oauth(flows: Value) -> Value {
    card(json!({
        "securitySchemes": {"o": {"oauth2SecurityScheme": {"flows": flows}}},
        "securityRequirements": [{"schemes": {"o": {"list": ["use"]}}}],
    }))
}

/// An agent and its token server in one.
fn agent(flows: Value, token: impl Fn(&Asked) -> Says + Send + Sync + 'static) -> Agent {
    Agent::start(oauth(flows), move |asked, _| match asked.path.as_str() {
        "/rpc" => Says::Result(json!({"task": task("COMPLETED")})),
        _ => token(asked),
    })
}

fn device() -> Value {
    json!({"deviceCode": {"deviceAuthorizationUrl": "${URL}/device", "tokenUrl": "${URL}/token", "scopes": {"use": ""}}})
}

fn by_client() -> Value {
    json!({"clientCredentials": {"tokenUrl": "${URL}/token", "scopes": {"use": "x"}}})
}

#[test]
fn a_person_lets_the_program_in_with_a_code() {
    let polls = AtomicUsize::new(0);
    let agent = agent(device(), move |asked| match asked.path.as_str() {
        "/device" => Says::Json(json!({"device_code": "dev-secret", "user_code": "ABCD-1234", "interval": 1,
            "verification_uri": "https://example.com/go", "expires_in": 60})),
        _ if polls.fetch_add(1, Ordering::SeqCst) == 0 => Says::Status(400, json!({"error": "authorization_pending"})),
        _ => Says::Json(json!({"access_token": "tok-device", "token_type": "Bearer", "expires_in": 3600})),
    });
    let place = Place::new();
    let ran = place.run(&["auth", "login", "-a", &agent.url, "--client-id", "me", "--debug"]).ok();
    assert!(ran.err.contains("https://example.com/go") && ran.err.contains("ABCD-1234"), "{ran:?}");
    assert!(!ran.err.contains("dev-secret") && !ran.err.contains("tok-device") && !ran.out.contains("tok-device"));
    place.run(&["send", "hi", "-a", &agent.url]).ok();
    let asked = agent.asked();
    assert_eq!(asked.last().expect("a send").header("authorization"), Some("Bearer tok-device"));
    assert_eq!(asked[0].body, "client_id=me&scope=use");
    assert!(asked[1].body.contains("device_code=dev-secret"));
    assert_eq!(asked.iter().filter(|asked| asked.path == "/token").count(), 2);
}

#[test]
fn a_program_lets_itself_in_with_its_secret() {
    let agent = agent(by_client(), |asked| {
        if !asked.body.contains("client_secret=s3cret-x") {
            return Says::Status(401, json!({"error": "invalid_client"}));
        }
        Says::Json(json!({"access_token": "tok-client"}))
    });
    let place = Place::new().env("A2ACLI_CLIENT_ID", "me").env("A2ACLI_CLIENT_SECRET", "s3cret-x");
    let ran = place.run(&["auth", "login", "-a", &agent.url]).ok();
    assert_eq!(ran.field("Token"), "stored");
    place.run(&["send", "hi", "-a", &agent.url]).ok();
    assert_eq!(agent.asked().last().expect("a send").header("authorization"), Some("Bearer tok-client"));
    let wrong = Place::new().run(&[
        "auth",
        "login",
        "-a",
        &agent.url,
        "--client-id",
        "me",
        "--client-secret",
        "no",
        "-o",
        "json",
    ]);
    assert_eq!((wrong.code, wrong.error().as_str()), (4, "A2ACLI_ERR_AUTH_FAILED"));
}

#[test]
fn tokens_are_kept_for_their_owner_and_shown_to_nobody() {
    use std::os::unix::fs::PermissionsExt as _;
    let agent = agent(by_client(), |_| Says::Json(json!({"access_token": "tok-client", "expires_in": 60})));
    let place = Place::new();
    place.run(&["auth", "login", "-a", &agent.url, "--client-id", "me", "--client-secret", "s"]).ok();
    let file = place.dir().join("home/.config/a2a-cli/tokens.json");
    assert_eq!(std::fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
    let shown = place.run(&["config", "show"]).ok();
    assert!(shown.field("signed in").starts_with(&agent.url) && !shown.out.contains("tok-client"), "{shown:?}");
    let other = self::agent(by_client(), |_| Says::Json(json!({})));
    assert_eq!(place.run(&["send", "hi", "-a", &other.url]).code, 4, "a token is for one agent");
    place.run(&["auth", "logout", "-a", &agent.url]).ok();
    assert_eq!(place.run(&["send", "hi", "-a", &agent.url]).code, 4);
}

#[test]
fn a_token_that_was_renewed_is_not_shown_though_the_agent_repeats_it() {
    let agent = Agent::start(oauth(by_client()), |asked, _| match asked.path.as_str() {
        "/token" if asked.body.contains("refresh_token=") => {
            Says::Json(json!({"access_token": "tok-new", "refresh_token": "again-2", "expires_in": 3600}))
        }
        "/token" => Says::Json(json!({"access_token": "tok-old", "refresh_token": "again-1", "expires_in": 1})),
        _ => {
            let told = format!("who is {} of again-2?", asked.header("authorization").unwrap_or_default());
            Says::Json(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": told}}))
        }
    });
    let place = Place::new();
    place.run(&["auth", "login", "-a", &agent.url, "--client-id", "me", "--client-secret", "s3cret-x"]).ok();
    let ran = place.run(&["send", "hi", "-a", &agent.url, "--debug"]);
    assert!(ran.err.contains("who is Bearer [redacted] of [redacted]?"), "{ran:?}");
    assert!(!ran.err.contains("tok-new") && !ran.err.contains("again-2"), "{ran:?}");
}

#[test]
fn a_token_that_expired_is_renewed() {
    let agent = agent(by_client(), |asked| {
        let renewed = asked.body.contains("grant_type=refresh_token") && asked.body.contains("refresh_token=again-1");
        let token = if renewed { "tok-new" } else { "tok-old" };
        Says::Json(
            json!({"access_token": token, "refresh_token": "again-1", "expires_in": if renewed { 3600 } else { 1 }}),
        )
    });
    let place = Place::new();
    place.run(&["auth", "login", "-a", &agent.url, "--client-id", "me", "--client-secret", "s"]).ok();
    for _ in 0..2 {
        place.run(&["send", "hi", "-a", &agent.url]).ok();
        assert_eq!(agent.asked().last().expect("a send").header("authorization"), Some("Bearer tok-new"));
    }
    let renewals = agent.asked().iter().filter(|asked| asked.path == "/token").count();
    assert_eq!(renewals, 2, "one login, one renewal");
}

#[test]
fn what_cannot_be_done_is_told_with_the_way_in() {
    let place = Place::new();
    let agent = agent(by_client(), |_| Says::Json(json!({})));
    let ran = place.run(&["send", "hi", "-a", &agent.url, "-o", "json"]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("flotilla auth login --agent-card")),
        "{ran:?}"
    );
    assert_eq!(place.run(&["auth", "login", "-a", &agent.url]).code, 2, "no client id");
    let args = ["auth", "login", "-a", &agent.url, "--client-id", "me", "--flow", "device-code"];
    assert_eq!(place.run(&args).code, 4, "the card has no such flow");
    let far = self::agent(json!({"clientCredentials": {"tokenUrl": "http://example.com/token", "scopes": {}}}), |_| {
        Says::Json(json!({}))
    });
    let ran = place.run(&["auth", "login", "-a", &far.url, "--client-id", "me", "--client-secret", "s"]);
    assert!(ran.code != 0 && ran.err.contains("not https"), "{ran:?}");
}

/// The command that a refused send says to type.
fn hinted(place: &Place, agent: &Agent) -> (String, String) {
    let ran = place.run(&["send", "hi", "-a", &agent.url, "-o", "json"]);
    let hint = ran.json()["error"]["hint"].as_str().unwrap_or_default().to_owned();
    let (words, command) = hint.split_once("sign in with: ").unwrap_or_else(|| panic!("{ran:?}"));
    (words.to_owned(), command.to_owned())
}

#[test]
fn the_way_in_that_is_told_works_as_it_is_written() {
    let agent = |flows| {
        agent(flows, |asked| match asked.path.as_str() {
            "/device" => Says::Json(json!({"device_code": "d", "user_code": "A", "interval": 1,
                "verification_uri": "https://example.com/go", "expires_in": 60})),
            _ => Says::Json(json!({"access_token": "tok", "expires_in": 3600})),
        })
    };
    let run = |place: &Place, command: &str| {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        place.run(&words).ok();
    };
    let (by_code, by_secret) = (agent(device()), agent(by_client()));
    let (nothing, id) = (Place::new(), Place::new().env("A2ACLI_CLIENT_ID", "me"));
    for (place, agent, ending) in [
        (&nothing, &by_code, " --client-id ID"),
        (&id, &by_code, ""),
        (&nothing, &by_secret, " --client-id ID --flow client-credentials"),
        (&id, &by_secret, " --flow client-credentials"),
    ] {
        let (words, command) = hinted(place, agent);
        assert_eq!(command, format!("flotilla auth login --agent-card {}{ending}", agent.url));
        assert_eq!(words.contains("A2ACLI_CLIENT_SECRET"), ending.contains("client-credentials"), "{words}");
        run(place, &command);
        place.run(&["send", "hi", "-a", &agent.url]).ok();
    }
    let both = Place::new().env("A2ACLI_CLIENT_ID", "me").env("A2ACLI_CLIENT_SECRET", "s");
    let (words, command) = hinted(&both, &by_secret);
    assert_eq!((words.as_str(), command), ("", format!("flotilla auth login --agent-card {}", by_secret.url)));
    let (_, command) = hinted(&both, &by_code);
    assert!(command.ends_with(" --flow device-code"), "a secret stands for the other flow: {command}");
    let by_browser = self::agent(json!({"authorizationCode": {}}), |_| Says::Json(json!({})));
    let ran = nothing.run(&["send", "hi", "-a", &by_browser.url]);
    assert!(ran.err.contains("set A2ACLI_BEARER") && !ran.err.contains("auth login"), "{ran:?}");
}
