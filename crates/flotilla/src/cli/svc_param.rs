//! `--svc-param`: service parameters, and the headers that are not theirs to set.

use super::failure::Failure;
use flotilla_outbound::client::credential::Attached;

/// How a request is sent is this program's to say. A second word about it breaks the request, or is lost.
const TAKEN: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// `NAME:VALUE`, each; `said` is the flag, or where else they were said.
pub fn parse(said: &str, pairs: &[String]) -> Result<Vec<(String, String)>, Failure> {
    pairs.iter().map(|pair| one(said, pair)).collect()
}

fn one(said: &str, pair: &str) -> Result<(String, String), Failure> {
    let split = pair.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let Some((name, value)) = split.filter(|(name, _)| !name.is_empty()) else {
        let failure = Failure::usage(format!("{said} takes NAME:VALUE, such as x-trace-id:abc123"));
        return Err(if pair.contains('=') {
            failure.hint("write a colon in place of the equals sign")
        } else {
            failure
        });
    };
    if name.eq_ignore_ascii_case("a2a-version") {
        let failure = Failure::usage(format!("{said}: the version has a flag of its own"));
        return Err(failure.hint("name it with --a2a-version"));
    }
    if name.eq_ignore_ascii_case("grpc-timeout") {
        let failure = Failure::usage(format!("{said}: how long to wait has a flag of its own"));
        return Err(failure.hint("say it with --timeout, such as --timeout 30s"));
    }
    // gRPC keeps all names that begin so for itself.
    let is_of_grpc = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("grpc-"));
    if is_of_grpc || TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
        let text = format!("{said}: {name} says how the request is sent, and this program sets it");
        return Err(Failure::usage(text).hint("leave it out; --debug shows all that is sent"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A header is a credential's or a parameter's: of two, one would be lost.
pub fn check_beside(parameters: &[(String, String)], attached: &Attached) -> Result<(), Failure> {
    let is_credential = |name: &str| attached.headers.iter().any(|(taken, _)| taken.eq_ignore_ascii_case(name));
    let Some((name, _)) = parameters.iter().find(|(name, _)| is_credential(name)) else { return Ok(()) };
    let text = format!("--svc-param {name} and a credential would both be the header {name}");
    Err(Failure::usage(text).hint("leave out one of them; flotilla config show says where a credential comes from"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_is_said_elsewhere_is_no_parameter() {
        let parsed =
            |pair: &str| parse("--svc-param", &[pair.to_owned()]).map_err(|failure| failure.envelope().to_string());
        assert_eq!(parsed("x-a: b:c"), Ok(vec![("x-a".to_owned(), "b:c".to_owned())]));
        assert!(parsed("a2a-version:0.3").is_err_and(|told| told.contains("--a2a-version")));
        assert!(parsed("Grpc-Timeout:5S").is_err_and(|told| told.contains("--timeout")));
        assert!(parsed("x-trace-id=5").is_err_and(|told| told.contains("colon")));
        for pair in ["Content-Length:5", "HOST: x", "no colon", ":x", "grpc-encoding:gzip"] {
            assert!(parsed(pair).is_err_and(|told| told.contains("--svc-param")), "{pair}");
        }
    }
}
