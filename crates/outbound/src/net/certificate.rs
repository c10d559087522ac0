//! What is wrong with a certificate, in words, and what to do about it.

use rustls::{CertificateError, Error};

const TRUST: &str = "if you trust its issuer, name a file with the issuer's certificate: SSL_CERT_FILE=FILE; --insecure \
                     accepts any certificate (development only)";
const RENEW: &str = "whoever runs the agent has to renew it; --insecure accepts any certificate (development only)";
const NAME: &str = "name the agent as its certificate does; --insecure accepts any certificate (development only)";
const MAKE: &str = "make another with: openssl req -x509 -addext basicConstraints=critical,CA:FALSE …, and name it in \
                    SSL_CERT_FILE; --insecure accepts any certificate (development only)";

/// A certificate that was not accepted: why, and what to do.
pub fn refused(error: &(dyn std::error::Error + 'static)) -> Option<(String, &'static str)> {
    match found(error)? {
        Error::InvalidCertificate(problem) => Some(explain(problem)),
        _ => None,
    }
}

/// Whether the other side answered with something that is not TLS at all.
pub fn is_plain(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(found(error), Some(Error::InvalidMessage(_)))
}

/// The error of TLS in a chain. An I/O error is not the cause of what it wraps, but the same in other clothes.
fn found<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = wrapped.map(|inner| inner as &(dyn std::error::Error + 'static)).or_else(|| error.source());
    }
    None
}

fn explain(problem: &CertificateError) -> (String, &'static str) {
    match problem {
        // The latter where an issuer of the same name is trusted, and is another.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            ("this machine does not trust who signed it".to_owned(), TRUST)
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => ("it has expired".to_owned(), RENEW),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("it is not valid yet (or this machine's clock is slow)".to_owned(), RENEW)
        }
        CertificateError::NotValidForName => ("it is for another name".to_owned(), NAME),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let name = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
            let names: Vec<String> = presented.iter().map(name).collect();
            (format!("it is for another name: {}", names.join(", ")), NAME)
        }
        CertificateError::Revoked => ("its issuer has revoked it".to_owned(), RENEW),
        CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            ("it is made to sign others (CA:TRUE), which a server's must not be".to_owned(), MAKE)
        }
        // Rare, and named by the library alone.
        other => (format!("it is not valid ({other:?})"), RENEW),
    }
}

#[cfg(test)]
mod tests {
    use super::{explain, refused};
    use rustls::{CertificateError, Error};

    #[test]
    fn a_certificate_s_faults_are_told_in_words() {
        let presented = vec!["DnsName(\"a.example\")".to_owned()];
        let expected = rustls::pki_types::ServerName::try_from("b.example").expect("a name");
        for (problem, words) in [
            (CertificateError::UnknownIssuer, "does not trust"),
            (CertificateError::Expired, "expired"),
            (CertificateError::NotValidForNameContext { expected, presented }, "name: a.example"),
        ] {
            let (told, advice) = explain(&problem);
            assert!(told.contains(words) && advice.contains("--insecure"), "{told}: {advice}");
        }
    }

    #[test]
    fn the_fault_is_found_in_what_wraps_it() {
        let wrapped = std::io::Error::other(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        let wrapped = std::io::Error::other(wrapped);
        assert!(refused(&wrapped).is_some_and(|(_, advice)| advice.contains("SSL_CERT_FILE")));
        assert!(refused(&std::io::Error::other("no")).is_none());
    }
}
