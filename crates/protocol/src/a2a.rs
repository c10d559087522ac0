//! The A2A 1.0 vocabulary: operations, errors, data model and cards.

pub mod card;
pub mod error;
pub mod method;
pub mod model;
pub mod profile;
pub mod push;
pub mod reading;
pub mod request;
mod shape;
pub mod validate;
pub mod version;

/// The protocol version this crate speaks (spec 3.6: `Major.Minor` only).
pub const VERSION: &str = "1.0";
/// What the URI of every extension begins with that a hub implements itself, for those who call that hub.
pub const HUB_EXTENSIONS: &str = "urn:flotilla:ext:";
/// The extension under which streams can be resumed after a cut.
pub const STREAM_RESUME: &str = "urn:flotilla:ext:stream-resume:1.0";
/// The extension under which an extended card says what holds for the caller who asked for it.
pub const TERMS: &str = "urn:flotilla:ext:terms:1.0";
/// The extension under which a push config says what its webhook is to be told, and how.
pub const PUSH_OPTIONS: &str = "urn:flotilla:ext:push-options:1.0";
