//! Folders for tests' files, all in one place: what a test that was killed left there goes with the next one.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A folder of this test's own, gone when it is dropped.
pub fn scratch() -> TempDir {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let own = std::fs::metadata("/proc/self").expect("Linux tells of processes").uid();
        let place = std::env::temp_dir().join(format!("flotilla-tests-{own}"));
        std::fs::create_dir_all(&place).expect("a folder for tests can be made");
        sweep(&place);
        place
    });
    let prefix = format!("{}.", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(place).expect("a temporary directory can be made")
}

/// Removes the folders of processes that are gone. A number that was given to another process meanwhile only keeps its
/// folder longer.
fn sweep(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.split_once('.')).map(|(owner, _)| owner);
        if owner.is_none_or(|owner| !Path::new("/proc").join(owner).exists()) {
            // Another test may be about to do the same.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{scratch, sweep};

    #[test]
    fn what_a_killed_test_left_is_removed_and_what_is_in_use_is_not() {
        let place = scratch();
        let (left, used) = (place.path().join("4194999.abc"), place.path().join(format!("{}.abc", std::process::id())));
        for folder in [&left, &used] {
            std::fs::create_dir_all(folder.join("data")).unwrap();
        }
        sweep(place.path());
        assert!(!left.exists() && used.exists());
    }
}
