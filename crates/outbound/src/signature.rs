//! Signatures of agent cards (spec 8.4): those we make, and what those of others are worth.

pub mod jwk;
pub mod origin;
pub mod ring;
pub mod sign;
#[cfg(test)]
mod tests;
pub mod verify;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What is signed: the protected header and the payload, each in base64url (RFC 7515, section 5.1).
fn signing_input(protected: &str, payload: &str) -> String {
    format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload))
}
