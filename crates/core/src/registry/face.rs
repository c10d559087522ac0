//! What an agent's own card says of it, put beside what its entry says.

use super::Agent;
use flotilla_protocol::a2a::card::{AgentExtension, AgentSkill};
use flotilla_protocol::a2a::{HUB_EXTENSIONS, STREAM_RESUME};
use std::fmt;

/// What an agent's own card says of it, for an agent elsewhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Face {
    pub description: String,
    pub skills: Vec<AgentSkill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub streaming: bool,
    /// But for those that a hub implements itself.
    pub extensions: Vec<AgentExtension>,
    /// The versions of A2A its interfaces speak.
    pub versions: Vec<String>,
}

/// What an agent's entry leaves to its own card to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOpen {
    pub description: bool,
    pub skills: bool,
    pub input_modes: bool,
    pub output_modes: bool,
    pub streaming: bool,
    pub extensions: bool,
}

impl Agent {
    /// What the entry says counts; what it leaves open is the card's to say.
    #[must_use]
    pub fn with_face(mut self, face: Face) -> Self {
        let open = self.left_open;
        if open.description && !face.description.is_empty() {
            self.description = face.description;
        }
        if open.skills && !face.skills.is_empty() {
            self.skills = face.skills;
        }
        if open.input_modes && !face.input_modes.is_empty() {
            self.input_modes = face.input_modes;
        }
        if open.output_modes && !face.output_modes.is_empty() {
            self.output_modes = face.output_modes;
        }
        if open.extensions {
            self.capabilities.extensions.retain(|extension| extension.uri.starts_with(HUB_EXTENSIONS));
            self.capabilities.extensions.extend(face.extensions);
        }
        if open.streaming {
            self.capabilities.streaming = face.streaming;
            if !face.streaming {
                self.capabilities.extensions.retain(|extension| extension.uri != STREAM_RESUME);
            }
        }
        if !face.versions.is_empty() {
            self.versions = face.versions;
        }
        self
    }
}

/// What is known of a card's signatures, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A key we trust signed this card.
    Verified,
    /// It is signed, and we have no key to check that with.
    Unverifiable,
    /// It is not signed, which the specification allows.
    Absent,
    /// It is signed, and not by whom it should be, or it was changed after that.
    Failed,
}

impl Word {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverifiable => "unverifiable",
            Self::Absent => "absent",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The word, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub word: Word,
    pub reason: String,
    /// Members of the card that the signature says nothing about.
    pub uncovered: Vec<String>,
}
