//! Variables of other A2A programs (`A2A_PORT` and the like), taken where the file and the hub's own say nothing.

use super::auth::SecretPlace;
use super::{Config, Secret};
use anyhow::{Result, bail};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::net::IpAddr;

/// What the file says by itself: that counts, even where it is the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Said {
    hub: Option<HubSaid>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct HubSaid {
    listen: Option<IgnoredAny>,
    name: Option<IgnoredAny>,
    allow_anonymous: Option<IgnoredAny>,
}

impl Said {
    /// Of a text that was read as a configuration before.
    pub fn read(text: &str) -> Self {
        serde_saphyr::from_str(text).unwrap_or_default()
    }
}

impl Config {
    /// Takes the variables over; the names of those that counted.
    pub fn borrow_variables(
        &mut self,
        listen_is_set: bool,
        look_up: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<&'static str>> {
        let value = |name: &str| look_up(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let said = self.said.hub.unwrap_or_default();
        let mut counted = Vec::new();
        let hub = &mut self.hub;
        if !listen_is_set && said.listen.is_none() {
            if let Some(host) = value("A2A_HOST") {
                hub.listen.set_ip(host_address(&host)?);
                counted.push("A2A_HOST");
            }
            if let Some(port) = value("A2A_PORT") {
                hub.listen.set_port(port_number(&port)?);
                counted.push("A2A_PORT");
            }
        }
        if let Some(name) = value("A2A_AGENT_NAME").filter(|_| said.name.is_none()) {
            hub.name = name;
            counted.push("A2A_AGENT_NAME");
        }
        if let Some(token) = value("A2A_AUTH_TOKEN").filter(|_| hub.auth_token.is_none()) {
            hub.auth_token = Some(Secret(token));
            counted.push("A2A_AUTH_TOKEN");
        }
        if let Some(required) = value("A2A_REQUIRE_AUTH").filter(|_| said.allow_anonymous.is_none()) {
            hub.allow_anonymous = !truth("A2A_REQUIRE_AUTH", &required)?;
            counted.push("A2A_REQUIRE_AUTH");
        }
        if let Some(announce) = &mut self.announce {
            if let Some(url) = value("A2A_REGISTRY_URL").filter(|_| announce.to.is_none()) {
                announce.to = Some(url);
                counted.push("A2A_REGISTRY_URL");
            }
            if value("A2A_REGISTRY_AUTH_TOKEN").is_some() && announce.key.is_none() {
                announce.key = Some(SecretPlace("env:A2A_REGISTRY_AUTH_TOKEN".into()));
                counted.push("A2A_REGISTRY_AUTH_TOKEN");
            }
        }
        Ok(counted)
    }
}

fn host_address(text: &str) -> Result<IpAddr> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::from([127, 0, 0, 1]));
    }
    match text.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(address) => Ok(address),
        Err(_) => bail!("A2A_HOST: '{text}' is no address to listen on: write one such as 127.0.0.1, 0.0.0.0 or ::"),
    }
}

fn port_number(text: &str) -> Result<u16> {
    match text.parse() {
        Ok(port) => Ok(port),
        Err(_) => bail!("A2A_PORT: '{text}' is no port: write a number from 0 to 65535"),
    }
}

fn truth(name: &str, text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => bail!("{name}: '{text}' is neither true nor false; write one of them"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn borrowed(file: &str, variables: &[(&str, &str)]) -> Result<(Config, Vec<&'static str>), String> {
        let mut config = Config::parse(file).unwrap();
        let look_up = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        let counted = config.borrow_variables(false, look_up).map_err(|error| error.to_string())?;
        Ok((config, counted))
    }

    const ALL: [(&str, &str); 5] = [
        ("A2A_HOST", "0.0.0.0"),
        ("A2A_PORT", "8081"),
        ("A2A_AGENT_NAME", "Fleet"),
        ("A2A_AUTH_TOKEN", "a-token-of-some-length"),
        ("A2A_REQUIRE_AUTH", "false"),
    ];

    #[test]
    fn they_count_where_nothing_else_is_said() {
        let (config, counted) = borrowed("", &ALL).unwrap();
        assert_eq!(config.hub.listen.to_string(), "0.0.0.0:8081");
        assert_eq!((config.hub.name.as_str(), config.hub.allow_anonymous), ("Fleet", true));
        assert_eq!(config.hub.auth_token.unwrap().0, "a-token-of-some-length");
        assert_eq!(counted.len(), 5);
        assert_eq!(borrowed("", &[("A2A_PORT", " ")]).unwrap().1.len(), 0, "empty is not set");
    }

    #[test]
    fn the_file_counts_more_even_where_it_says_what_is_usual() {
        let file = "hub: {listen: '127.0.0.1:7420', name: Flotilla, allow_anonymous: false, auth_token: of-the-file}";
        let (config, counted) = borrowed(file, &ALL).unwrap();
        assert_eq!((config.hub.listen.port(), config.hub.name.as_str()), (7420, "Flotilla"));
        assert!(!config.hub.allow_anonymous && counted.is_empty(), "{counted:?}");
        assert_eq!(config.hub.auth_token.unwrap().0, "of-the-file");
        let (config, counted) = borrowed("hub:\nagents: {a: {kind: echo}}", &ALL).unwrap();
        assert_eq!((config.hub.listen.port(), counted.len()), (8081, 5));
    }

    #[test]
    fn a_registry_is_announced_to_only_where_that_is_asked_for() {
        let variables = [("A2A_REGISTRY_URL", "https://r.example"), ("A2A_REGISTRY_AUTH_TOKEN", "t")];
        assert!(borrowed("", &variables).unwrap().0.announce.is_none());
        let announce = borrowed("announce: {}", &variables).unwrap().0.announce.unwrap();
        assert_eq!(announce.to.as_deref(), Some("https://r.example"));
        assert!(announce.key.is_some());
        let own = borrowed("announce: {to: 'https://own.example', key: env:OWN}", &variables).unwrap();
        assert_eq!((own.0.announce.unwrap().to.as_deref(), own.1.len()), (Some("https://own.example"), 0));
        assert!(
            borrowed("announce: {}", &[]).unwrap().0.check_whole().unwrap_err().to_string().contains("announce.to")
        );
    }

    #[test]
    fn nonsense_is_told_by_its_name() {
        for (name, value) in [("A2A_HOST", "my host"), ("A2A_PORT", "99999"), ("A2A_REQUIRE_AUTH", "perhaps")] {
            let told = borrowed("", &[(name, value)]).unwrap_err();
            assert!(told.contains(name) && told.contains(value), "{told}");
        }
    }
}
