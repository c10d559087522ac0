//! The versions of A2A that are spoken here.

/// A version, as far as it matters: patch numbers do not (spec 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    V03,
    #[default]
    V10,
}

impl Version {
    pub const ALL: [Self; 2] = [Self::V10, Self::V03];

    pub const fn name(self) -> &'static str {
        match self {
            Self::V03 => crate::v03::VERSION,
            Self::V10 => super::VERSION,
        }
    }

    /// Reads `1.0` or `1.0.3`; none for a version that is not spoken here.
    pub fn from_name(text: &str) -> Option<Self> {
        let is_patch = |rest: &str| {
            rest.is_empty()
                || rest
                    .strip_prefix('.')
                    .is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
        };
        Self::ALL.into_iter().find(|version| text.strip_prefix(version.name()).is_some_and(is_patch))
    }

    /// All of them, for error texts.
    pub fn list() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn patch_numbers_do_not_matter_but_are_numbers() {
        assert_eq!(Version::from_name("1.0.1"), Some(Version::V10));
        assert_eq!(Version::from_name("0.3.0"), Some(Version::V03));
        for other in ["", "1", "1.1", "1.00", "0.30", "0.3.", "0.3.x", "2.0"] {
            assert_eq!(Version::from_name(other), None, "{other}");
        }
    }
}
