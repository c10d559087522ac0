//! Why a webhook got no answer, in words for whoever looks after it.

use crate::net::{certificate, innermost};
use std::error::Error;
use std::io::{self, ErrorKind};

/// What went wrong, and what to do about it where that is known.
pub fn of(error: &(dyn Error + 'static)) -> String {
    if let Some((problem, _)) = certificate::refused(error) {
        return format!("the receiver's certificate is not accepted: {problem}; give the receiver another one");
    }
    let cause = innermost(error);
    if certificate::is_plain(error) || cause.contains("tls handshake eof") {
        return "the receiver does not speak TLS; give it a certificate, or an http:// URL if the hub may call it so"
            .into();
    }
    match kind(error) {
        Some(ErrorKind::ConnectionRefused) => {
            "connection refused: nobody listens there; start the receiver, or correct the URL's host and port".into()
        }
        Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof) => {
            "the receiver closed the connection without an answer; look into its log".into()
        }
        Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::TimedOut) => {
            "the receiver's address cannot be reached; look at the network between the hub and it".into()
        }
        _ => named(&cause),
    }
}

/// What only the library's words tell apart.
fn named(text: &str) -> String {
    if text.contains("lookup address") {
        return format!("the host's name is not found ({text}); correct the URL, or the hub's name servers");
    }
    if text.contains("connection closed before message completed") {
        return "the receiver closed the connection without an answer; look into its log".into();
    }
    // What the reader of HTTP says of something else.
    if text.contains("invalid HTTP") || text.contains("invalid URI") || text.contains("frame with invalid size") {
        return format!("the answer is not HTTP ({text}); correct the URL's host and port, or mend the receiver");
    }
    text.to_owned()
}

fn kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        let found = error.downcast_ref::<io::Error>();
        // One that only wraps another says nothing of its own, and is not its cause either.
        if let Some(kind) = found.map(io::Error::kind).filter(|kind| *kind != ErrorKind::Other) {
            return Some(kind);
        }
        let wrapped = found.and_then(io::Error::get_ref).map(|inner| inner as &(dyn Error + 'static));
        next = wrapped.or_else(|| error.source());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::of;
    use rustls::{CertificateError, InvalidMessage};
    use std::io::{Error, ErrorKind};

    #[test]
    fn causes_are_told_in_words_with_a_next_step() {
        let tls = |error: rustls::Error| Error::other(Error::other(error));
        let issuer = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let plain = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
        let lookup = "failed to lookup address information: Name or service not known";
        for (error, words) in [
            (tls(issuer), "certificate is not accepted: this machine does not trust"),
            (tls(plain), "does not speak TLS"),
            (Error::from(ErrorKind::ConnectionRefused), "start the receiver"),
            (Error::other(Error::new(ErrorKind::UnexpectedEof, "tls handshake eof")), "does not speak TLS"),
            (Error::other(Error::from(ErrorKind::ConnectionReset)), "look into its log"),
            (Error::from(ErrorKind::HostUnreachable), "look at the network"),
            (Error::other(lookup), "correct the URL"),
            (Error::other("connection closed before message completed"), "look into its log"),
            (Error::other("invalid HTTP version parsed"), "the answer is not HTTP"),
            (Error::other("something rare"), "something rare"),
        ] {
            let told = of(&error);
            assert!(told.contains(words) && !told.contains("OtherError"), "{told}");
        }
    }
}
