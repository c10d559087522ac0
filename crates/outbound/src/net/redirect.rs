//! Where a redirect leads: within its origin, or nowhere.

use super::address;
use http::HeaderMap;
use reqwest::{StatusCode, Url};

/// Redirects in a row that are followed.
pub const MOST: usize = 3;

/// Where an answer leads on to from an address, if that is the same origin. Another one has to be named by whoever trusts
/// it, and `advice` says where.
pub fn within_origin(from: &str, headers: &HeaderMap, advice: &str) -> Result<Url, String> {
    let (base, to) = places(from, headers)?;
    if to.origin() != base.origin() {
        let to = address::shown(to.as_str());
        return Err(format!("it redirects to {to}, of another origin; {advice}"));
    }
    Ok(to)
}

/// The same for a call that is more than a question. Only two statuses say that it is to be made there as it is; they also
/// say that nothing was done here.
pub fn of_call(from: &str, status: StatusCode, headers: &HeaderMap) -> Result<Url, String> {
    let advice = "the agent's card has to name that address";
    let to = within_origin(from, headers, advice)?;
    if matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return Ok(to);
    }
    Err(format!("it redirects to {}, where calls do not follow it; {advice}", address::shown(to.as_str())))
}

/// An address without what is said in its query by other means. Servers repeat the query they were called with.
pub fn without(mut url: Url, said: &[(String, String)]) -> String {
    if !said.is_empty() && url.query().is_some() {
        let is_said = |name: &str| said.iter().any(|(known, _)| known == name);
        let rest: Vec<_> = url.query_pairs().into_owned().filter(|(name, _)| !is_said(name)).collect();
        url.set_query(None);
        if !rest.is_empty() {
            url.query_pairs_mut().extend_pairs(rest);
        }
    }
    url.into()
}

fn places(from: &str, headers: &HeaderMap) -> Result<(Url, Url), String> {
    let location = headers.get("location").and_then(|value| value.to_str().ok()).ok_or("it redirects to nowhere")?;
    let base = Url::parse(from).map_err(|error| error.to_string())?;
    let to = base.join(location).map_err(|error| format!("it redirects to what is no address: {error}"))?;
    Ok((base, to))
}

#[cfg(test)]
mod tests {
    use super::{of_call, within_origin, without};
    use http::{HeaderMap, StatusCode};
    use reqwest::Url;

    fn location(text: &'static str) -> HeaderMap {
        [(http::header::LOCATION, text.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn redirects_stay_within_their_origin() {
        let to = |text: &'static str| within_origin("https://h/a", &location(text), "name it").map(String::from);
        assert_eq!(to("/b").as_deref(), Ok("https://h/b"));
        assert_eq!(to("https://h/c").as_deref(), Ok("https://h/c"));
        for elsewhere in ["http://h/a", "https://other/a", "//127.0.0.1/", "https://h:8443/a"] {
            assert!(to(elsewhere).unwrap_err().contains("another origin; name it"), "{elsewhere}");
        }
    }

    #[test]
    fn a_call_goes_on_as_it_is_or_not_at_all() {
        let to = |status, text| of_call("https://h/a", StatusCode::from_u16(status).unwrap(), &location(text));
        for status in [307, 308] {
            assert_eq!(to(status, "/a/").unwrap().as_str(), "https://h/a/");
            assert!(to(status, "https://other/").unwrap_err().contains("https://other/, of another origin"));
        }
        for status in [300, 301, 302, 303] {
            assert!(to(status, "/a/").unwrap_err().contains("https://h/a/, where calls do not follow it"));
        }
        assert!(of_call("https://h/a", StatusCode::FOUND, &HeaderMap::new()).unwrap_err().contains("nowhere"));
    }

    #[test]
    fn what_is_said_anyway_is_not_said_twice() {
        let said = [("key".to_owned(), "k".to_owned())];
        let url = |query: &str| Url::parse(&format!("https://h/a/{query}")).unwrap();
        assert_eq!(without(url("?key=k&v=1"), &said), "https://h/a/?v=1");
        assert_eq!(without(url("?key=k"), &said), "https://h/a/");
        assert_eq!(without(url("?key=k"), &[]), "https://h/a/?key=k");
    }
}
