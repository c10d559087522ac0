//! The configuration file: what is read and shown means the same when it is read again.

use crate::text;
use flotilla::config::Config;

pub fn config(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    // Variables of the environment are whoever runs this; their values prove nothing.
    if text.contains("${") {
        return;
    }
    let Ok(config) = Config::parse(text) else { return };
    // A certificate would be read from wherever the text says.
    if config.hub.tls.is_none() {
        let _ = config.check();
    }
    let _ = (config.check_whole(), config.default_agent(), config.keep());
    let shown = serde_saphyr::to_string(&config).expect("a configuration can be shown");
    let again = Config::parse(&shown).unwrap_or_else(|error| panic!("shown as what cannot be read: {error}\n{shown}"));
    let again = serde_saphyr::to_string(&again).expect("a configuration can be shown");
    assert_eq!(again, shown);
}
