//! Who is let as far as the hub's bindings: names it is called by, web pages, proxies.

use super::HubConfig;
use anyhow::{Result, bail};
use flotilla_inbound::Network;
use hyper::Uri;

impl HubConfig {
    pub fn check_doors(&self) -> Result<()> {
        for host in &self.allowed_hosts {
            let name = host.strip_prefix("*.").unwrap_or(host);
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if host != "*" && (name.is_empty() || !name.chars().all(fits)) {
                bail!(
                    "hub.allowed_hosts: '{host}' is no host's name: write one such as hub.example.com or *.example.com"
                );
            }
        }
        for origin in &self.allowed_origins {
            if !is_origin(origin) {
                bail!(
                    "hub.allowed_origins: '{origin}' is no origin: write each as https://app.example.com, in lower case \
                     and without a path"
                );
            }
        }
        for proxy in &self.trusted_proxies {
            if let Err(problem) = proxy.parse::<Network>() {
                bail!("hub.trusted_proxies: {problem}");
            }
        }
        Ok(())
    }

    /// Checked before.
    pub fn trusted_proxies(&self) -> Vec<Network> {
        self.trusted_proxies.iter().filter_map(|proxy| proxy.parse().ok()).collect()
    }
}

/// The form browsers send; any other would never match, and `*` would let every page in.
fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
    text == format!("{scheme}://{authority}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use crate::config::HubConfig;

    #[test]
    fn mistakes_are_told() {
        let told = |hub: HubConfig| hub.check_doors().map_err(|error| error.to_string());
        let list = |text: &str| vec![text.to_owned()];
        for right in ["https://app.example.com", "http://localhost:3000", "http://[::1]:80"] {
            assert_eq!(told(HubConfig { allowed_origins: list(right), ..HubConfig::default() }), Ok(()), "{right}");
        }
        for wrong in ["*", "null", "app.example.com", "https://app.example.com/", "https://App.example.com"] {
            let problem = told(HubConfig { allowed_origins: list(wrong), ..HubConfig::default() }).unwrap_err();
            assert!(problem.contains(&format!("'{wrong}'")), "{problem}");
        }
        for right in ["*", "*.example.com", "hub.example.com"] {
            assert_eq!(told(HubConfig { allowed_hosts: list(right), ..HubConfig::default() }), Ok(()), "{right}");
        }
        for wrong in ["", "https://hub.example.com", "hub.example.com:7420", "a*"] {
            assert!(told(HubConfig { allowed_hosts: list(wrong), ..HubConfig::default() }).is_err(), "{wrong}");
        }
        let problem = told(HubConfig { trusted_proxies: list("10.0.0.0/40"), ..HubConfig::default() }).unwrap_err();
        assert!(problem.contains("10.0.0.0/8"), "{problem}");
    }
}
