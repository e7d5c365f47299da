//! Sizes: a file is about one noun, and a folder is one room. A longer file is about two.

use std::collections::BTreeMap;

use crate::files::{self, File};

/// The most lines of a source file, and the most files of a folder.
const FILE_LINES_MAX: usize = 450;
const FOLDER_FILES_MAX: usize = 16;

/// Longer files, to be divided. A file that is short enough leaves this list.
const LONG_FILES: [&str; 16] = [
    "crates/navlocks-cli/src/command/target.rs",
    "crates/navlocks-client/src/route.rs",
    "crates/navlocks-core/src/kit/space.rs",
    "crates/navlocks-core/src/manager.rs",
    "crates/navlocks-core/src/seating.rs",
    "crates/navlocks-server/src/hub/partitions/partition.rs",
    "crates/navlocks-server/src/service.rs",
    "crates/navlocks-server/tests/service/access.rs",
    "crates/navlocks-server/tests/service/hostile.rs",
    "crates/navlocks/src/error.rs",
    "crates/navlocks/src/local/space.rs",
    "crates/navlocks/src/locks.rs",
    "crates/navlocks/tests/remote/peer.rs",
    "js/index.d.ts",
    "tests/engine/kit.rs",
    "tests/src/model/scopes.rs",
];

/// Fuller folders, to be divided. A folder that is small enough leaves this list.
const FULL_FOLDERS: [&str; 14] = [
    "crates/navlocks-cli/src/command",
    "crates/navlocks-cli/tests/command",
    "crates/navlocks-etcd/src",
    "crates/navlocks-server/src/hub",
    "crates/navlocks/src",
    "crates/navlocks/src/remote",
    "crates/navlocks/tests/remote",
    "js/service",
    "js/test",
    "tests/conformance/body",
    "tests/engine",
    "tests/faults",
    "tests/project",
    "tests/simulation",
];

#[test]
fn files_are_small() {
    assert_exactly(&long_files(&sources()), &LONG_FILES);
}

#[test]
fn folders_are_small() {
    assert_exactly(&full_folders(&sources()), &FULL_FOLDERS);
}

fn sources() -> Vec<File> {
    let mut all = files::below(".");
    all.retain(|file| [".rs", ".js", ".ts"].iter().any(|end| file.path.ends_with(end)));
    all
}

#[track_caller]
fn assert_exactly(found: &BTreeMap<String, usize>, known: &[&str]) {
    let new: Vec<_> = found.iter().filter(|(path, _)| !known.contains(&path.as_str())).collect();
    assert!(new.is_empty(), "too large: {new:?}");
    let over: Vec<_> = known.iter().filter(|path| !found.contains_key(**path)).collect();
    assert!(over.is_empty(), "small enough now, so not in the list any more: {over:?}");
}

fn long_files(sources: &[File]) -> BTreeMap<String, usize> {
    let lines = sources.iter().map(|file| (file.path.clone(), file.text.lines().count()));
    lines.filter(|(_, lines)| *lines > FILE_LINES_MAX).collect()
}

fn full_folders(sources: &[File]) -> BTreeMap<String, usize> {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for file in sources {
        let (folder, _) = file.path.rsplit_once('/').unwrap_or_default();
        *folders.entry(folder.to_owned()).or_default() += 1;
    }
    folders.retain(|_, count| *count > FOLDER_FILES_MAX);
    folders
}

#[test]
fn long_file_and_full_folder_are_found() {
    let file = |path: &str, lines| File::new(path, "\n".repeat(lines));
    let files = [file("a/b.rs", FILE_LINES_MAX), file("a/c.rs", FILE_LINES_MAX + 1)];
    assert_eq!(long_files(&files), [("a/c.rs".to_owned(), FILE_LINES_MAX + 1)].into());
    let many = |count: usize| (0..count).map(|n| file(&format!("a/{n}.rs"), 1)).collect::<Vec<_>>();
    assert!(full_folders(&many(FOLDER_FILES_MAX)).is_empty());
    assert_eq!(full_folders(&many(FOLDER_FILES_MAX + 1)).len(), 1);
}
