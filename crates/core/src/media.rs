//! Media types: whether what is offered fits what is accepted.

/// Whether `offered` (a media type, parameters allowed) fits one of the `accepted` patterns (`*/*`, `text/*`, exact).
pub fn fits(accepted: &[String], offered: &str) -> bool {
    accepted.iter().any(|pattern| overlaps(pattern, offered))
}

/// Whether two sets of patterns have anything in common.
pub fn intersect(left: &[String], right: &[String]) -> bool {
    left.iter().any(|pattern| fits(right, pattern))
}

fn overlaps(left: &str, right: &str) -> bool {
    let (left_type, left_sub) = split(left);
    let (right_type, right_sub) = split(right);
    same(left_type, right_type) && same(left_sub, right_sub)
}

fn split(media_type: &str) -> (&str, &str) {
    let bare = media_type.split(';').next().unwrap_or_default().trim();
    bare.split_once('/').unwrap_or((bare, "*"))
}

fn same(left: &str, right: &str) -> bool {
    left == "*" || right == "*" || left.eq_ignore_ascii_case(right)
}

#[cfg(test)]
mod tests {
    use super::{fits, intersect};

    fn set(types: &[&str]) -> Vec<String> {
        types.iter().map(|t| (*t).to_owned()).collect()
    }

    #[test]
    fn patterns_fit() {
        assert!(fits(&set(&["text/*"]), "text/plain; charset=utf-8"));
        assert!(fits(&set(&["*/*"]), "image/png"));
        assert!(fits(&set(&["application/json"]), "Application/JSON"));
        assert!(!fits(&set(&["text/plain"]), "text/html"));
        assert!(!intersect(&set(&["text/plain"]), &set(&["image/png", "audio/*"])));
        assert!(intersect(&set(&["image/png"]), &set(&["image/*"])));
    }
}
