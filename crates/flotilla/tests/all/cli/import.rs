//! `flotilla import`: a configuration on standard output, a report on standard error, and a hub that runs with it.

use super::program::Place;
use crate::cast::setup;
use flotilla_testkit::Binding;

const IDENTITY: &str = "{name: Composer, description: Writes music., transports: {a2a_rpc: {url: URL, auth: {type: bearer, token: swordfish}}}}";

#[test]
fn what_is_imported_works() {
    let far = setup().start();
    let place = Place::new();
    let home = place.dir().join("hermes").display().to_string();
    place.file("hermes/fleet/a2a/agents/composer/identity.yaml", IDENTITY.replace("URL", &format!("'{}'", far.url())));
    let place = place.env("HERMES_HOME", &home);
    let ran = place.run(&["import", "hermes"]).ok();
    assert!(
        ran.out.contains("composer") && !ran.out.contains("swordfish") && !ran.err.contains("swordfish"),
        "{ran:?}"
    );
    assert!(ran.err.contains("to do:") && ran.err.contains("COMPOSER_TOKEN"), "{ran:?}");
    let file = place.dir().join("new.yaml").display().to_string();
    place.run(&["import", "hermes", &home, "--output", &file]).ok();
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), ran.out);
    let again = place.run(&["import", "hermes", "--output", &file]);
    assert!(again.code != 0 && again.err.contains("not replaced"), "{again:?}");
    // The token of the identity is put where the report says; here it is a key of the other hub.
    let hub = setup().config(&ran.out).env("COMPOSER_TOKEN", far.owner_key()).start();
    let task = hub.owner(Binding::JsonRpc).agent("composer").say("m", "A song");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn agents_are_added_to_a_running_hub() {
    let far = setup().config("hub: {allow_anonymous: true}").start();
    let hub = setup().config("targets: {allow: ['127.0.0.0/8']}").start();
    let place = Place::at(&hub);
    let peers = format!("mirror: {{url: '{}'}}, locked: {{url: '{0}', token_env: SOME_TOKEN}}", far.url());
    let file = place.file("fleet.yaml", format!("fleet: {{agents: {{{peers}}}}}"));
    let ran = place.run(&["import", "fleet", &file, "--add"]).ok();
    assert!(ran.out.contains("added: mirror"), "{ran:?}");
    assert!(ran.err.contains("not added: locked") && ran.err.contains("registry.references"), "{ran:?}");
    let task = hub.owner(Binding::JsonRpc).agent("mirror").say("m", "hello");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let ran = place.run(&["import", "fleet", &file, "--add"]);
    assert!(ran.code != 0 && ran.err.contains("FLOTILLA_KEY"), "they are there already: {ran:?}");
}

#[test]
fn nothing_to_take_over_is_an_error() {
    let place = Place::new();
    let file = place.file("fleet.yaml", "fleet: {agents: {pane: {mode: herdr_session, managed: true}}}");
    let ran = place.run(&["import", "fleet", &file]);
    assert!(ran.code != 0 && ran.out.is_empty() && ran.err.contains("Herdr"), "{ran:?}");
    let ran = place.run(&["import", "hermes", "nowhere"]);
    assert!(ran.code != 0 && ran.err.contains("nowhere"), "{ran:?}");
}
